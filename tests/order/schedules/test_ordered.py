from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.order.rows import as_lists, classes_of, difficulty_of, head_of, plan_of
from textmill.order.config import OrderConfig

ORDERED = OrderConfig(strategy="ordered")


@given(st.lists(st.integers(20, 60), min_size=2, max_size=4), st.sampled_from([0.1, 0.3, 0.7, 1.0]))
def test_every_batch_of_the_ordered_part_holds_the_classes_in_their_numbers(per_class, share):
    config = OrderConfig(strategy="ordered", ordered_share=share)
    plan, classes = plan_of(config, per_class), classes_of(per_class)
    head = head_of(plan)
    quotas = np.bincount(classes[head], minlength=len(per_class))
    taken = 0
    for batch in plan.plan_epoch(0):
        if taken < len(head):
            found = np.bincount(classes[batch], minlength=len(per_class))
            expected = quotas * len(batch) / len(head)
            assert (np.abs(found - expected) <= 1 + len(per_class) * quotas / len(head)).all()
        taken += len(batch)


def test_two_equal_classes_are_in_each_ordered_batch_in_equal_numbers():
    plan, classes = plan_of(ORDERED, [100, 100]), classes_of([100, 100])
    batches = plan.plan_epoch(0)
    taken = np.cumsum([len(batch) for batch in batches])
    for batch in [batch for batch, end in zip(batches, taken, strict=True) if end <= 60]:
        assert abs(int((classes[batch] == 0).sum()) - int((classes[batch] == 1).sum())) <= 1


def test_difficulty_rises_within_each_class_and_the_easiest_come_first():
    plan, classes = plan_of(ORDERED, [100, 100]), classes_of([100, 100])
    rank, head = difficulty_of(200).first_rank(), np.array(head_of(plan))
    assert len(head) == 60
    for kind in (0, 1):
        rising = rank[head[classes[head] == kind]]
        assert (np.diff(rising) >= 0).all()
        assert rising.max() <= np.sort(rank[classes == kind])[29] + 1e-12


def test_the_ordered_part_comes_first_and_unshuffled_and_the_rest_is_shuffled():
    plan = plan_of(ORDERED, [100, 100])
    batches = plan.plan_epoch(0)
    rows = [row for batch in batches for row in batch.tolist()]
    rank = difficulty_of(200).first_rank()
    assert rank[rows[:60]].mean() < rank[rows[60:]].mean() - 0.2
    quarters = [rank[part].mean() for part in np.array_split(np.array(rows[:60]), 4)]
    assert quarters == sorted(quarters)
    # No batch has rows of both parts.
    assert 60 in np.cumsum([len(batch) for batch in batches])


def test_a_dynamic_order_begins_later_epochs_with_what_the_model_knows_best():
    config = OrderConfig(strategy="ordered", dynamic=True)
    plan = plan_of(config, [100, 100])
    losses = np.linspace(3, 0, 200)
    later = plan.with_difficulty(difficulty_of(200).after_epoch(losses))
    assert [len(head_of(later, epoch)) for epoch in range(4)] == [60, 30, 15, 8]
    classes = classes_of([100, 100])
    head = np.array(head_of(later, 1))
    assert sorted(head[classes[head] == 1].tolist()) == list(range(185, 200))
    assert (np.diff(losses[head[classes[head] == 1]]) >= 0).all()


def test_a_resume_in_a_dynamic_epoch_is_exact():
    config = OrderConfig(strategy="ordered", dynamic=True)
    known = difficulty_of(200).after_epoch(np.random.default_rng(0).random(200))
    plan = plan_of(config, [100, 100]).with_difficulty(known)
    again = plan_of(config, [100, 100]).with_difficulty(difficulty_of(200).with_state(known.state()))
    assert as_lists(plan.plan_epoch(1)) == as_lists(again.plan_epoch(1))
    assert as_lists(plan.plan_epoch(1)) != as_lists(plan_of(config, [100, 100]).plan_epoch(1))


def test_classes_too_small_for_every_batch_are_told():
    assert "'c' (1 row), 'd' (2 rows)" in plan_of(ORDERED, [200, 200, 1, 2]).schedule.notes[0]
    assert plan_of(ORDERED, [200, 200]).schedule.notes == ()
