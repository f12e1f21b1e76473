"""One version in a process of its own: verify, open, warm up, answer the golden texts, then batches.

Started by the front as `python -m textmill.serve.worker --link FD`; it speaks frames (`wire.py`) over
that socket. Promises: it ends when the socket closes, whatever it is doing, so that no worker outlives
its front; one row that cannot be computed never takes the others of its batch along; while it
loads beside a version that answers it works at low priority.
What is not covered: queues, deadlines and routing (the front's).
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from textmill.core.errors import TextmillError
from textmill.encode.padding import Encoded
from textmill.runtime.golden import check_golden
from textmill.runtime.open import open as open_bundle
from textmill.serve import wire
from textmill.store.bundle import Bundle

if TYPE_CHECKING:
    import numpy.typing as npt

logger = logging.getLogger(__name__)

NICE_WHILE_LOADING = 5
"""Linux gives it a third of the weight of a thread that answers (at 10 it would be a tenth)."""
WARM_LENGTHS = (8, 16, 32, 64, 128, 256, 512)
"""Lengths computed before the first request; one row each."""


class RowScorer(Protocol):
    """What a worker needs of a predictor."""

    def scores_encoded(self, rows: Sequence[Encoded]) -> npt.NDArray[np.float32]:
        """Return (B, C) float32 probabilities of encoded rows."""
        ...


class Link:
    """The worker's end of the socket; frames may be sent from any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def receive(self) -> wire.Frame | None:
        """Wait for a frame; None when the front has gone."""
        return wire.receive(self._connection)

    def send(self, frame: wire.Frame) -> None:
        """Send a frame whole; to a front that has gone it is lost, and `receive` tells that end."""
        with self._lock, contextlib.suppress(ConnectionError):
            self._connection.sendall(wire.pack(frame))

    def tell(self, stage: str) -> None:
        """Say which stage of loading begins."""
        self.send({"kind": "stage", "stage": stage})


def serve_link(link: Link) -> None:
    """Answer one front until it closes the socket."""
    first = link.receive()
    if first is None:
        return
    assert first["kind"] == "open", first["kind"]
    batches: queue.SimpleQueue[wire.Frame] = queue.SimpleQueue()
    loaded: queue.SimpleQueue[RowScorer] = queue.SimpleQueue()
    # On Linux each thread has its own priority and hands it to the threads it starts. The compute
    # threads must not inherit that of the loading thread, so they start here and wait for it.
    for _ in range(first["threads"]):
        threading.Thread(target=_compute_loop, args=(link, loaded, batches), daemon=True).start()
    threading.Thread(target=_load, args=(link, first, loaded), daemon=True).start()
    while (frame := link.receive()) is not None:
        batches.put(frame)


def _load(link: Link, order: wire.Frame, loaded: queue.SimpleQueue[RowScorer]) -> None:
    """Bring the version up and say ready, or say why not; runs niced, in a thread of its own."""
    begun = time.monotonic()
    try:
        if order["patient"]:
            _lower_priority()
        predictor = _open_checked(link, order)
    except TextmillError as err:
        link.send({"kind": "refused", "rule": err.rule, "got": err.got, "fix": err.fix})
        return
    except Exception as err:
        logger.exception("The version could not be loaded")
        reason = f"{type(err).__name__}: {err}"
        link.send(
            {
                "kind": "refused",
                "rule": "A version must load",
                "got": reason[:500],
                "fix": "Publish it again; the server's log has the details.",
            }
        )
        return
    for _ in range(order["threads"]):
        loaded.put(predictor)
    link.send({"kind": "ready", "seconds": time.monotonic() - begun})


def _open_checked(link: Link, order: wire.Frame) -> RowScorer:
    """Verify, open, warm up and check the golden answers.

    Raises:
        TextmillError: with the reason why this version must not answer.
    """
    folder = Path(order["bundle"])
    link.tell("verifying")
    bundle = Bundle.open(folder)
    bundle.verify()
    link.tell("loading")
    predictor = open_bundle(folder, order["runtime"], threads=1)
    link.tell("warming")
    warm_up(predictor, predictor.cut(["warm up"]).rows[0], bundle.manifest.signature.max_length)
    link.tell("gating")
    check_golden(bundle, predictor)
    return predictor


def warm_up(predictor: RowScorer, row: Encoded, max_length: int) -> None:
    """Compute one row of each usual length, so that no request pays for first-time allocations."""
    for length in WARM_LENGTHS:
        if length > max_length:
            break
        types = None if row.type_ids is None else np.resize(row.type_ids, length)
        predictor.scores_encoded([Encoded(np.resize(row.ids, length), types)])


def compute(predictor: RowScorer, frame: wire.Frame) -> wire.Frame:
    """Answer one batch; rows that cannot be computed are told apart from those that can."""
    begun = time.perf_counter()
    rows = wire.rows_of(frame)
    faults: dict[int, str] = {}
    try:
        scores = np.asarray(predictor.scores_encoded(rows), dtype=np.float32)
    except Exception as err:
        logger.warning("A batch of %d rows failed (%s); its rows are computed one by one", len(rows), err)
        scores, faults = _one_by_one(predictor, rows)
    for index in np.flatnonzero(~np.isfinite(scores).all(axis=1)).tolist():
        faults.setdefault(index, "scores that are not finite")
    return wire.scores_frame(frame["id"], scores, faults, time.perf_counter() - begun)


def _one_by_one(
    predictor: RowScorer, rows: Sequence[Encoded]
) -> tuple[npt.NDArray[np.float32], dict[int, str]]:
    answers: dict[int, npt.NDArray[np.float32]] = {}
    faults: dict[int, str] = {}
    for index, row in enumerate(rows):
        try:
            answers[index] = predictor.scores_encoded([row])[0]
        except Exception as err:
            logger.exception("A row of %d tokens failed", len(row.ids))
            faults[index] = f"{type(err).__name__}: {err}"[:300]
    num_classes = len(next(iter(answers.values()))) if answers else 1
    scores = np.zeros((len(rows), num_classes), dtype=np.float32)
    for index, answer in answers.items():
        scores[index] = answer
    return scores, faults


def _compute_loop(
    link: Link, loaded: queue.SimpleQueue[RowScorer], batches: queue.SimpleQueue[wire.Frame]
) -> None:
    predictor = loaded.get()
    while True:
        link.send(compute(predictor, batches.get()))


def _lower_priority() -> None:
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE_WHILE_LOADING)


def main() -> int:
    """Run a worker on the socket that the front handed down."""
    parser = argparse.ArgumentParser(prog="python -m textmill.serve.worker")
    parser.add_argument("--link", type=int, required=True, help="file descriptor of the socket to the front")
    args = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="textmill worker %(process)d: %(message)s")
    # Ctrl-C belongs to the front, which ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=args.link) as connection:
        try:
            serve_link(Link(connection))
        except OSError:
            logger.debug("The front has gone")
    # Compute threads may be deep in the runtime; nothing is left to save.
    os._exit(0)


if __name__ == "__main__":
    main()
