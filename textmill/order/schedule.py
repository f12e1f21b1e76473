"""Which strategy a project asks for, with what it knows about the rows.

The strategies are in `schedules/`, one a file; `sampler.BatchPlan` cuts what they say into batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textmill.order.balance import balance_classes
from textmill.order.config import OrderConfig, Strategy
from textmill.order.difficulty import Difficulty
from textmill.order.epoch import Schedule
from textmill.order.schedules.balanced import balanced
from textmill.order.schedules.clear_only import clear_only
from textmill.order.schedules.competence import Competence
from textmill.order.schedules.hard_first import hard_first
from textmill.order.schedules.label_sorted import label_sorted
from textmill.order.schedules.length_only import length_only
from textmill.order.schedules.ordered import ordered
from textmill.order.schedules.ordered_plain import ordered_plain
from textmill.order.schedules.random_subset import RandomSubset
from textmill.order.schedules.shuffle import Shuffle
from textmill.order.setup import Head, HeadThenShuffle, Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BALANCED_HEADS: dict[Strategy, Head] = {
    "ordered": ordered,
    "balanced": balanced,
    "length-only": length_only,
    "clear-only": clear_only,
    "hard-first": hard_first,
}
_OTHER_HEADS: dict[Strategy, Head] = {"ordered-plain": ordered_plain, "label-sorted": label_sorted}
_FIXED: tuple[Strategy, ...] = ("balanced", "length-only", "clear-only")
"""Heads that the model's losses cannot change; they stay in the first epoch."""


def schedule_for(
    config: OrderConfig,
    *,
    difficulty: Difficulty | None = None,
    class_index: NDArray[Any] | None = None,
    labels: Sequence[str] = (),
    seed: int = 0,
) -> Schedule:
    """Return the schedule that `[order]` asks for.

    Args:
        config: the `[order]` table.
        difficulty: of the N rows, as `difficulty_for` returns it; None where the strategy needs none.
        class_index: (N,) class numbers, or (N, C) of multi-label rows; needed for class-balanced batches.
        labels: the C class names, for notes.
        seed: of the training.
    """
    if config.strategy == "shuffle":
        return Shuffle()
    classes = None if class_index is None else balance_classes(class_index)
    setup = Setup(config, seed, difficulty, classes, tuple(labels))
    if config.strategy == "competence":
        return Competence(setup)
    if config.strategy == "random-subset":
        return RandomSubset(setup)
    head = _BALANCED_HEADS.get(config.strategy) or _OTHER_HEADS[config.strategy]
    return HeadThenShuffle(
        setup,
        head,
        is_balanced=config.strategy in _BALANCED_HEADS,
        may_repeat=config.strategy not in _FIXED,
    )
