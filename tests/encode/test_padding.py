"""Rows to rectangular arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textmill.encode.padding import Encoded, PadSide, pad


def _rows(*rows: list[int]) -> list[Encoded]:
    return [Encoded(np.array(row, dtype=np.int32), None) for row in rows]


def test_right_padding_fills_after_the_tokens():
    arrays = pad(_rows([5, 6, 7], [8]), 0, "right", has_type_ids=False)
    assert arrays["input_ids"].tolist() == [[5, 6, 7], [8, 0, 0]]
    assert arrays["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert set(arrays) == {"input_ids", "attention_mask"}


def test_left_padding_fills_before_the_tokens():
    arrays = pad(_rows([5, 6, 7], [8]), 1, "left", has_type_ids=True)
    assert arrays["input_ids"].tolist() == [[5, 6, 7], [1, 1, 8]]
    assert arrays["attention_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]
    assert arrays["token_type_ids"].tolist() == [[0, 0, 0], [0, 0, 0]]


def test_the_mask_comes_from_the_lengths_not_from_the_pad_id():
    arrays = pad(_rows([0, 0], [5, 6, 7]), 0, "right", has_type_ids=False)
    assert arrays["attention_mask"].tolist() == [[1, 1, 0], [1, 1, 1]]


def test_no_rows_give_empty_arrays():
    arrays = pad([], 0, "right", has_type_ids=True)
    assert {array.shape for array in arrays.values()} == {(0, 0)}


@pytest.mark.parametrize("side", ["left", "right"])
@given(rows=st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=9), min_size=1, max_size=9))
def test_what_is_under_the_mask_is_the_row(side: PadSide, rows: list[list[int]]):
    encoded = [Encoded(np.array(row, dtype=np.int32), np.array(row, dtype=np.int32)) for row in rows]
    arrays = pad(encoded, 0, side, has_type_ids=True)
    for index, row in enumerate(rows):
        under = arrays["attention_mask"][index] == 1
        assert arrays["input_ids"][index][under].tolist() == row
        assert arrays["token_type_ids"][index][under].tolist() == row
    for array in arrays.values():
        assert array.flags.c_contiguous
        assert array.dtype == np.int64
