"""Batches by token budget."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textmill.encode.budget import batches_by_length, padding_share, token_batches

_LENGTHS = st.lists(st.integers(1, 60), max_size=80).map(lambda rows: np.array(rows, dtype=np.int64))


@given(lengths=_LENGTHS, max_tokens=st.integers(1, 200), max_rows=st.none() | st.integers(1, 9))
def test_every_row_is_in_exactly_one_batch_and_no_batch_is_over_budget(lengths, max_tokens, max_rows):
    for cut in (token_batches, batches_by_length):
        batches = cut(lengths, max_tokens, max_rows)
        assert sorted(row for batch in batches for row in batch.tolist()) == list(range(len(lengths)))
        for batch in batches:
            assert len(batch) == 1 or len(batch) * lengths[batch].max() <= max_tokens
            assert max_rows is None or len(batch) <= max_rows
            assert len(batch) > 0


@given(lengths=_LENGTHS, max_tokens=st.integers(1, 200))
def test_batches_are_as_large_as_the_budget_allows(lengths, max_tokens):
    batches = token_batches(lengths, max_tokens)
    for batch, following in itertools.pairwise(batches):
        grown = np.append(batch, following[0])
        assert len(grown) * lengths[grown].max() > max_tokens


def test_the_given_order_is_kept():
    batches = token_batches(np.array([3, 9, 2, 2, 2]), max_tokens=10)
    assert [batch.tolist() for batch in batches] == [[0], [1], [2, 3, 4]]


def test_for_inference_the_longest_come_first_and_ties_keep_their_order():
    batches = batches_by_length(np.array([1, 5, 5, 9]), max_tokens=10)
    assert [batch.tolist() for batch in batches] == [[3], [1, 2], [0]]


def test_padding_share_counts_the_fill():
    assert padding_share(np.array([1, 3]), [np.array([0, 1])]) == pytest.approx(2 / 6)
    assert padding_share(np.array([3, 3]), [np.array([0, 1])]) == 0
    assert padding_share(np.array([], dtype=np.int64), []) == 0
