from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from tests.order.rows import difficulty_of
from textmill.core.seeds import numpy_generator
from textmill.order.difficulty import Difficulty, easiest_first, ranks


@given(st.lists(st.integers(0, 9), min_size=2, max_size=40))
def test_ranks_are_mean_ranks_between_0_and_1(values):
    expected = (rankdata(values) - 1) / (len(values) - 1)
    np.testing.assert_allclose(ranks(np.array(values)), expected, atol=1e-12)


@given(st.integers(2, 40), st.floats(0, 5), st.floats(0.1, 5))
def test_difficulty_never_falls_where_length_and_unclearness_rise(num, length_weight, clear_weight):
    rows = difficulty_of(num)
    weighted = Difficulty(rows.ids, rows.lengths, rows.clearness, length_weight, clear_weight)
    rank = weighted.first_rank()
    for one in range(num):
        is_harder = (rows.lengths >= rows.lengths[one]) & (rows.clearness <= rows.clearness[one])
        assert (rank[is_harder] >= rank[one] - 1e-12).all()
    assert ((rank >= 0) & (rank <= 1)).all()


def test_the_weights_say_how_much_each_part_counts():
    rows = Difficulty(("a", "b"), np.array([2, 9]), np.array([0.1, 0.9], np.float32), 1.0, 3.0)
    np.testing.assert_allclose(rows.first_rank(), [0.75, 0.25])


def test_without_a_teacher_length_decides():
    rows = Difficulty(("a", "b", "c"), np.array([2, 9, 4]), None)
    assert rows.first_rank().argsort().tolist() == [0, 2, 1]


def test_the_mean_loss_replaces_length_and_teacher_once_a_row_was_seen():
    rows = difficulty_of(4).after_epoch(np.array([0.1, 2.0, 0.5, np.nan]))
    np.testing.assert_allclose(rows.rank()[:3], [0.0, 1.0, 0.5])
    assert rows.rank()[3] == rows.first_rank()[3]
    # 0.1 then 3.0 is harder on average than 2.0 then 0.2
    later = rows.after_epoch(np.array([3.0, 0.2, 0.5, np.nan]))
    assert later.rank()[0] > later.rank()[1] > later.rank()[2]


def test_confidence_and_variability_are_those_of_data_maps():
    losses = [np.array([0.1, 2.0]), np.array([0.3, 0.2]), np.array([0.2, np.nan])]
    rows = difficulty_of(2)
    for each in losses:
        rows = rows.after_epoch(each)
    first, second = np.exp([-0.1, -0.3, -0.2]), np.exp([-2.0, -0.2])
    np.testing.assert_allclose(rows.seen.confidence(), [first.mean(), second.mean()])
    np.testing.assert_allclose(rows.seen.variability(), [first.std(), second.std()])
    np.testing.assert_allclose(rows.seen.mean_loss(), [0.2, 1.1])


@given(st.integers(1, 30), st.integers(0, 3))
def test_the_state_is_json_and_exact(num, epochs):
    rows = difficulty_of(num)
    rng = numpy_generator(1, "losses")
    for _ in range(epochs):
        rows = rows.after_epoch(np.where(rng.random(num) < 0.2, np.nan, rng.random(num)))
    back = difficulty_of(num).with_state(json.loads(json.dumps(rows.state())))
    np.testing.assert_array_equal(back.rank(), rows.rank())
    np.testing.assert_array_equal(back.seen.square, rows.seen.square)
    assert difficulty_of(num).state() == {}


def test_rows_of_one_rank_do_not_come_in_file_order():
    order = easiest_first(np.zeros(50), numpy_generator(0, "test"))
    assert sorted(order.tolist()) == list(range(50)) != order.tolist()


def test_losses_of_other_rows_are_refused():
    with pytest.raises(AssertionError):
        difficulty_of(3).with_state(difficulty_of(4).after_epoch(np.ones(4)).state())
