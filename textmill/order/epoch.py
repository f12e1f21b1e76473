"""What a schedule says about one epoch.

Promise: which rows come, and how many of them, from the first, come in an order that is meant.
What is not covered: how the rows are cut into batches (`sampler.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from textmill.order.difficulty import Difficulty


@dataclass(frozen=True, slots=True)
class EpochOrder:
    """The examples of one epoch: an ordered head, then a free tail."""

    rows: NDArray[np.int64]  # (M,) positions into the training examples
    num_ordered: int = 0
    """The first so many rows come as they stand. Of the others, rows of like length may be brought
    together and batches shuffled; no batch holds rows of both."""


class Schedule(Protocol):
    """A strategy, with all that it knows about the rows."""

    @property
    def reaches_all(self) -> bool:
        """Whether every epoch holds every row exactly once."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that the user should read before the first step."""
        ...

    def order(self, epoch: int, num_rows: int, rng: np.random.Generator) -> EpochOrder:
        """Return the rows of epoch `epoch` (from 0) out of 0 .. num_rows-1; pure in its arguments."""
        ...

    def with_difficulty(self, difficulty: Difficulty) -> Schedule:
        """Return the same strategy with newer difficulties."""
        ...


def shuffled(num_rows: int, rng: np.random.Generator) -> EpochOrder:
    """Return every row once, in a random order that is free."""
    return EpochOrder(rng.permutation(num_rows).astype(np.int64))


def head_then_shuffled(head: NDArray[np.int64], num_rows: int, rng: np.random.Generator) -> EpochOrder:
    """Return the rows of `head` as they stand, then all others in a random order that is free.

    Args:
        head: (H,) different positions.
        num_rows: of the data.
        rng: of the epoch.
    """
    is_left = np.ones(num_rows, dtype=np.bool_)
    is_left[head] = False
    rest = rng.permutation(np.flatnonzero(is_left)).astype(np.int64)
    return EpochOrder(np.concatenate([head, rest]), num_ordered=len(head))
