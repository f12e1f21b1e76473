from __future__ import annotations

import numpy as np

from textmill.order.difficulty import Difficulty
from textmill.order.suspects import suspects

LABELS = ("x", "x", "y", "y")


def _rows(clearness: list[float] | None, rivals: tuple[str, ...] = ()) -> Difficulty:
    given = None if clearness is None else np.array(clearness, np.float32)
    return Difficulty(("a", "b", "c", "d"), np.array([3, 4, 5, 6]), given, given=LABELS, rivals=rivals)


def test_the_label_that_the_teacher_believes_least_comes_first():
    found = suspects(_rows([0.9, 0.04, 0.3, 0.8], ("x", "y", "x", "y")), 5)
    assert [each.id for each in found] == ["b", "c"]
    assert found[0].label == "x"
    assert "gives 'x' 4 % and finds 'y' likeliest" in found[0].reason


def test_a_low_but_likeliest_label_is_not_suspect():
    assert suspects(_rows([0.9, 0.4, 0.9, 0.8], ("x", "x", "y", "y")), 5) == []


def test_a_steadily_lost_label_is_more_suspect_than_a_changing_one():
    rows = _rows(None)
    for losses in ([0.1, 3.0, 3.0, 0.1], [0.1, 3.0, 0.2, 0.1], [0.1, 3.0, 4.0, 0.1]):
        rows = rows.after_epoch(np.array(losses))
    found = suspects(rows, 5)
    assert [each.id for each in found] == ["b", "c"]
    assert "over 3 epochs (steady)" in found[0].reason
    assert "(changing)" in found[1].reason


def test_one_epoch_is_too_early_and_nothing_known_accuses_nobody():
    assert suspects(_rows(None).after_epoch(np.full(4, 5.0)), 5) == []
    assert suspects(_rows(None), 5) == []


def test_no_more_than_asked_for():
    assert len(suspects(_rows([0.1, 0.1, 0.1, 0.1], ("y", "y", "x", "x")), 3)) == 3


def test_a_class_of_one_row_is_not_suspected_for_being_alone():
    found = suspects(_rows([0.9, 0.0, 0.3, 0.8], ("x", "y", "x", "y")), 5)
    assert [each.id for each in found] == ["c"]
