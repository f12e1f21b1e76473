"""Rows from files in bounded chunks, from any place on: csv, tsv, jsonl, parquet, arrow, folders of these.

Promises: in csv and tsv every value is a string and only the empty cell is missing (NA, null and
None are values); a tsv has no quoting; rows keep the order of the file, and of the sorted file
names in a folder; what had to be guessed (encoding, separator) is said and kept in `notes`; a row
that does not fit is an error with file and row, or is left out with its place kept; memory does not
grow with the file. The chunks behind a chunk's `after` are those that follow it.

What is not covered: a packed file (`.gz`) cannot seek, so going on in it unpacks what lies before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from textmill.core.errors import DataError
from textmill.core.progress import SILENT, Progress
from textmill.data.bad_rows import BadRows
from textmill.data.find_files import find_files, place_of
from textmill.data.read_file import SameColumns, read_file
from textmill.data.read_text import BLOCK_BYTES
from textmill.data.rows import Chunk, Position

HUB = "hf:"


def read_chunks(
    path: str,
    base: Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    bad: BadRows | None = None,
    start: Position | None = None,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress = SILENT,
) -> Iterator[Chunk]:
    """Yield all rows behind a path, a folder or an `hf:` name, a few MiB at a time.

    Args:
        path: as in the project file; a relative path is taken from `base`.
        base: the folder of the project file.
        separator: between the columns of csv and tsv; None finds it by the header line.
        encoding: of csv, tsv and jsonl; None finds it.
        bad: what happens to bad rows; None: the first one is an error.
        start: where to go on; None: at the beginning.
        block_bytes: how much of a text is read at a time; chunks are about as large.
        progress: is told what had to be guessed.

    Raises:
        DataError: nothing there, not readable, no rows at all, or a bad row.
    """
    bad = bad or BadRows()
    num_rows, columns = 0, False
    for chunk in _chunks(path, base, separator, encoding, bad, start, block_bytes):
        for note in chunk.rows.notes:
            progress.say(note)
        num_rows, columns = num_rows + len(chunk.rows), columns or bool(chunk.rows.columns)
        yield chunk
    bad.flush()
    if not num_rows and start is None:
        raise DataError(
            "There must be at least one row of data",
            got=f"{path} with a header only" if columns else f"the empty file {path}",
            fix="Check that the file was written completely."
            if not bad.count
            else f"All {bad.count} rows are bad: {bad.first[0].reason}.",
        )


def _chunks(
    path: str,
    base: Path,
    separator: str | None,
    encoding: str | None,
    bad: BadRows,
    start: Position | None,
    block_bytes: int,
) -> Iterator[Chunk]:
    if path.startswith(HUB):
        from textmill.data.read_hub import hub_chunks

        yield from hub_chunks(path.removeprefix(HUB), base, start)
        return
    place = place_of(path, base)
    if place.is_dir() and (place / "dataset_info.json").exists():
        from textmill.data.read_hub import saved_chunks

        yield from saved_chunks(place, start)
        return
    files = find_files(path, base)
    same = SameColumns(bad)
    if start is not None:
        files = files[[file.name for file in files].index(start.file) :]
    for file in files:
        yield from read_file(
            file,
            separator=separator,
            encoding=encoding,
            bad=bad,
            start=start if start is not None and start.file == file.name else None,
            same=same,
            block_bytes=block_bytes,
        )
