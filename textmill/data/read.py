"""All rows behind a path at once.

Promises: those of `read_chunks`, for data that fits into memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textmill.core.progress import SILENT, Progress
from textmill.data.bad_rows import BadRows
from textmill.data.read_chunks import read_chunks
from textmill.data.rows import Rows as Rows


def read_rows(
    path: str,
    base: Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> Rows:
    """Read all rows behind a path, a folder or an `hf:` name.

    Args:
        path: as in the project file; a relative path is taken from `base`.
        base: the folder of the project file.
        separator: between the columns of csv and tsv; None finds it by the header line.
        encoding: of csv, tsv and jsonl; None finds it.
        bad: what happens to bad rows; None: the first one is an error.
        progress: is told what had to be guessed.

    Raises:
        DataError: nothing there, not readable, no rows, or a bad row.
    """
    columns: dict[str, list[Any]] = {}
    files: list[str] = []
    numbers: list[int] = []
    notes: list[str] = []
    for chunk in read_chunks(path, base, separator=separator, encoding=encoding, bad=bad, progress=progress):
        rows = chunk.rows
        for name in rows.columns:
            columns.setdefault(name, [None] * len(numbers))
        for name, values in columns.items():
            values.extend(rows.columns[name] if name in rows.columns else [None] * len(rows))
        files.extend(rows.files)
        numbers.extend(rows.row_number)
        notes.extend(rows.notes)
    return Rows(columns, files, numbers, tuple(notes))
