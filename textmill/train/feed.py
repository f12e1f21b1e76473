"""Where the optimizer steps of a training come from.

A `Feed` gives the steps of an epoch one after the other, each as the batches whose gradients are
added up. The loop draws one step ahead to know which step ends an epoch, and tells the feed of
each step that it has made through `observe`.

Promises of every feed: its steps are a pure function of (seed, epoch, data, settings) and of what it was
told through `observe`; `state` tells all that a resume needs beside (epoch, position), as of the last
step that was observed, although one more may have been drawn by then.
What is not covered: several processes (`parallel/` takes every W-th step).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from textmill.core.types import Batch
from textmill.order.difficulty import Difficulty
from textmill.order.losses import EpochLosses
from textmill.order.sampler import BatchPlan
from textmill.train.rows import EncodedRows


class Feed(Protocol):
    """Gives the steps of a training."""

    @property
    def max_tokens(self) -> int:
        """Bound on rows x longest row of a batch."""
        ...

    def num_steps(self, epochs: int) -> int:
        """Return the steps of the first `epochs` epochs, which the learning rate's schedule spans."""
        ...

    def steps(self, epoch: int, position: int) -> Iterator[Sequence[Batch]]:
        """Yield the steps of epoch `epoch` (from 0) from the `position`-th on, each as its batches."""
        ...

    def state(self) -> dict[str, Any]:
        """Return what a resume needs beyond (epoch, position), as JSON values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a `state`; called before `steps`."""
        ...

    def observe(self, ids: Sequence[str], losses: npt.NDArray[np.float32]) -> None:
        """Take note of a step that was made.

        Args:
            ids: the example ids of the step's B rows.
            losses: (B,) the loss of each, in nats, without class weights.
        """
        ...


@dataclass(frozen=True, slots=True)
class Drawn:
    """A step out of a feed."""

    batches: Sequence[Batch]
    is_last: bool
    """Whether the epoch ends with it."""
    seconds: float
    """Time that drawing took since the step before."""


def look_ahead(steps: Iterator[Sequence[Batch]]) -> Iterator[Drawn]:
    """Yield each step once the one after it is drawn, so that the last one is known."""
    begin = time.perf_counter()
    ahead = next(steps, None)
    while ahead is not None:
        step, ahead = ahead, next(steps, None)
        yield Drawn(step, ahead is None, time.perf_counter() - begin)
        begin = time.perf_counter()


class RowFeed:
    """Steps over rows that are all at hand, in the order of a batch plan."""

    def __init__(
        self,
        rows: EncodedRows,
        plan: BatchPlan,
        accumulate: int = 1,
        difficulty: Difficulty | None = None,
    ) -> None:
        """Keep what the steps are made of.

        Args:
            rows: N training rows.
            plan: says which of them meet in a batch, epoch by epoch.
            accumulate: batches of a step; the tail of an epoch is a step of fewer.
            difficulty: of the rows; learns from the model's own losses after each epoch.
        """
        self._rows = rows
        self._plan = plan
        self._accumulate = accumulate
        self.difficulty = difficulty
        self._losses = None if difficulty is None else EpochLosses(rows.ids)
        self._num_left = 0  # steps of the epoch that have not been observed

    @property
    def max_tokens(self) -> int:
        """Bound on rows x longest row of a batch."""
        return self._plan.max_tokens

    def num_steps(self, epochs: int) -> int:
        """Return the steps of the first `epochs` epochs together, by the difficulties known now."""
        return sum(len(plan_steps(self._plan, epoch, self._accumulate)) for epoch in range(epochs))

    def steps(self, epoch: int, position: int) -> Iterator[Sequence[Batch]]:
        """Yield the steps of an epoch from the `position`-th on."""
        planned = plan_steps(self._plan, epoch, self._accumulate)[position:]
        self._num_left = len(planned)
        for step in planned:
            yield [self._rows.batch(positions) for positions in step]

    def state(self) -> dict[str, Any]:
        """Return what the model has shown of the rows; nothing where no difficulty is kept."""
        if self.difficulty is None or self._losses is None:
            return {}
        return {"difficulty": self.difficulty.state(), "losses": self._losses.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        if self.difficulty is not None and self._losses is not None:
            self._losses.restore(state["losses"])
            self._use(self.difficulty.with_state(state["difficulty"]))

    def observe(self, ids: Sequence[str], losses: npt.NDArray[np.float32]) -> None:
        """Take note of a step; with the last one of an epoch the difficulties change."""
        if self.difficulty is None or self._losses is None:
            return
        self._losses.add(ids, losses)
        self._num_left -= 1
        if self._num_left == 0:
            self._use(self.difficulty.after_epoch(self._losses.means()))
            self._losses.clear()

    def _use(self, difficulty: Difficulty) -> None:
        self.difficulty = difficulty
        self._plan = self._plan.with_difficulty(difficulty)


def plan_steps(plan: BatchPlan, epoch: int, accumulate: int) -> list[list[npt.NDArray[np.int64]]]:
    """Return the optimizer steps of an epoch, each up to `accumulate` batches; the tail is a step too."""
    batches = plan.plan_epoch(epoch)
    return [batches[start : start + accumulate] for start in range(0, len(batches), accumulate)]
