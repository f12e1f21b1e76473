from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.train.streams import all_ids, toy_feed, toy_stream, write_stream
from textmill.core.seeds import numpy_generator

ROOT = Path(__file__).resolve().parent.parent.parent
ALL_KILLS = "TEXTMILL_ALL_KILLS" in os.environ  # set by hand: minutes


def start(folder: Path, rank: int, world: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.train.stream_run", str(folder), str(rank), str(world)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"})


def num_lines(folder: Path, rank: int) -> int:
    log = folder / f"log-{rank}.txt"
    return len(log.read_bytes().splitlines()) if log.exists() else 0


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
@pytest.mark.parametrize(("world", "kills"), [(1, 10), (2, 5)] if ALL_KILLS else [(1, 3), (2, 1)])
def test_a_stream_killed_at_random_points_gives_the_undisturbed_sequence(
    tmp_path: Path, world: int, kills: int
) -> None:
    write_stream(tmp_path)
    feed = toy_feed(toy_stream(tmp_path), accumulate=2)
    whole = [
        f"{epoch} {number} {' '.join(ids)}"
        for epoch in range(2)
        for number, ids in enumerate(all_ids(feed, epoch))
    ]
    stops = sorted(numpy_generator(world, "kill").integers(1, len(whole) // world - 3, size=kills).tolist())
    workers: list[int] = []
    for stop in stops:
        running = [start(tmp_path, rank, world) for rank in range(world)]
        deadline = time.monotonic() + 60
        while num_lines(tmp_path, world - 1) < stop and time.monotonic() < deadline:
            time.sleep(0.002)
        for process in running:
            workers += children(process.pid) if process.poll() is None else []
            process.send_signal(signal.SIGKILL)
            process.wait()
    running = [start(tmp_path, rank, world) for rank in range(world)]
    assert [process.wait(60) for process in running] == [0] * world
    made = [line for rank in range(world) for line in (tmp_path / f"log-{rank}.txt").read_text().splitlines()]
    assert sorted(made, key=lambda line: tuple(map(int, line.split()[:2]))) == whole
    deadline = time.monotonic() + 5
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))
