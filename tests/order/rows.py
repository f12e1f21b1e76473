"""Rows for tests of orders: lengths, clearness and classes, without any text."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from textmill.core.seeds import numpy_generator
from textmill.order.config import OrderConfig
from textmill.order.difficulty import Difficulty
from textmill.order.sampler import BatchPlan
from textmill.order.schedule import schedule_for

NAMES = ("a", "b", "c", "d")

counts = st.lists(st.integers(0, 40), min_size=1, max_size=4).filter(lambda each: sum(each) > 0)
"""Rows of each class."""


def difficulty_of(num: int, seed: int = 0) -> Difficulty:
    """Return a difficulty of rows with random lengths (2 to 40, many ties) and clearness."""
    rng = numpy_generator(seed, "rows")
    return Difficulty(
        ids=tuple(f"row:{index}" for index in range(num)),
        lengths=rng.integers(2, 41, num),
        clearness=rng.random(num).astype(np.float32),
    )


def classes_of(per_class: list[int]) -> np.ndarray:
    """Return class numbers sorted by class, as a badly shuffled file has them."""
    return np.repeat(np.arange(len(per_class)), per_class)


def plan_of(config: OrderConfig, per_class: list[int], *, max_tokens: int = 120, seed: int = 0) -> BatchPlan:
    """Return the plan of a strategy over rows of some classes."""
    difficulty = difficulty_of(sum(per_class))
    schedule = schedule_for(
        config, difficulty=difficulty, class_index=classes_of(per_class), labels=NAMES, seed=seed
    )
    return BatchPlan(difficulty.lengths, max_tokens, 16, seed=seed, schedule=schedule)


def as_lists(batches: list[np.ndarray]) -> list[list[int]]:
    """Return batches as plain lists, which compare."""
    return [batch.tolist() for batch in batches]


def head_of(plan: BatchPlan, epoch: int = 0) -> list[int]:
    """Return the rows of an epoch whose order is meant."""
    rng = np.random.default_rng(0)
    chosen = plan.schedule.order(epoch, len(plan.lengths), rng)
    return list(chosen.rows[: chosen.num_ordered].tolist())
