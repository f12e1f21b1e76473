from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.order.rows import classes_of, counts
from textmill.core.seeds import numpy_generator
from textmill.order.balance import balance_classes, balanced_head, class_quotas, small_class_notes

shares = st.sampled_from([0.05, 0.3, 0.6, 1.0])


@given(counts, shares)
def test_quotas_are_as_equal_as_the_classes_allow(per_class, share):
    rows = np.array(per_class)
    num = round(share * rows.sum())
    quotas = class_quotas(rows, num, share)
    limits = np.ceil(rows * max(share, 0.5))
    assert quotas.sum() == num
    assert (quotas <= limits).all()
    # A class may give less than another by more than one row only if it has no more to give.
    assert (quotas[quotas < limits] >= quotas.max(initial=0) - 1).all()


def test_a_rare_class_is_not_used_up_by_the_head():
    assert class_quotas(np.array([952, 48]), 300, 0.3).tolist() == [276, 24]
    assert class_quotas(np.array([952, 48]), 1000, 1.0).tolist() == [952, 48]


@given(counts, shares, st.integers(0, 30), st.integers(1, 30))
def test_every_stretch_has_the_mix_of_the_head(per_class, share, begin, size):
    classes = classes_of(per_class)
    num = round(share * len(classes))
    ranking = numpy_generator(0, "test").permutation(len(classes))
    head = balanced_head(ranking, classes, num, share)
    assert len(set(head.tolist())) == len(head) == num
    quotas = np.bincount(classes[head], minlength=len(per_class))
    stretch = np.bincount(classes[head][begin : begin + size], minlength=len(per_class))
    expected = quotas * stretch.sum() / max(1, num)
    assert (np.abs(stretch - expected) <= 1 + len(per_class) * quotas / max(1, num)).all()


@given(st.integers(2, 4), st.integers(5, 20), st.integers(0, 9), st.integers(2, 12))
def test_equal_classes_differ_by_one_row_at_most_in_any_batch(num_classes, rows, begin, size):
    classes = classes_of([rows] * num_classes)
    head = balanced_head(np.arange(len(classes)), classes, len(classes), 1.0)
    batch = np.bincount(classes[head][begin : begin + size], minlength=num_classes)
    assert batch.max() - batch.min() <= 1


def test_rows_of_a_class_keep_their_ranking():
    classes = classes_of([6, 6])
    ranking = np.array([5, 11, 4, 10, 3, 9, 2, 8, 1, 7, 0, 6])
    assert balanced_head(ranking, classes, 6, 0.5).tolist() == [5, 11, 4, 10, 3, 9]


def test_more_classes_than_rows_wanted_end():
    classes = np.arange(100)
    head = balanced_head(classes, classes, 30, 0.3)
    assert len(set(head.tolist())) == 30


def test_small_classes_are_named_with_their_rows():
    classes = classes_of([200, 200, 1, 2])
    (note,) = small_class_notes(classes, 121, 0.3, ("a", "b", "c", "d"))
    assert "'c' (1 row), 'd' (2 rows)" in note
    assert "none is repeated" in note
    assert small_class_notes(classes_of([200, 200]), 120, 0.3, ()) == ()
    (note,) = small_class_notes(classes_of([900, *[1] * 9]), 100, 0.3, ())
    assert "'class 1' (1 row)" in note
    assert "and 4 more" in note


def test_rows_of_several_labels_are_balanced_by_the_rarest():
    targets = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0], [1, 0, 0]], dtype=np.float32)
    assert balance_classes(targets).tolist() == [0, 1, 2, 3, 0]
    assert balance_classes(np.zeros((2, 0))).tolist() == [0, 0]
    assert balance_classes(np.array([1, 0])).tolist() == [1, 0]
