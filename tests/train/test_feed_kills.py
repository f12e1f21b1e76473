"""A consumer of mapped rows is killed at random points, and goes on with the very next batch."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.toy import toy_examples

ALL_KILLS = "TEXTMILL_ALL_KILLS" in os.environ  # set by hand: minutes

HOST = """
import json, os, sys, time
from pathlib import Path
from tests.toy import BACKBONE
from textmill.data.config import DataConfig
from textmill.data.prepare import prepare
from textmill.encode.tokenizer import load_tokenizer
from textmill.order.sampler import BatchPlan
from textmill.train.feed import RowFeed
from textmill.train.rows import encode_rows

folder = Path(sys.argv[1])
tokenizer = load_tokenizer(BACKBONE, 32)

def consume(rank, world):
    splits = prepare(DataConfig(train="t.csv"), folder, cache=folder / "cache")
    rows = encode_rows(splits.train, tokenizer, splits.labels)
    feed = RowFeed(rows, BatchPlan(rows.lengths, 200, 8, seed=3))
    log = folder / f"rank{rank}.jsonl"
    done = log.read_text().splitlines() if log.exists() else []
    done = [line for line in done if line.endswith("}")]
    log.write_text("".join(line + "\\n" for line in done))
    last = json.loads(done[-1]) if done else {"epoch": 0, "step": rank - world}
    with open(log, "a") as file:
        for epoch in range(last["epoch"], 2):
            # Where a run stands is a pair of numbers; this rank takes every world-th step.
            position = last["step"] + world if epoch == last["epoch"] else rank
            for number, step in enumerate(feed.steps(epoch, position)):
                if number % world == 0:
                    ids = [row_id for batch in step for row_id in batch.ids]
                    file.write(json.dumps({"epoch": epoch, "step": position + number, "ids": ids}) + "\\n")
                    file.flush()
                    time.sleep(0.002)

for line in sys.stdin:
    word, *numbers = line.split()
    if word == "start":
        pid = os.fork()
        if pid == 0:
            consume(*map(int, numbers))
            os._exit(0)
        print(pid, flush=True)
    else:
        print(os.waitpid(int(numbers[0]), 0)[1], flush=True)
"""
"""Forks consumers, so that each start does not load all libraries again."""


class Host:
    """Starts consumers of one folder's rows and waits for them."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", HOST, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"},
        )

    def start(self, rank: int, world: int) -> int:
        """Return the process id of a new consumer."""
        return self._ask(f"start {rank} {world}")

    def wait(self, pid: int) -> int:
        """Return how a consumer ended."""
        return self._ask(f"wait {pid}")

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def _ask(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def sequence(folder: Path, world: int) -> list[tuple[int, int, list[str]]]:
    """Return what all ranks saw, in the order of epochs and steps."""
    lines = [
        json.loads(line)
        for rank in range(world)
        for line in (folder / f"rank{rank}.jsonl").read_text().splitlines()
    ]
    return sorted((line["epoch"], line["step"], line["ids"]) for line in lines)


def write_rows(folder: Path) -> None:
    with open(folder / "t.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows([(e.text, e.labels[0]) for e in toy_examples(900)])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, int, list[str]]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    write_rows(folder)
    with Host(folder) as host:
        assert host.wait(host.start(0, 1)) == 0
    return sequence(folder, 1)


@pytest.mark.slow
@pytest.mark.parametrize("world", [1, 2])
def test_kills_change_nothing_in_the_sequence_of_ids(
    tmp_path: Path, undisturbed: list[tuple[int, int, list[str]]], world: int
) -> None:
    write_rows(tmp_path)
    rng = random.Random(world)
    with Host(tmp_path) as host:
        ranks = [host.start(rank, world) for rank in range(world)]
        for _ in range(5 if ALL_KILLS else 3):
            victim = rng.randrange(world)
            time.sleep(rng.uniform(0, 0.4))
            os.kill(ranks[victim], signal.SIGKILL)
            host.wait(ranks[victim])
            ranks[victim] = host.start(victim, world)
        assert [host.wait(pid) for pid in ranks] == [0] * world
    found = sequence(tmp_path, world)
    assert found == undisturbed
    ids = [row_id for epoch, _, step in found if epoch == 0 for row_id in step]
    assert len(ids) == len(set(ids)) > 600


@pytest.mark.slow
def test_kills_while_the_caches_are_built_leave_them_sound(
    tmp_path: Path, undisturbed: list[tuple[int, int, list[str]]]
) -> None:
    write_rows(tmp_path)
    rng = random.Random(0)
    with Host(tmp_path) as host:
        for _ in range(12 if ALL_KILLS else 5):
            pid = host.start(0, 1)
            time.sleep(rng.uniform(0, 0.08))
            os.kill(pid, signal.SIGKILL)
            host.wait(pid)
            (tmp_path / "rank0.jsonl").unlink(missing_ok=True)
        # Two at once build one cache; both see all rows.
        ranks = [host.start(rank, 2) for rank in range(2)]
        assert [host.wait(pid) for pid in ranks] == [0, 0]
    assert sequence(tmp_path, 2) == undisturbed
    names = sorted(folder.name.partition("-")[0] for folder in (tmp_path / "cache").iterdir())
    assert names == [".locks", "data", "tokens"]
