"""The rows of a stream that are held in memory: exact checks as for data that is at hand.

Promises: in validation and test rows no text stands twice, a text with two labels is treated as
`data.on_conflict` says, and no text of the test is one of validation; an id that stands twice among the
rows of one source is an error that names both places.
What is not covered: rows of the stream that are not gathered.
"""

from __future__ import annotations

from collections.abc import Sequence

from textmill.core.errors import DataError
from textmill.core.types import Example, Text
from textmill.data.columns import refuse_repeated_id
from textmill.data.config import DataConfig
from textmill.data.duplicates import shorten
from textmill.data.report import Left, listed
from textmill.data.rows import Rows


class Ids:
    """The ids of the rows of one source seen so far."""

    def __init__(self, column: str | None) -> None:
        """Begin; without a column, ids are made of places and need no check."""
        self._column = column
        self._places: dict[str, str] = {}

    def check(self, rows: Rows) -> None:
        """Note the ids of further rows.

        Raises:
            DataError: one of them was there before.
        """
        if self._column is None:
            return
        for index, value in enumerate(rows.columns.get(self._column, [])):
            if value is None or value == "":
                continue  # a bad row, of which others take care
            earlier = self._places.setdefault(str(value), rows.origin(index))
            if earlier != rows.origin(index):
                refuse_repeated_id(str(value), earlier, rows.origin(index))


def settle(rows: Sequence[Example], config: DataConfig) -> tuple[list[Example], Left, Left]:
    """Return the rows that stay, those left out as duplicates, and those in conflict.

    Args:
        rows: of one side or source, in order.
        config: says what happens to a text with two labels.

    Raises:
        DataError: such a text, with `on_conflict = "fail"`.
    """
    kept: dict[tuple[Text, tuple[str, ...]], Example] = {}
    twice: list[str] = []
    labels: dict[Text, set[tuple[str, ...]]] = {}
    for row in rows:
        if (row.text, row.labels) in kept:
            twice.append(row.id)
            continue
        kept[row.text, row.labels] = row
        labels.setdefault(row.text, set()).add(row.labels)
    torn = [row for row in kept.values() if len(labels[row.text]) > 1]
    if torn and config.on_conflict == "fail":
        _refuse_conflict(torn)
    is_dropped = config.on_conflict == "drop"
    stay = [row for row in kept.values() if not is_dropped or len(labels[row.text]) == 1]
    return stay, listed(twice), listed([row.id for row in torn])


def _refuse_conflict(torn: Sequence[Example]) -> None:
    same = [row for row in torn if row.text == torn[0].text][:3]
    rows = " and ".join(f"{', '.join(row.labels)!r} in {row.id}" for row in same)
    raise DataError(
        "One text must have one label (data.on_conflict is 'fail')",
        got=f"{len({row.text for row in torn})} texts with several, the first being "
        f"{shorten(torn[0].text)} as {rows}",
        fix="Correct the rows, or set data.on_conflict to 'drop' or 'keep'.",
    )
