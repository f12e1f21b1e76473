"""Each control differs from `ordered` in the one thing that it controls for."""

from __future__ import annotations

import numpy as np

from tests.order.rows import classes_of, difficulty_of, head_of, plan_of
from textmill.order.config import OrderConfig, Strategy

PER_CLASS = [100, 100]
CLASSES = classes_of(PER_CLASS)
ROWS = difficulty_of(200)


def head(strategy: Strategy) -> np.ndarray:
    return np.array(head_of(plan_of(OrderConfig(strategy=strategy), PER_CLASS)))


def _is_balanced(rows: np.ndarray) -> bool:
    return (CLASSES[rows[0::2]] != CLASSES[rows[1::2]]).all()


def test_balanced_is_balanced_but_random():
    rows = head("balanced")
    assert _is_balanced(rows)
    assert abs(ROWS.first_rank()[rows].mean() - 0.5) < 0.08
    assert abs(np.corrcoef(np.arange(len(rows)), ROWS.first_rank()[rows])[0, 1]) < 0.4


def test_length_only_runs_from_short_to_long():
    rows = head("length-only")
    assert _is_balanced(rows)
    for kind in (0, 1):
        assert (np.diff(ROWS.lengths[rows[CLASSES[rows] == kind]]) >= 0).all()


def test_clear_only_runs_from_clear_to_unclear():
    rows = head("clear-only")
    assert _is_balanced(rows)
    assert ROWS.clearness is not None
    for kind in (0, 1):
        assert (np.diff(ROWS.clearness[rows[CLASSES[rows] == kind]]) <= 0).all()


def test_hard_first_runs_from_hard_to_easy():
    rows = head("hard-first")
    assert _is_balanced(rows)
    for kind in (0, 1):
        falling = ROWS.first_rank()[rows[CLASSES[rows] == kind]]
        assert (np.diff(falling) <= 0).all()
        assert falling.min() >= np.sort(ROWS.first_rank()[kind == CLASSES])[-30] - 1e-12


def test_label_sorted_has_the_rows_of_ordered_one_class_after_the_other():
    rows = head("label-sorted")
    assert sorted(rows.tolist()) == sorted(head("ordered").tolist())
    assert (np.diff(CLASSES[rows]) >= 0).all()


def test_fixed_controls_have_no_later_head_even_where_the_order_is_dynamic():
    for strategy in ("balanced", "length-only", "clear-only"):
        assert head_of(plan_of(OrderConfig(strategy=strategy, dynamic=True), PER_CLASS), epoch=1) == []
