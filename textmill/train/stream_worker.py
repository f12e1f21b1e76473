"""Prepare the steps of a stream in another process.

    python -m textmill.train.stream_worker      (started by `prepared` below, never by hand)

Promises: at most some steps are ahead; an error there is raised here as it is, with file and row; the
process ends when its work is done, when nobody reads any more, and when its parent dies in any way
(the pipes between them break then). Nothing of the caller's main module is loaded.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from textmill.core.errors import TextmillError
from textmill.train.stream_steps import Pool, PoolStart, StepMaker

_END_WAIT_S = 5.0
_NICE = 5
"""It tokenises on all cores, but gives way to the training where both need them."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is told of a pool before its steps."""

    start: PoolStart
    is_last: bool
    next_epoch: dict[str, Any]
    num_steps: int
    counts: dict[str, int]


def prepared(make: StepMaker, start: PoolStart, ahead: int, rank: int, world: int) -> Iterator[Any]:
    """Yield what `messages` yields, made by another process up to `ahead` messages early.

    Raises:
        TextmillError: as raised there, or the process died.
    """
    package = Path(__file__).resolve().parent.parent.parent
    paths = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH", "")]))
    worker = subprocess.Popen(
        [sys.executable, "-m", "textmill.train.stream_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    arrived: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=ahead)
    is_over = threading.Event()
    reader = threading.Thread(target=_receive, args=(worker.stdout, arrived, is_over), daemon=True)
    try:
        with contextlib.suppress(BrokenPipeError):
            pickle.dump((make, start, rank, world), worker.stdin)
            worker.stdin.flush()
        reader.start()
        while True:
            kind, value = arrived.get()
            if kind == "error":
                raise value
            if kind == "broken":
                raise TextmillError(
                    "The process that prepares the steps must not end early",
                    got=f"exit code {worker.wait(_END_WAIT_S)}",
                    fix="It may lack memory; data.prefetch = 0 prepares the steps in the training process.",
                )
            if kind == "end":
                return
            yield value
    finally:
        is_over.set()
        worker.kill()
        worker.wait()
        worker.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.close()
        while reader.is_alive():
            with contextlib.suppress(queue.Empty):
                arrived.get_nowait()
            reader.join(0.01)


def messages(make: StepMaker, start: PoolStart, rank: int, world: int) -> Iterator[Any]:
    """Yield for each pool from `start` on its `Facts`, then each of its steps of this rank."""
    for pool in make.pools(start):
        yield from messages_of(make, pool, rank, world)


def messages_of(make: StepMaker, pool: Pool, rank: int, world: int) -> Iterator[Any]:
    """Yield the `Facts` of a pool, then each of its steps of this rank as a list of `Arrays`."""
    yield Facts(pool.start, pool.after is None, pool.next_epoch, len(pool.steps), dict(make.counts))
    for number, step in enumerate(pool.steps, start=pool.start.first_step):
        if number % world == rank:
            yield [make.batch(pool, positions) for positions in step]


def _receive(pipe: BinaryIO, arrived: queue.Queue[tuple[str, Any]], is_over: threading.Event) -> None:
    while not is_over.is_set():
        try:
            found = pickle.load(pipe)  # noqa: S301 - from a process of our own
        except (EOFError, pickle.UnpicklingError, ValueError, OSError):
            found = ("broken", None)
        arrived.put(found)
        if found[0] != "step":
            return


def work() -> None:
    """Take the task from standard input and write messages to standard output until it is done."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not disturb the messages
    make, start, rank, world = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our parent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(_NICE)
    try:
        for found in messages(make, start, rank, world):
            _send(out, ("step", found))
        _send(out, ("end", None))
    except BrokenPipeError:
        pass  # nobody reads any more
    except Exception as err:  # goes to the parent, which raises it
        fault = err if isinstance(err, TextmillError) else RuntimeError(traceback.format_exc())
        with contextlib.suppress(BrokenPipeError):
            _send(out, ("error", fault))
    os._exit(0)  # at once: a thread still waits for the parent's end


def _send(out: BinaryIO, message: tuple[str, Any]) -> None:
    pickle.dump(message, out, protocol=pickle.HIGHEST_PROTOCOL)
    out.flush()


def _end_with_parent() -> None:
    """Wait until the parent closes its end, by whatever death, and end at once."""
    sys.stdin.buffer.read(1)
    os._exit(0)


if __name__ == "__main__":
    # Under its own name, so that what is pickled here is known by that name at the other end.
    from textmill.train import stream_worker

    stream_worker.work()
