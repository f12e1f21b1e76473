"""One loaded version: its queue, its worker, and the requests it still owes an answer.

Promises: a request is answered by this version or fails with a reason, exactly once; when the worker
dies a new one is started and gets what the old one left unanswered (prediction is pure); a text under
which workers keep dying is computed alone, and if the worker dies again that request, and no other,
is answered by 500; a worker that keeps a batch for ever is ended like one that died; at most as many
batches as compute threads, plus one, are with the worker, so that batches are formed as late as possible.
What is not covered: which version answers (`lifecycle.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from textmill.core.errors import RequestError, ServeError, TextmillError
from textmill.core.machine import num_cpus
from textmill.serve import wire
from textmill.serve.batcher import Batcher, Item
from textmill.serve.config import ServeConfig
from textmill.serve.faults import too_late, unavailable, uncomputable
from textmill.serve.metrics import Metrics
from textmill.serve.pending import Pending
from textmill.serve.process import OnEnd, OnFrame, Worker, WorkerProcess
from textmill.store.bundle import Bundle

if TYPE_CHECKING:
    from textmill.encode.long_text import Cut
    from textmill.serve.windows import Encoder

logger = logging.getLogger(__name__)

_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 5.0
_MAX_LOADING_DEATHS = 3
_HUNG_AFTER_S = 30.0
"""A batch that takes longer than this, and than a request may take, will never be answered."""


class Stage(StrEnum):
    """Where a version is in its life."""

    VERIFYING = "verifying"
    LOADING = "loading"
    WARMING = "warming"
    GATING = "gating"
    AVAILABLE = "available"
    LIVE = "live"
    RESTARTING = "restarting"
    DRAINING = "draining"
    RETIRED = "retired"
    REJECTED = "rejected"


@dataclass(slots=True)
class _Flight:
    """A batch that is with the worker."""

    items: list[Item]
    timer: asyncio.TimerHandle


class LoadedVersion:
    """A version with a worker of its own; used on the event loop only."""

    def __init__(
        self,
        bundle: Bundle,
        encoder: Encoder,
        config: ServeConfig,
        metrics: Metrics,
        on_lost: Callable[[LoadedVersion], None],
        make_worker: Callable[[OnFrame, OnEnd], Worker] = WorkerProcess,
        hung_after_s: float = _HUNG_AFTER_S,
    ) -> None:
        """Prepare a version; `open` loads it.

        Args:
            bundle: what to load.
            encoder: the version's own tokenizer and cleaning.
            config: threads, limits, timeouts.
            metrics: the server's.
            on_lost: called when a version that was ready can no longer come back.
            make_worker: what computes; a process, as a rule.
            hung_after_s: how long a batch may be with the worker, at the least.
        """
        self.bundle = bundle
        self._on_lost = on_lost
        self._make_worker = make_worker
        self.number = bundle.version
        self.name = bundle.manifest.name
        self.digest = bundle.manifest.digest
        self.labels = bundle.manifest.signature.labels
        self.headers = [
            (b"x-model-version", str(self.number).encode()),
            (b"x-model-digest", self.digest.encode()),
        ]
        self.encoder = encoder
        self.reason = ""
        self.is_live = False
        self.since = time.time()
        self.load_seconds = 0.0
        self.num_restarts = 0
        self._config = config
        self._hung_after_s = max(hung_after_s, config.request_timeout_s)
        self._metrics = metrics.for_version(self.name, self.number)
        self._loop = asyncio.get_running_loop()
        self._threads = num_cpus() if config.threads == "auto" else config.threads
        self._batcher = Batcher(config.max_batch_tokens, config.max_batch_rows)
        self._sequence = itertools.count()
        self._batch_ids = itertools.count()
        self._flights: dict[int, _Flight] = {}
        self._suspect: int | None = None
        self._open_requests: set[Pending] = set()
        self._num_visits = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_pump_due = False
        self._worker: Worker | None = None
        self._first_ready: asyncio.Future[None] = self._loop.create_future()
        self._is_ready = False
        self._is_closed = False
        self._stage = Stage.VERIFYING
        self._restart: asyncio.Task[None] | None = None
        self._deaths_in_a_row = 0

    # ---- life

    @property
    def stage(self) -> Stage:
        """Where this version is in its life."""
        if self._is_ready and self._stage is Stage.AVAILABLE and self.is_live:
            return Stage.LIVE
        return self._stage

    @property
    def is_available(self) -> bool:
        """Whether it may take requests: loaded once and not on its way out."""
        return self._first_ready.done() and not self._is_closed and self._stage is not Stage.REJECTED

    @property
    def is_ready(self) -> bool:
        """Whether its worker answers at this moment."""
        return self._is_ready

    @property
    def num_open(self) -> int:
        """Requests that wait for their answer."""
        return self._num_visits

    @property
    def num_waiting(self) -> int:
        """Texts, and windows of long ones, that wait for a batch."""
        return len(self._batcher)

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker that answers."""
        return self._worker.pid if self._worker is not None and self._is_ready else None

    async def open(self, *, patient: bool) -> None:
        """Start the worker and wait until it has verified, loaded, warmed up and proven itself.

        Args:
            patient: load at low priority, because another version answers meanwhile.

        Raises:
            TextmillError: the reason why this version is rejected.
        """
        begun = time.monotonic()
        await self._start_worker(patient)
        try:
            async with asyncio.timeout(self._config.start_timeout_s):
                await asyncio.shield(self._first_ready)
        except TimeoutError:
            error = ServeError(
                f"A version must be ready within {self._config.start_timeout_s:g} s",
                got=f"version {self.number} of {self.name}, still {self._stage}",
                fix="Raise serve.start_timeout_s, or look at the load on this machine.",
            )
            await self.reject(error)
            raise error from None
        except TextmillError as err:
            await self.reject(err)
            raise
        self.load_seconds = time.monotonic() - begun

    async def reject(self, error: TextmillError) -> None:
        """End the worker and keep the reason."""
        self.reason = str(error)
        await self.close(Stage.REJECTED)

    async def drain(self, timeout_s: float) -> bool:
        """Wait until no request is open; False when the time was not enough."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def close(self, stage: Stage = Stage.RETIRED) -> None:
        """End the worker for good; requests still open fail with 503."""
        self._is_closed = True
        self._is_ready = False
        self._stage = stage
        for pending in list(self._open_requests):
            pending.fail(unavailable(self.number))
        if self._restart is not None:
            self._restart.cancel()
        if not self._first_ready.done():
            self._first_ready.cancel()
        # The worker holds this version, too: without the cut a large tokenizer would wait for the collector.
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.stop()

    def mark(self, stage: Stage) -> None:
        """Note a stage that the lifecycle decides on (draining, available)."""
        if not self._is_closed:
            self._stage = stage

    # ---- requests

    @contextlib.contextmanager
    def visit(self) -> Iterator[None]:
        """Count a request from the moment it has taken this version, so that draining waits for it."""
        self._num_visits += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._num_visits -= 1
            if self._num_visits == 0:
                self._idle.set()

    def submit(self, cut: Cut) -> Pending:
        """Queue the rows of one request.

        Raises:
            RequestError: 429 when the queue is full, 503 when this version was closed meanwhile.
        """
        if self._is_closed:
            raise unavailable(self.number)
        self._admit(len(cut.rows), sum(len(row.ids) for row in cut.rows))
        pending = Pending(len(cut.rows), self._loop)
        pending.items = [
            Item(pending, index, text, row, len(row.ids), next(self._sequence))
            for index, (row, text) in enumerate(zip(cut.rows, cut.owner.tolist(), strict=True))
        ]
        pending.timer = self._loop.call_later(self._config.request_timeout_s, self._time_out, pending)
        pending.answer.add_done_callback(lambda _: self._end(pending))
        self._open_requests.add(pending)
        self._batcher.add(pending.items)
        self._pump_soon()
        return pending

    def _admit(self, num_items: int, num_tokens: int) -> None:
        waiting, tokens = len(self._batcher), self._batcher.num_tokens
        limit, token_limit = self._config.max_queue_items, self._config.max_queue_tokens
        # An empty queue takes any request that passed the limits of its own.
        if waiting and (waiting + num_items > limit or tokens + num_tokens > token_limit):
            self._metrics.rejected.inc()
            raise RequestError(
                f"At most {limit} texts and {token_limit} tokens may wait",
                got=f"{waiting} texts with {tokens} tokens waiting already",
                fix="Send the request again after the time in Retry-After.",
                status=429,
            )

    def _time_out(self, pending: Pending) -> None:
        num_open = len({item.text for item in pending.items if not pending.rows[item.index]})
        got = f"{num_open} of {pending.items[-1].text + 1} texts without an answer"
        pending.fail(too_late(self._config.request_timeout_s, got))

    def _end(self, pending: Pending) -> None:
        if pending.timer is not None:
            pending.timer.cancel()
        if pending.num_open:
            self._batcher.discard(pending.items)
        self._open_requests.discard(pending)

    # ---- batches

    def _pump_soon(self) -> None:
        """Form batches after all that arrived in this turn of the loop is queued."""
        if not self._is_pump_due:
            self._is_pump_due = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._is_pump_due = False
        while self._is_ready and self._suspect is None and len(self._flights) <= self._threads:
            if self._batcher.has_suspects:
                # Nothing else may be with the worker, so that its end has one possible cause.
                if not self._flights and (suspect := self._batcher.take_suspect()) is not None:
                    self._suspect = self._send([suspect])
                break
            items = self._batcher.take(max(1, self._threads - len(self._flights)))
            if not items:
                break
            self._send(items)
        self._metrics.waiting.set(len(self._batcher))

    def _send(self, items: list[Item]) -> int:
        assert self._worker is not None, "only a ready version sends batches"
        batch_id = next(self._batch_ids)
        timer = self._loop.call_later(self._hung_after_s, self._end_hung, self._worker)
        self._flights[batch_id] = _Flight(items, timer)
        self._worker.send(wire.batch_frame(batch_id, [item.encoded for item in items]))
        longest = max(item.length for item in items)
        tokens = sum(item.length for item in items)
        self._metrics.rows.observe(len(items))
        self._metrics.tokens.inc(tokens)
        self._metrics.padding.inc(len(items) * longest - tokens)
        return batch_id

    def _take_scores(self, frame: wire.Frame) -> None:
        flight = self._flights.pop(frame["id"], None)
        if frame["id"] == self._suspect:
            self._suspect = None
        if flight is None:
            return
        flight.timer.cancel()
        self._deaths_in_a_row = 0
        self._metrics.compute.inc(frame["seconds"])
        faults = dict(frame["faults"])
        for index, (item, row) in enumerate(zip(flight.items, wire.scores_of(frame).tolist(), strict=True)):
            if index in faults:
                item.pending.fail(uncomputable(item.text, faults[index]))
            else:
                item.pending.give(item.index, row)
        self._pump()

    # ---- worker

    async def _start_worker(self, patient: bool) -> None:
        worker = self._make_worker(self._on_frame, self._on_end)
        self._worker = worker
        await worker.start(
            {
                "kind": "open",
                "bundle": str(self.bundle.path),
                "runtime": self._config.runtime,
                "threads": self._threads,
                "patient": patient,
            }
        )

    def _on_frame(self, frame: wire.Frame) -> None:
        kind = frame["kind"]
        if kind == "scores":
            self._take_scores(frame)
        elif kind == "stage":
            if not self._first_ready.done():
                self._stage = Stage(frame["stage"])
        elif kind == "ready":
            self._is_ready = True
            self._stage = Stage.AVAILABLE
            if not self._first_ready.done():
                self._first_ready.set_result(None)
            self._pump_soon()
        elif kind == "refused":
            self._refuse(ServeError(frame["rule"], got=frame["got"], fix=frame["fix"]))
        else:
            raise AssertionError(f"a frame of the unknown kind {kind!r}")

    def _refuse(self, error: ServeError) -> None:
        self.reason = str(error)
        if not self._first_ready.done():
            self._first_ready.set_exception(error)
        elif not self._is_closed:
            logger.error("Version %d of %s does not come back: %s", self.number, self.name, error)
            self._on_lost(self)

    def _end_hung(self, worker: Worker) -> None:
        logger.error("The worker of version %d of %s hangs; it is ended", self.number, self.name)
        worker.kill()

    def _on_end(self, how: str) -> None:
        """Take back what the dead worker left and start another."""
        was_ready, self._is_ready = self._is_ready, False
        self._recover_items()
        if self._is_closed:
            return
        self._deaths_in_a_row += 1
        self.num_restarts += 1
        self._metrics.deaths.inc()
        logger.error("The worker of version %d of %s ended by %s", self.number, self.name, how)
        if not self._first_ready.done() and self._deaths_in_a_row >= _MAX_LOADING_DEATHS:
            self._first_ready.set_exception(
                ServeError(
                    "A version must load",
                    got=f"a worker that ended {self._deaths_in_a_row} times while loading ({how})",
                    fix="The server's log has the details; too little memory is the usual cause.",
                )
            )
            return
        if self._first_ready.done() and self._first_ready.exception() is not None:
            return
        if self._first_ready.done():
            self._stage = Stage.RESTARTING
        backoff = 0.0 if was_ready else _FIRST_BACKOFF_S * 2.0 ** min(self._deaths_in_a_row, 6)
        self._restart = self._loop.create_task(self._start_again(min(backoff, _LAST_BACKOFF_S)))

    async def _start_again(self, backoff_s: float) -> None:
        await asyncio.sleep(backoff_s)
        while not self._is_closed:
            try:
                await self._start_worker(patient=not self.is_live)
            except OSError as err:  # no memory or no process to be had at this moment
                logger.error("No worker for version %d of %s: %s", self.number, self.name, err)
                await asyncio.sleep(_LAST_BACKOFF_S)
            else:
                return

    def _recover_items(self) -> None:
        was_alone, self._suspect = self._suspect is not None, None
        flights, self._flights = self._flights, {}
        again: list[Item] = []
        for flight in flights.values():
            flight.timer.cancel()
            for item in flight.items:
                if item.pending.is_over:
                    continue
                item.deaths += 1
                if was_alone:
                    item.pending.fail(uncomputable(item.text, "the end of the worker process, three times"))
                else:
                    again.append(item)
        self._batcher.put_back(again)
