from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.order.rows import difficulty_of, head_of, plan_of
from textmill.core.seeds import numpy_generator
from textmill.order.config import OrderConfig
from textmill.order.schedules.competence import competence_sizes, draw_growing

NUM = 2000
COMPETENCE = OrderConfig(strategy="competence", competence_start=0.1)


@given(st.floats(0.01, 1), st.integers(300, 3000), st.floats(0.3, 3))
def test_the_share_grows_with_the_square_root_of_time(start, num, epochs):
    total = epochs * num
    sizes = competence_sizes(num, 0, num, total, start)
    assert (np.diff(sizes) >= 0).all()
    assert sizes[0] == max(128, np.ceil(start * num))
    for draw in (0, num // 3, num - 1):
        share = min(1.0, (draw * (1 - start**2) / total + start**2) ** 0.5)
        assert sizes[draw] == max(128, np.ceil(share * num - 1e-9)) or abs(sizes[draw] - share * num) < 1.01


def test_a_later_epoch_goes_on_where_the_one_before_ended():
    whole = competence_sizes(NUM, 0, 2 * NUM, 2.0 * NUM, 0.1)
    second = competence_sizes(NUM, NUM, NUM, 2.0 * NUM, 0.1)
    np.testing.assert_array_equal(whole[NUM:], second)


def test_each_row_comes_from_the_easiest_share_of_its_time_and_uniformly():
    rank = difficulty_of(NUM).first_rank()
    rows = np.array(head_of(plan_of(COMPETENCE, [NUM])))
    place = rank.argsort(kind="stable").argsort()
    sizes = competence_sizes(NUM, 0, NUM, float(NUM), 0.1)
    blocks = np.repeat(sizes[::32], 32)[:NUM]
    # Ties in rank are broken at random, so a row may stand a few places off.
    shares = place[rows] / blocks
    assert (shares < 1.02).all()
    assert abs(shares.mean() - 0.5) < 0.03


def test_no_row_comes_twice_in_a_block():
    ranking = np.arange(200)
    rows = draw_growing(ranking, np.full(200, 128), numpy_generator(0, "test"))
    assert all(
        len(set(rows[start : start + 32].tolist())) == min(32, 200 - start) for start in range(0, 200, 32)
    )


def test_an_epoch_below_the_end_does_not_reach_every_row_and_says_how_many():
    plan = plan_of(COMPETENCE, [NUM])
    assert 0.4 * NUM < plan.num_reached(0) < 0.75 * NUM
    assert plan.num_reached(1) == NUM
