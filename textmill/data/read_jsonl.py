"""Lines of JSON objects to columns.

Promises: a key that a row lacks is missing there; a line that is no JSON object is a bad row with
its line number; blank lines are no rows.
"""

from __future__ import annotations

import json
from typing import Any

from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.duplicates import shorten


def read_jsonl(
    text: str, name: str, known: list[str], line: int, first_row: int, bad: BadRows
) -> tuple[dict[str, list[Any]], list[int], int]:
    """Return columns, row numbers, and the number of the last row.

    Args:
        text: whole lines.
        name: the file's name, for messages.
        known: keys that earlier rows had; these columns are there in any case.
        line: line ends of the file before the text.
        first_row: rows of the file before the text.
        bad: is told of lines that are no JSON object.

    Raises:
        DataError: a bad row where that is not to be skipped.
    """
    columns: dict[str, list[Any]] = {key: [] for key in known}
    numbers: list[int] = []
    row = first_row
    for line_number, found in enumerate(text.split("\n"), start=line + 1):
        if not found.strip():
            continue
        row += 1
        try:
            values = json.loads(found)
        except (ValueError, RecursionError) as err:  # also an integer too long for Python
            bad.refuse(_no_json(name, found, line_number, err), name, row, found)
            continue
        if not isinstance(values, dict):
            bad.refuse(_no_object(name, found, line_number), name, row, found)
            continue
        num = len(numbers)
        if values.keys() - columns.keys():
            for key in values:
                if key not in columns:
                    columns[key] = [None] * num
        numbers.append(row)
        for key, column in columns.items():
            column.append(values.get(key))
    return columns, numbers, row


def _no_json(name: str, line: str, number: int, err: Exception) -> DataError:
    return DataError(
        f"Each line of {name} must be one JSON object",
        got=f"{shorten(line)} in line {number} ({err})",
        fix="Repair or remove that line.",
    )


def _no_object(name: str, line: str, number: int) -> DataError:
    return DataError(
        f"Each line of {name} must be one JSON object",
        got=f"{shorten(line)} in line {number}",
        fix='Write each row as {"text": ..., "label": ...}.',
    )
