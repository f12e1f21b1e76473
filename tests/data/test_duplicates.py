from __future__ import annotations

import pytest

from textmill.core.errors import DataError
from textmill.core.types import Example
from textmill.data.duplicates import drop_duplicates, drop_leaks, find_conflicts, settle_conflicts

ROWS = [
    Example("1", "one", ("a",)),
    Example("2", "two", ("a",)),
    Example("3", "one", ("a",)),
    Example("4", "one", ("b",)),
    Example("5", ("left", "right"), ("a",)),
    Example("6", ("left", "right"), ("a",)),
]


def ids(examples: list[Example]) -> list[str]:
    return [example.id for example in examples]


def test_the_first_of_equal_rows_stays() -> None:
    kept = drop_duplicates(ROWS)
    assert (ids(kept.examples), ids(kept.dropped)) == (["1", "2", "4", "5"], ["3", "6"])


def test_conflicts_are_found_whatever_their_place() -> None:
    assert [ids(group) for group in find_conflicts(ROWS)] == [["1", "3", "4"]]


def test_each_policy_does_what_it_says() -> None:
    assert ids(settle_conflicts(ROWS, "drop").examples) == ["2", "5", "6"]
    assert settle_conflicts(ROWS, "keep").examples == ROWS
    with pytest.raises(DataError, match="'one' as 'a' in 1"):
        settle_conflicts(ROWS, "fail")
    assert settle_conflicts(ROWS[:3], "fail").examples == ROWS[:3]


def test_a_text_on_another_side_leaks_whatever_its_label() -> None:
    kept = drop_leaks(ROWS, [Example("t", "one", ("c",))])
    assert ids(kept.dropped) == ["1", "3", "4"]
