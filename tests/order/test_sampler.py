"""The batches of an epoch."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from textmill.core.seeds import numpy_generator
from textmill.encode.budget import padding_share
from textmill.order.config import OrderConfig
from textmill.order.difficulty import Difficulty
from textmill.order.epoch import EpochOrder, Schedule
from textmill.order.sampler import BatchPlan, fill_last_round
from textmill.order.schedule import schedule_for


def _review_like_lengths(num: int = 7000) -> np.ndarray:
    """Return lengths like those of movie reviews: mean 27 tokens, longest above 130."""
    lengths = numpy_generator(0, "lengths").lognormal(np.log(22.5), 0.6, num)
    return np.clip(np.round(lengths), 3, 512).astype(np.int64)


@given(
    lengths=st.lists(st.integers(1, 60), max_size=120).map(lambda rows: np.array(rows, dtype=np.int64)),
    max_tokens=st.integers(60, 300),
    max_rows=st.none() | st.integers(1, 9),
    seed=st.integers(0, 99),
    epoch=st.integers(0, 9),
)
def test_every_example_comes_exactly_once_an_epoch(lengths, max_tokens, max_rows, seed, epoch):
    batches = BatchPlan(lengths, max_tokens, max_rows, seed=seed).plan_epoch(epoch)
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(len(lengths)))
    assert all(len(batch) * lengths[batch].max() <= max_tokens for batch in batches)
    assert all(max_rows is None or len(batch) <= max_rows for batch in batches)


def test_padding_stays_below_five_percent_on_review_like_lengths():
    lengths = _review_like_lengths()
    assert 25 < lengths.mean() < 29
    for max_rows in (None, 32, 64):
        assert padding_share(lengths, BatchPlan(lengths, 864, max_rows).plan_epoch(0)) <= 0.05


def test_the_plan_is_a_pure_function_of_seed_and_epoch():
    lengths = _review_like_lengths(500)
    plan = BatchPlan(lengths, 864, seed=3)
    plan.plan_epoch(0)
    late = plan.plan_epoch(4)
    fresh = BatchPlan(lengths, 864, seed=3).plan_epoch(4)
    assert [batch.tolist() for batch in late] == [batch.tolist() for batch in fresh]
    other = BatchPlan(lengths, 864, seed=4).plan_epoch(4)
    assert [batch.tolist() for batch in late] != [batch.tolist() for batch in other]


def _neighbours(batches: list[np.ndarray]) -> set[tuple[int, int]]:
    return {(one, two) for batch in batches for one in batch.tolist() for two in batch.tolist() if one < two}


def test_the_rows_that_meet_differ_from_epoch_to_epoch():
    plan = BatchPlan(_review_like_lengths(), 864)
    first, second = _neighbours(plan.plan_epoch(0)), _neighbours(plan.plan_epoch(1))
    assert len(first & second) < 0.3 * len(first)


def test_batches_come_in_random_order_of_length():
    lengths = _review_like_lengths()
    longest = [lengths[batch].max() for batch in BatchPlan(lengths, 864).plan_epoch(0)]
    correlation = np.corrcoef(longest[:-1], longest[1:])[0, 1]
    assert abs(correlation) < 0.25


def test_classes_are_mixed_in_batches_when_length_does_not_tell_them_apart():
    lengths = _review_like_lengths()
    is_first = np.arange(len(lengths)) < len(lengths) // 2  # a file sorted by label
    batches = [batch for batch in BatchPlan(lengths, 864).plan_epoch(0) if len(batch) >= 16]
    shares = np.array([is_first[batch].mean() for batch in batches])
    assert ((shares > 0.1) & (shares < 0.9)).mean() > 0.98


class _Backwards:
    """A schedule whose order is meant, over half of the rows."""

    reaches_all = False
    notes: tuple[str, ...] = ()

    def order(self, epoch: int, num_rows: int, rng: np.random.Generator) -> EpochOrder:
        rows = np.arange(num_rows // 2)[::-1]
        return EpochOrder(rows, num_ordered=len(rows))

    def with_difficulty(self, difficulty: Difficulty) -> Schedule:
        return self


def test_an_order_that_is_meant_is_kept():
    plan = BatchPlan(np.full(10, 5, dtype=np.int64), max_tokens=10, schedule=_Backwards())
    assert [batch.tolist() for batch in plan.plan_epoch(0)] == [[4, 3], [2, 1], [0]]
    assert plan.num_reached(0) == 5


@given(sizes=st.lists(st.integers(1, 9), max_size=12), world=st.integers(1, 6))
def test_a_last_round_is_filled_without_losing_or_copying_a_row(sizes, world):
    ends = np.cumsum(sizes)
    batches = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    filled = fill_last_round(batches, world)
    assert len(filled) % world == 0
    assert sorted(np.concatenate([np.zeros(0), *filled]).tolist()) == list(range(sum(sizes)))
    if sum(len(batch) for batch in filled[-world:]) >= world:
        assert all(len(batch) for batch in filled)


def test_no_examples_give_no_batches():
    assert BatchPlan(np.array([], dtype=np.int64), 100).plan_epoch(0) == []


def test_the_default_schedule_is_a_shuffle():
    chosen = schedule_for(OrderConfig()).order(0, 50, numpy_generator(0, "test"))
    assert chosen.num_ordered == 0
    assert sorted(chosen.rows.tolist()) == list(range(50))
