"""The texts of one column, for what needs no labels."""

from __future__ import annotations

from textmill.core.errors import DataError, nearest
from textmill.data.rows import Rows


def text_column(rows: Rows, name: str) -> list[str]:
    """Return the texts of a column, without missing ones.

    Raises:
        DataError: no such column, or one that holds no text.
    """
    if name not in rows.columns:
        raise DataError("The column must be in the data", got=repr(name), fix=nearest(name, rows.columns))
    texts = [value for value in rows.columns[name] if isinstance(value, str)]
    if not texts:
        raise DataError(
            "The column must hold text", got=f"{name!r} without any", fix="Name another one with --text."
        )
    return texts
