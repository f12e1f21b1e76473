from __future__ import annotations

import numpy as np

from tests.order.rows import head_of, plan_of
from textmill.order.config import OrderConfig
from textmill.order.schedules.competence import competence_sizes

NUM = 1500
CONFIG = OrderConfig(strategy="random-subset", competence_epochs=2.0)


def _subsets(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the place in the fixed sequence of each drawn row, and the size of the subset at each draw."""
    plan = plan_of(CONFIG, [NUM], seed=seed)
    sequence = plan.schedule.sequence(NUM)
    place = sequence.argsort()
    rows = np.concatenate([head_of(plan, 0), head_of(plan, 1)]).astype(np.int64)
    sizes = competence_sizes(NUM, 0, 2 * NUM, 2.0 * NUM, CONFIG.competence_start)
    return place[rows], sizes


def test_each_row_comes_from_a_subset_that_holds_the_ones_before_it():
    places, sizes = _subsets(seed=0)
    assert (places < sizes).all()
    assert (np.diff(sizes) >= 0).all()


def test_the_sizes_are_those_of_competence():
    subset, competence = (
        head_of(plan_of(OrderConfig(strategy=strategy), [NUM]))
        for strategy in ("random-subset", "competence")
    )
    assert len(subset) == len(competence) == NUM
    assert abs(len(set(subset)) - len(set(competence))) < 0.05 * NUM


def test_the_subset_is_fixed_for_a_seed_over_all_epochs_and_another_for_another_seed():
    one, two = (plan_of(CONFIG, [NUM], seed=seed).schedule.sequence(NUM) for seed in (0, 1))
    np.testing.assert_array_equal(one, plan_of(CONFIG, [NUM], seed=0).schedule.sequence(NUM))
    assert one.tolist() != two.tolist()


def test_what_comes_first_is_neither_easy_nor_hard():
    places, _ = _subsets(seed=0)
    assert len(set(places[:128].tolist())) > 64
