"""Values of a file's columns to ids, texts and class names.

Promises: what cannot be meant as text or as a class is refused with file and row; missing is None.
"""

from __future__ import annotations

import math
from typing import NoReturn

from textmill.core.errors import DataError
from textmill.data.clean import join_surrogates
from textmill.data.duplicates import shorten
from textmill.data.read import Rows


def row_ids(rows: Rows, column: str | None, prefix: str = "") -> list[str]:
    """Return an id for each row: the user's, or `<prefix><file>:<row number>`.

    Raises:
        DataError: there is no such column, a row without an id, or two rows with one.
    """
    if column is None:
        before = {file: join_surrogates(f"{prefix}{file}:") for file in set(rows.files)}
        return [f"{before[file]}{number}" for file, number in zip(rows.files, rows.row_number, strict=True)]
    first: dict[str, int] = {}
    for index, value in enumerate(rows.column(column, "data.id")):
        earlier = first.setdefault(given_id(value, column, rows.origin(index)), index)
        if earlier != index:
            refuse_repeated_id(str(value), rows.origin(earlier), rows.origin(index))
    return list(first)


def given_id(value: object, column: str, origin: str) -> str:
    """Return the user's id of a row.

    Raises:
        DataError: there is none.
    """
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        raise DataError(
            "Each row must have an id",
            got=f"none in {origin}",
            fix=f"Fill the column {column!r}, or leave data.id out.",
        )
    return join_surrogates(str(value))


def refuse_repeated_id(row_id: str, earlier: str, later: str) -> NoReturn:
    """Raise since two rows have one id.

    Raises:
        DataError: always; it names both places.
    """
    raise DataError(
        "Each row must have its own id",
        got=f"{row_id!r} twice, in {earlier} and {later}",
        fix="Make the ids unique, or leave data.id out.",
    )


def texts_of(rows: Rows, column: str, key: str = "data.text") -> list[str | None]:
    """Return the text of each row, None where there is none.

    Raises:
        DataError: there is no such column, or a value that is no text.
    """
    values = rows.column(column, key)
    if set(map(type, values)) == {str}:
        return values
    texts: list[str | None] = []
    for index, value in enumerate(values):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            texts.append(None)
        elif isinstance(value, str):
            texts.append(value)
        else:
            kind = "a number" if isinstance(value, int | float) else f"a value of type {type(value).__name__}"
            raise DataError(
                f"The column {column!r} ({key}) must hold text",
                got=f"{kind}, {shorten(value)}, in {rows.origin(index)}",
                fix=f"Name the column with the text; there are: {', '.join(sorted(rows.columns))}.",
            )
    return texts


def label_name(value: object, rows: Rows, index: int) -> str | None:
    """Return the class name as the file spells it, None where there is none.

    Raises:
        DataError: the value is neither a name nor a whole number.
    """
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str | int):
        return join_surrogates(str(value))
    raise DataError(
        "A label must be a name or a whole number",
        got=f"{shorten(value)} in {rows.origin(index)}",
        fix='Check data.label; several classes a row need task = "multilabel".',
    )
