"""Steps over rows as they are read: the `Feed` of a stream.

Promises: the sequence of steps is a function of (seed, epoch, source, settings), whatever the number of
ranks, the prefetching or the resumes before: rank r of W gets the steps whose number leaves the rest r.
`state` holds where the pool under way begins in the source, so that a resume reads that pool again and
goes on at the very next step; the number of ranks may have changed by then.
Each rank reads and tokenises all rows: what is spared by several ranks is the training, not the reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from textmill.core.progress import SILENT, Progress
from textmill.core.types import Batch
from textmill.train.stream_steps import Arrays, PoolStart, StepMaker
from textmill.train.stream_worker import Facts, messages, messages_of, prepared


class StreamFeed:
    """Gives the steps of a training on a stream."""

    def __init__(
        self,
        make: StepMaker,
        *,
        train_rows: int,
        rows_per_step: float,
        prefetch: int = 8,
        rank: int = 0,
        world: int = 1,
        progress: Progress = SILENT,
    ) -> None:
        """Keep what the steps are made of.

        Args:
            make: makes them.
            train_rows: training rows of an epoch, counted or estimated.
            rows_per_step: training rows of a step, as far as the first rows tell.
            prefetch: messages that another process prepares ahead; 0: none is started.
            rank: of this process, from 0.
            world: processes that train together.
            progress: is told of corrections.
        """
        self._make = make
        self._rows_per_step = rows_per_step
        self._steps_estimate = max(1, round(train_rows / rows_per_step))
        self._steps_of: dict[int, int] = {}
        self._starts: dict[int, dict[str, Any]] = {}
        self._prefetch = prefetch if make.source.can_move else 0
        self._rank, self._world = rank, world
        self._progress = progress
        self._drawn: deque[tuple[PoolStart, int]] = deque()
        self._ends: dict[int, tuple[int, dict[str, Any]]] = {}
        self._pool: PoolStart | None = None
        self.counts: dict[str, int] = {}
        """Rows read in this epoch, and why some were left out."""

    @property
    def max_tokens(self) -> int:
        """Bound on rows x longest row of a batch."""
        return self._make.max_tokens

    def num_steps(self, epochs: int) -> int:
        """Return the steps of the first `epochs` epochs: those made are counted, others are estimated."""
        known = [self._steps_of[epoch] for epoch in sorted(self._steps_of)]
        each = known[-1] if known else self._steps_estimate
        return sum(self._steps_of.get(epoch, each) for epoch in range(epochs))

    def steps(self, epoch: int, position: int) -> Iterator[Sequence[Batch]]:
        """Yield this rank's steps of an epoch from the `position`-th step of all ranks on."""
        start = self._start(epoch, position)
        self._drawn.clear()
        total: int | None = None
        number, pool = 0, start
        for found in self._messages(start):
            if isinstance(found, Facts):
                pool, self.counts = found.start, found.counts
                number = pool.first_step + (self._rank - pool.first_step) % self._world
                if found.is_last:
                    total = pool.first_step + found.num_steps
                    self._ends[epoch] = (total, found.next_epoch)
                continue
            if number >= position:
                self._drawn.append((pool, number))
                yield [_as_batch(arrays) for arrays in found]
            number += self._world
        assert total is not None, "a stream of steps ends with a last pool"
        if not self._drawn:
            self._finish(epoch)

    def state(self) -> dict[str, Any]:
        """Return where the pool of the last step that was made begins, and the steps of epochs so far."""
        return {
            "pool": None if self._pool is None else self._pool.as_json(),
            "steps_estimate": self._steps_estimate,
            "steps_of": {str(epoch): num for epoch, num in self._steps_of.items()},
            "starts": {str(epoch): place for epoch, place in self._starts.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        if not state:
            return
        self._pool = None if state["pool"] is None else PoolStart(**state["pool"])
        self._steps_estimate = int(state["steps_estimate"])
        self._steps_of = {int(epoch): int(num) for epoch, num in state["steps_of"].items()}
        self._starts = {int(epoch): place for epoch, place in state["starts"].items()}

    def observe(self, ids: Sequence[str], losses: npt.NDArray[np.float32]) -> None:
        """Take note of a step that was made: a resume begins in its pool."""
        if not self._drawn:
            return
        self._pool, number = self._drawn.popleft()
        total, _ = self._ends.get(self._pool.epoch, (None, {}))
        if total is not None and number + self._world >= total:
            self._finish(self._pool.epoch)

    def _start(self, epoch: int, position: int) -> PoolStart:
        pool = self._pool
        if pool is not None and pool.epoch == epoch and pool.first_step <= position:
            return pool
        if self._make.epoch_rows is not None and epoch > 0 and epoch not in self._starts:
            self._starts[epoch] = self._pass_over(epoch - 1)
        return self._make.begin(epoch, self._starts.get(epoch))

    def _pass_over(self, epoch: int) -> dict[str, Any]:
        """Read through an epoch whose end is not known; only where its steps were never drawn here."""
        start = self._start(epoch, 0)
        *_, last = self._make.pools(start)
        return last.next_epoch

    def _messages(self, start: PoolStart) -> Iterator[Any]:
        """The first pool is made here while the other process starts."""
        if not self._prefetch:
            yield from messages(self._make, start, self._rank, self._world)
            return
        pools = self._make.pools(start)
        pool = next(pools)
        pools.close()  # type: ignore[attr-defined]
        with ExitStack() as stack:
            rest: Iterator[Any] = iter(())
            if pool.after is not None:
                rest = prepared(self._make, pool.after, self._prefetch, self._rank, self._world)
                stack.callback(rest.close)  # type: ignore[attr-defined]
            yield from messages_of(self._make, pool, self._rank, self._world)
            yield from rest

    def _finish(self, epoch: int) -> None:
        """Take note of an epoch whose last step was made: only now may the schedule follow it."""
        total, next_epoch = self._ends.pop(epoch, (None, {}))
        if total is None:
            return
        if self._make.epoch_rows is not None:
            self._starts = {epoch + 1: next_epoch}
        before = self._steps_of.get(epoch, self._steps_estimate)
        self._steps_of[epoch] = total
        if epoch == 0 and abs(total - before) > 0.02 * before:
            self._progress.say(f"An epoch has {total:,} steps (estimated were {before:,}).")


def _as_batch(arrays: Arrays) -> Batch:
    inputs = {name: torch.from_numpy(array) for name, array in arrays.inputs.items()}
    return Batch(
        input_ids=inputs["input_ids"],
        attention_mask=inputs["attention_mask"],
        token_type_ids=inputs.get("token_type_ids"),
        labels=torch.from_numpy(arrays.targets),
        ids=arrays.ids,
        lengths=torch.from_numpy(arrays.lengths),
        weights=None if arrays.weights is None else torch.from_numpy(arrays.weights),
    )
