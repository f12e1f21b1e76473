"""Rows as they come out of files, and the place in a source up to which they were read.

Promises: a `Position` is plain JSON and enough to read on behind it, byte-exact where the format can
seek; columns that came as Arrow become Python values only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from textmill.core.errors import DataError, nearest


class ArrowColumns(Mapping[str, list[Any]]):
    """Columns that stay Arrow until one is asked for; then it is converted once."""

    def __init__(self, arrays: Mapping[str, pa.Array | pa.ChunkedArray]) -> None:
        """Keep the columns as they are."""
        self.arrays = dict(arrays)
        """Column name -> N values as Arrow."""
        self._lists: dict[str, list[Any]] = {}

    def __getitem__(self, name: str) -> list[Any]:
        """Return the N values of a column as Python values."""
        if name not in self._lists:
            self._lists[name] = values_of(self.arrays[name])
        return self._lists[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the names, in the order of the file."""
        return iter(self.arrays)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.arrays)


def values_of(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of an Arrow column as Python values."""
    try:
        found: list[Any] = array.to_pylist()
    except (OverflowError, ValueError):
        # A time that Python cannot hold: as Arrow shows it; another column may be what counts.
        found = array.cast(pa.string()).to_pylist()
    return found


@dataclass(frozen=True)
class Rows:
    """Columns as they stand in the files; values are strings, numbers, None or nested values."""

    columns: Mapping[str, list[Any]]
    """Column name -> N values."""
    files: list[str]
    """N file names (inside a folder: relative to it)."""
    row_number: list[int]
    """N numbers, counted from 1 in each file without the header."""
    notes: tuple[str, ...] = ()
    """What had to be guessed."""

    def __len__(self) -> int:
        """Return N."""
        return len(self.row_number)

    def origin(self, index: int) -> str:
        """Return `<file>:<row number>` of the row at `index`."""
        return f"{self.files[index]}:{self.row_number[index]}"

    def column(self, name: str, key: str) -> list[Any]:
        """Return the N values of a column.

        Args:
            name: the column.
            key: the setting that named it (`data.text`), for the message.

        Raises:
            DataError: there is no such column; the nearest is named.
        """
        if name not in self.columns:
            where = ", ".join(sorted(set(self.files))[:3])
            raise DataError(
                f"The column {name!r} ({key}) must be in the data",
                got=f"other columns in {where}" if where else "other columns",
                fix=nearest(name, self.columns) + _one_column_hint(self.columns),
            )
        return self.columns[name]

    def part(self, begin: int, end: int | None = None) -> Rows:
        """Return the rows from `begin` up to `end`; Arrow columns stay Arrow."""
        rows = slice(begin, end)
        if isinstance(self.columns, ArrowColumns):
            num = len(self.row_number[rows])
            columns: Mapping[str, list[Any]] = ArrowColumns(
                {name: array.slice(begin, num) for name, array in self.columns.arrays.items()}
            )
        else:
            columns = {name: values[rows] for name, values in self.columns.items()}
        return Rows(columns, self.files[rows], self.row_number[rows], self.notes)

    def take(self, indices: list[int]) -> Rows:
        """Return the rows at `indices`, in that order."""
        return Rows(
            {name: [values[i] for i in indices] for name, values in self.columns.items()},
            [self.files[i] for i in indices],
            [self.row_number[i] for i in indices],
            self.notes,
        )


@dataclass(frozen=True, slots=True)
class Position:
    """How far a source was read: everything before it was given out, nothing behind it."""

    file: str
    """The file's name inside the source; files before it in the order of the source are done."""
    row: int = 0
    """Rows of that file that were read, bad ones too."""
    offset: int = 0
    """Bytes of the (unpacked) text file that hold them, or whole batches or row groups of a table."""
    line: int = 0
    """Line ends before the offset in a text file, for messages."""
    encoding: str | None = None
    """The encoding found so far; None while only ASCII was seen."""
    is_end: bool = False
    """Whether the file was read to its end."""

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> Position:
        """Return the position that `as_json` described."""
        return cls(**table)


@dataclass(frozen=True)
class Chunk:
    """A bounded number of rows and the place behind them; `rows` may be empty."""

    rows: Rows
    after: Position


def _one_column_hint(columns: Mapping[str, list[Any]]) -> str:
    if len(columns) != 1:
        return ""
    only = next(iter(columns))
    guess = next((mark for mark in ";\t|," if mark in only), None)
    return f" The file has one column; looks like {guess!r}, set data.separator." if guess else ""
