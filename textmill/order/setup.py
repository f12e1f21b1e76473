"""What strategies know about the rows, and the one shape that most of them share.

Most strategies say only which rows come first and how: a head, a function in a file of its own. All
else is the same for all of them, so that a comparison of two differs in that one thing: the head is
`ordered_share` of the first epoch, the rest of the epoch is shuffled, later epochs are shuffled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from textmill.order.balance import balanced_head, small_class_notes
from textmill.order.config import OrderConfig
from textmill.order.difficulty import Difficulty, easiest_first
from textmill.order.epoch import EpochOrder, head_then_shuffled, shuffled

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Setup:
    """The rows as a strategy sees them."""

    config: OrderConfig
    seed: int = 0
    difficulty: Difficulty | None = None
    classes: NDArray[np.int64] | None = None  # (N,)
    labels: tuple[str, ...] = ()
    """Class names, for notes."""

    def hard(self) -> Difficulty:
        """Return the difficulty, which the strategy needs."""
        assert self.difficulty is not None, f"{self.config.strategy} needs a difficulty"
        return self.difficulty

    def easiest_first(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return all positions from easy to hard; by the model's own losses where order.dynamic is on."""
        known = self.hard()
        return easiest_first(known.rank() if self.config.dynamic else known.first_rank(), rng)

    def balanced(self, ranking: NDArray[np.int64], num: int) -> NDArray[np.int64]:
        """Return `num` rows, the first of each class in `ranking`, balanced wherever they are cut."""
        assert self.classes is not None, f"{self.config.strategy} needs the classes of the rows"
        return balanced_head(ranking, self.classes, num, num / max(1, len(ranking)))


Head: TypeAlias = Callable[[Setup, int, int, np.random.Generator], "NDArray[np.int64]"]
"""(setup, rows of the data, rows wanted, generator) -> the head, at most so many different positions."""


@dataclass(frozen=True, slots=True)
class HeadThenShuffle:
    """A strategy that is its head. Every epoch holds every row exactly once."""

    setup: Setup
    head: Head
    is_balanced: bool = False
    """Whether the head's batches are class-balanced."""
    may_repeat: bool = True
    """Whether later epochs may have a head too, where order.dynamic is on."""

    @property
    def reaches_all(self) -> bool:
        """Whether every epoch holds every row exactly once."""
        return True

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence about classes too small for balanced batches."""
        classes, share = self.setup.classes, self.setup.config.ordered_share
        if not self.is_balanced or classes is None or not len(classes):
            return ()
        return small_class_notes(classes, round(share * len(classes)), share, self.setup.labels)

    def order(self, epoch: int, num_rows: int, rng: np.random.Generator) -> EpochOrder:
        """Return the head of the epoch, if it has one, and all other rows shuffled."""
        num = round(self.share(epoch) * num_rows)
        if num == 0:
            return shuffled(num_rows, rng)
        return head_then_shuffled(self.head(self.setup, num_rows, num, rng), num_rows, rng)

    def share(self, epoch: int) -> float:
        """Return the share of an epoch's rows that is ordered.

        It halves from epoch to epoch where order.dynamic is on: what order does, it does to a head that has
        learnt nothing yet, and rows that the model knows best have the least left to teach it.
        """
        if epoch == 0:
            return self.setup.config.ordered_share
        if not (self.setup.config.dynamic and self.may_repeat):
            return 0.0
        return float(self.setup.config.ordered_share * 0.5**epoch)

    def with_difficulty(self, difficulty: Difficulty) -> HeadThenShuffle:
        """Return the same strategy with newer difficulties."""
        return replace(self, setup=replace(self.setup, difficulty=difficulty))
