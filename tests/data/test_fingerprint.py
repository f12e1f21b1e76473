from __future__ import annotations

from dataclasses import replace

import pytest

from textmill.core.types import Example
from textmill.data.fingerprint import SidePrint, print_side, print_splits, what_differs

ROWS = [Example(f"t.csv:{n}", f"text {n}", ("a",)) for n in range(10)]
MORE = [Example("t.csv:11", "one more", ("b",))]


def sides(rows: list[Example]) -> dict[str, SidePrint]:
    return {"train": print_side(rows), "test": print_side(ROWS[:2])}


def renumbered(rows: list[Example]) -> list[Example]:
    return [replace(row, id=f"t.csv:{n}") for n, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (ROWS[5:], "10 rows before, 5 now (-5)"),
        (ROWS + MORE, "10 rows before, 11 now (+1)"),
        (ROWS[:-1] + MORE, "other texts or labels"),
        (renumbered(ROWS[::-1]), "in another order"),
        ([replace(row, id=f"new.csv:{row.id}") for row in ROWS], "under other ids"),
        (ROWS[::-1], "in another order"),
        ([replace(ROWS[0], labels=("b",)), *ROWS[1:]], "other texts or labels"),
    ],
)
def test_what_changed_is_told(rows: list[Example], told: str) -> None:
    before, now = sides(ROWS), sides(rows)
    assert print_splits(before) != print_splits(now)  # type: ignore[arg-type]
    lines = what_differs(before, now)  # type: ignore[arg-type]
    assert len(lines) == 1
    assert lines[0].startswith("train: ")
    assert told in lines[0]


def test_equal_data_differs_in_nothing() -> None:
    assert what_differs(sides(ROWS), sides(list(ROWS))) == []  # type: ignore[arg-type]
    assert print_splits(sides(ROWS)) == print_splits(sides(list(ROWS)))  # type: ignore[arg-type]


def test_moving_a_character_between_fields_changes_the_print() -> None:
    assert print_side([Example("1", "ab", ("c",))]) != print_side([Example("1", "a", ("bc",))])
