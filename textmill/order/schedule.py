"""Which examples an epoch has, and in which order.

A `Schedule` says it for one epoch; `sampler.BatchPlan` cuts what it says into batches. Strategies
are small classes in files of their own that fit the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from textmill.order.config import OrderConfig

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class EpochOrder:
    """The examples of one epoch."""

    rows: NDArray[np.int64]  # (M,) positions into the training examples
    is_free: bool
    """True: rows of like length may be brought together and batches shuffled. False: the order is meant."""


class Schedule(Protocol):
    """A strategy."""

    def order(self, epoch: int, num_rows: int, rng: np.random.Generator) -> EpochOrder:
        """Return the rows of epoch `epoch` (from 0) out of 0 .. num_rows-1; pure in its arguments."""
        ...


class Shuffle:
    """Every example once, in a random order."""

    def order(self, epoch: int, num_rows: int, rng: np.random.Generator) -> EpochOrder:
        """Return a permutation of all rows."""
        return EpochOrder(rng.permutation(num_rows).astype(np.int64), is_free=True)


_SCHEDULES: dict[str, Callable[[], Schedule]] = {"shuffle": Shuffle}


def schedule_for(config: OrderConfig) -> Schedule:
    """Return the schedule that `[order]` asks for."""
    return _SCHEDULES[config.strategy]()
