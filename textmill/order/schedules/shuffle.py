"""`shuffle`: every row once an epoch, in a new random order; what all else is measured against."""

from __future__ import annotations

import numpy as np

from textmill.order.difficulty import Difficulty
from textmill.order.epoch import EpochOrder, Schedule, shuffled


class Shuffle:
    """Every example once, in a random order."""

    reaches_all = True
    notes: tuple[str, ...] = ()

    def order(self, epoch: int, num_rows: int, rng: np.random.Generator) -> EpochOrder:
        """Return a permutation of all rows."""
        return shuffled(num_rows, rng)

    def with_difficulty(self, difficulty: Difficulty) -> Schedule:
        """Return itself: nothing here depends on difficulty."""
        return self
