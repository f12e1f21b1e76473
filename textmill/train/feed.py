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

    def __init__(self, rows: EncodedRows, plan: BatchPlan, accumulate: int = 1) -> None:
        """Keep what the steps are made of.

        Args:
            rows: N training rows.
            plan: says which of them meet in a batch, epoch by epoch.
            accumulate: batches of a step; the tail of an epoch is a step of fewer.
        """
        self._rows = rows
        self._plan = plan
        self._accumulate = accumulate

    @property
    def max_tokens(self) -> int:
        """Bound on rows x longest row of a batch."""
        return self._plan.max_tokens

    def num_steps(self, epochs: int) -> int:
        """Return the steps of the first `epochs` epochs together."""
        return sum(len(plan_steps(self._plan, epoch, self._accumulate)) for epoch in range(epochs))

    def steps(self, epoch: int, position: int) -> Iterator[Sequence[Batch]]:
        """Yield the steps of an epoch from the `position`-th on."""
        for step in plan_steps(self._plan, epoch, self._accumulate)[position:]:
            yield [self._rows.batch(positions) for positions in step]

    def state(self) -> dict[str, Any]:
        """Return nothing: the plan is a function of seed and epoch."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state, which is empty."""

    def observe(self, ids: Sequence[str], losses: npt.NDArray[np.float32]) -> None:
        """Take note of a step; a fixed order learns nothing from it."""


def plan_steps(plan: BatchPlan, epoch: int, accumulate: int) -> list[list[npt.NDArray[np.int64]]]:
    """Return the optimizer steps of an epoch, each up to `accumulate` batches; the tail is a step too."""
    batches = plan.plan_epoch(epoch)
    return [batches[start : start + accumulate] for start in range(0, len(batches), accumulate)]
