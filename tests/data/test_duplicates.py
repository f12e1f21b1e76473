from __future__ import annotations

import numpy as np

from textmill.data.duplicates import repeated, torn
from textmill.data.text_hash import hash_texts, is_among

ROWS = [("one", 0), ("two", 0), ("one", 0), ("one", 1), (("left", "right"), 0), (("left", "right"), 0)]
HASHES = hash_texts([text for text, _ in ROWS])  # type: ignore[misc]
CODES = np.array([code for _, code in ROWS], np.int32)


def test_all_but_the_first_of_equal_rows_repeat() -> None:
    assert repeated(HASHES, CODES).tolist() == [2, 5]


def test_conflicts_are_found_whatever_their_place() -> None:
    assert [group.tolist() for group in torn(HASHES, CODES)] == [[0, 2, 3]]


def test_conflicts_come_in_order_of_first_appearance() -> None:
    texts = [f"text {number}" for number in range(200)]
    hashes = hash_texts([*texts, *texts[::-1]])
    codes = np.repeat(np.array([0, 1], np.int32), 200)
    assert [group.tolist() for group in torn(hashes, codes)] == [[row, 399 - row] for row in range(200)]


def test_a_text_on_another_side_leaks_whatever_its_label() -> None:
    assert np.flatnonzero(is_among(HASHES, hash_texts(["one"]))).tolist() == [0, 2, 3]


def test_rows_without_company_have_neither() -> None:
    assert not len(repeated(HASHES[:2], CODES[:2]))
    assert torn(HASHES[:0], CODES[:0]) == []
