"""`random-subset`: the growing subsets of `competence`, with random rows; a control (Wu et al. 2021).

Wu, Dyer and Neyshabur found that what curricula gain comes from the growing size of the set, not from
its order. This has the same sizes draw for draw, over one random sequence of rows that is fixed for the
seed: each subset holds the ones before it, in later epochs too. Like `competence` it draws with
repetition, so that an epoch below `competence_epochs` does not reach every row (`BatchPlan.num_reached`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from textmill.core.seeds import numpy_generator
from textmill.order.difficulty import Difficulty
from textmill.order.epoch import EpochOrder, Schedule, shuffled
from textmill.order.schedules.competence import competence_sizes, draw_growing
from textmill.order.setup import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RandomSubset:
    """Draws from a fixed random sequence, of which a growing part may come."""

    setup: Setup

    @property
    def reaches_all(self) -> bool:
        """No: rows are drawn with repetition while the subset grows."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing to say."""
        return ()

    def sequence(self, num_rows: int) -> NDArray[np.int64]:
        """Return the fixed sequence; each subset is its first so many rows."""
        return numpy_generator(self.setup.seed, "order", "subset").permutation(num_rows).astype(np.int64)

    def order(self, epoch: int, num_rows: int, rng: np.random.Generator) -> EpochOrder:
        """Return N draws from the growing subset, or a shuffle once it is whole."""
        total = self.setup.config.competence_epochs * num_rows
        if epoch * num_rows >= total:
            return shuffled(num_rows, rng)
        start = self.setup.config.competence_start
        sizes = competence_sizes(num_rows, epoch * num_rows, num_rows, total, start)
        rows = draw_growing(self.sequence(num_rows), sizes, rng)
        return EpochOrder(rows, num_ordered=len(rows))

    def with_difficulty(self, difficulty: Difficulty) -> Schedule:
        """Return itself: nothing here depends on difficulty."""
        return self
