"""Folds and samples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from textmill.data.folds import assign_folds, strata, stratified_sample


def test_a_duplicate_cannot_vouch_for_itself():
    texts, labels = [str(number) for number in range(40)], ["a", "b"] * 20
    fold = assign_folds([*texts, *texts], [*labels, *labels], 4, seed=0)
    np.testing.assert_array_equal(fold[:40], fold[40:])


def test_folds_hold_each_class_evenly():
    labels = ["a"] * 40 + ["b"] * 12
    fold = assign_folds([str(number) for number in range(52)], labels, 4, seed=0)
    assert [np.sum(fold[:40] == number) for number in range(4)] == [10] * 4
    assert [np.sum(fold[40:] == number) for number in range(4)] == [3] * 4


def test_pairs_with_the_same_words_in_other_places_are_different_texts():
    assert len(set(assign_folds([("a", "b"), ("ab", "")], ["x", "x"], 2, seed=0).tolist())) == 2


def test_a_row_of_several_labels_counts_as_the_rarest():
    assert strata([("a",), ("a", "b"), ("a", "b", "c"), ()]).tolist() == [1, 2, 3, 0]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 100))
def test_a_sample_has_the_mix_of_all_rows(counts, most):
    stratum = np.repeat(np.arange(len(counts)), counts)
    sample = stratified_sample(stratum, most, seed=1)
    assert len(set(sample.tolist())) == len(sample) <= most + 2 * len(counts)
    taken = np.bincount(stratum[sample], minlength=len(counts))
    share = min(1.0, most / len(stratum))
    for count, found in zip(counts, taken.tolist(), strict=True):
        assert min(count, 2) <= found <= max(2, count)
        assert found >= int(count * share)
