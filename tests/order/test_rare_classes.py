"""Classes of one and two rows, from the texts to the batches of a training."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from tests.toy import toy_examples
from textmill.core.types import Example
from textmill.order.config import OrderConfig, Strategy
from textmill.order.make import difficulty_for
from textmill.order.sampler import BatchPlan
from textmill.order.schedule import schedule_for

NAMES = ("a", "b", "c", "d")
LABELS = ["a"] * 200 + ["b"] * 200 + ["c", "d", "d"]
EXAMPLES = [
    Example(each.id, each.text, (label,)) for each, label in zip(toy_examples(403), LABELS, strict=True)
]
LENGTHS = np.array([len(str(each.text).split()) for each in EXAMPLES])
CLASSES = np.array([NAMES.index(label) for label in LABELS])


@pytest.fixture(scope="module")
def known():
    return difficulty_for(OrderConfig(strategy="ordered", teacher_folds=2), EXAMPLES, LENGTHS, 0)


@pytest.mark.parametrize("strategy", get_args(Strategy))
def test_all_rows_are_reached_and_none_is_copied_to_fill_a_batch(known, strategy):
    schedule = schedule_for(
        OrderConfig(strategy=strategy), difficulty=known, class_index=CLASSES, labels=NAMES, seed=0
    )
    plan = BatchPlan(LENGTHS, 8 * 40, 8, seed=0, schedule=schedule)
    for epoch in range(2):
        batches = plan.plan_epoch(epoch)
        if schedule.reaches_all:
            assert sorted(np.concatenate(batches).tolist()) == list(range(403))
        assert all(len(set(batch.tolist())) > len(batch) // 2 for batch in batches)


def test_the_user_is_told_once(known):
    config = OrderConfig(strategy="ordered")
    (note,) = schedule_for(config, difficulty=known, class_index=CLASSES, labels=NAMES).notes
    assert "'c' (1 row), 'd' (2 rows)" in note
    assert schedule_for(OrderConfig(), class_index=CLASSES, labels=NAMES).notes == ()
