"""One file of any kind as chunks of rows, from any place on.

Promises: what `read_chunks` promises, for one file; the last chunk's position is the file's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.find_files import TEXT_KINDS, SourceFile
from textmill.data.read_csv import CsvFormat
from textmill.data.read_jsonl import read_jsonl
from textmill.data.read_table import read_table
from textmill.data.read_text import BLOCK_BYTES, TextFile
from textmill.data.rows import ArrowColumns, Chunk, Position, Rows

Open = Callable[[SourceFile], BinaryIO]


class SameColumns:
    """The rule that all files of a source have the same columns."""

    def __init__(self, bad: BadRows) -> None:
        """Begin with the first file that is seen."""
        self._bad = bad
        self._first = ""
        self._names: set[str] = set()

    def refuses(self, file: str, names: set[str], is_whole: bool, numbers: Sequence[int] = ()) -> bool:
        """Judge the columns of a file; return whether its rows must be left out.

        Args:
            file: its name.
            names: its columns as far as seen.
            is_whole: whether there can be no others.
            numbers: of the rows that are left out then.

        Raises:
            DataError: other columns than in the first file, where bad rows are errors.
        """
        if not names:
            return False
        if not self._names or self._first == file:
            self._first, self._names = file, self._names | names
            return False
        # A JSON key may be absent for a while; new keys beside absent ones are other columns at once.
        is_other = names != self._names if is_whole else bool(names - self._names and self._names - names)
        if not is_other:
            return False
        odd = sorted(names ^ self._names)
        error = DataError(
            "All files of a folder must have the same columns",
            got=f"{', '.join(map(repr, odd))} in only one of {self._first} and {file}",
            fix="Rename or add the columns, or move one of the files away.",
        )
        if numbers or self._bad.policy == "fail":
            first = numbers[0] if numbers else None
            self._bad.refuse(error, file, first, f"columns {', '.join(sorted(names))}", len(numbers))
        return True


def read_file(
    file: SourceFile,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    bad: BadRows,
    start: Position | None = None,
    same: SameColumns | None = None,
    open_file: Open = SourceFile.open,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Chunk]:
    """Yield the rows of one file.

    Args:
        file: which.
        separator: between the columns of csv and tsv; None finds it by the header line.
        encoding: of csv, tsv and jsonl; None finds it.
        bad: what happens to bad rows.
        start: where to go on, or None for the beginning.
        same: the rule of one schema for all files; None for a file of its own.
        open_file: gives its bytes; is asked twice where reading begins in the middle.
        block_bytes: how much is read at a time; chunks are about as large.

    Raises:
        DataError: not readable, or a bad row.
    """
    same = same or SameColumns(bad)
    if start is not None and start.is_end:
        return
    try:
        with open_file(file) as stream:
            if file.kind in TEXT_KINDS:
                rows: _TextRows = (
                    _JsonlRows(file.name, bad)
                    if file.kind in (".jsonl", ".ndjson")
                    else _CsvRows(file, separator, bad)
                )
                if start is not None and start.offset:
                    with open_file(file) as head:
                        rows.begin(
                            next(TextFile(file, head, encoding, None, block_bytes).pieces(_as_it_is)).text
                        )
                text = TextFile(file, stream, encoding, start, block_bytes)
                yield from _text_chunks(file, text, rows, bad, start, same)
            else:
                yield from _table_chunks(file, stream, start, same, block_bytes)
    except pa.ArrowException as err:
        bad.refuse(_unreadable(file, err), file.name, None, "the file, or its rest")
    except OSError as err:
        raise DataError(
            "The data file must be readable",
            got=f"{err.strerror or str(err)!r} for {file.path}",
            fix="Check its permissions.",
        ) from err
    finally:
        bad.flush()


class _TextRows(Protocol):
    """How whole rows of text become columns; keeps what the file's first rows told."""

    def begin(self, head: bytes) -> None:
        """Learn from the file's beginning what the rows mean, without giving them out."""
        ...

    def cut(self, text: bytes, line: int, is_last: bool) -> tuple[int, DataError | None]:
        """As `read_text.Cut`."""
        ...

    def parse(self, text: bytes, line: int, row: int) -> tuple[Mapping[str, Any], list[int], int]:
        """Return columns, row numbers and the last row's number."""
        ...

    @property
    def is_in_header(self) -> bool:
        """Whether the next row tells what the others mean."""
        ...

    @property
    def names(self) -> list[str]:
        """The columns as far as seen."""
        ...

    @property
    def notes(self) -> list[str]:
        """What had to be guessed."""
        ...


class _CsvRows:
    def __init__(self, file: SourceFile, separator: str | None, bad: BadRows) -> None:
        self._file, self._separator, self._bad = file, separator, bad
        self._format: CsvFormat | None = None
        self.is_in_header = True

    def begin(self, head: bytes) -> None:
        self._format = self._find_format(head)
        self.is_in_header = False

    def _find_format(self, head: bytes) -> CsvFormat:
        is_tsv = self._file.kind in (".tsv", ".tab")
        return CsvFormat(head, self._file.name, separator=self._separator, is_tsv=is_tsv)

    def cut(self, text: bytes, line: int, is_last: bool) -> tuple[int, DataError | None]:
        if self._format is None:
            self._format = self._find_format(text)
        return self._format.cut(text, line, is_last)

    def parse(self, text: bytes, line: int, row: int) -> tuple[Mapping[str, Any], list[int], int]:
        assert self._format is not None
        has_header, self.is_in_header = self.is_in_header, False
        body = text[self._format.begin :] if has_header else text
        columns, numbers, last = self._format.parse(body, has_header, row, self._bad)
        return ArrowColumns(columns), numbers, last

    @property
    def names(self) -> list[str]:
        return self._format.names if self._format else []

    @property
    def notes(self) -> list[str]:
        return self._format.notes if self._format else []


class _JsonlRows:
    is_in_header = False
    notes: list[str] = []  # noqa: RUF012 - never changed: nothing is guessed

    def __init__(self, name: str, bad: BadRows) -> None:
        self._name, self._bad = name, bad
        self.names: list[str] = []

    def begin(self, head: bytes) -> None:
        columns, _, _ = read_jsonl(head.decode("utf-8", "replace"), self._name, [], 0, 0, BadRows("skip"))
        self.names = list(columns)

    def cut(self, text: bytes, line: int, is_last: bool) -> tuple[int, DataError | None]:
        return len(text), None

    def parse(self, text: bytes, line: int, row: int) -> tuple[Mapping[str, Any], list[int], int]:
        found = read_jsonl(text.decode("utf-8"), self._name, self.names, line, row, self._bad)
        self.names = list(found[0])
        return found


def _text_chunks(
    file: SourceFile,
    text: TextFile,
    rows: _TextRows,
    bad: BadRows,
    start: Position | None,
    same: SameColumns,
) -> Iterator[Chunk]:
    row = start.row if start else 0
    said: list[str] = []
    for piece in text.pieces(rows.cut):
        columns: Mapping[str, Any] = {name: [] for name in rows.names}
        numbers: list[int] = []
        if piece.fault is not None:
            if rows.is_in_header:
                raise piece.fault  # without the header no row has a meaning
            row += 1
            bad.refuse(piece.fault, file.name, row, piece.text.decode("utf-8", "replace"))
        else:
            columns, numbers, row = rows.parse(piece.text, piece.line, row)
        is_whole = not isinstance(rows, _JsonlRows)
        if same.refuses(file.name, set(columns), is_whole=is_whole, numbers=numbers):
            continue
        notes = tuple(note for note in text.notes + rows.notes if note not in said)
        said.extend(notes)
        offset, line, encoding = piece.after
        found = Rows(columns, [file.name] * len(numbers), numbers, () if start else notes)
        yield Chunk(found, Position(file.name, row, offset, line, encoding))
    if bad.policy == "fail":
        same.refuses(file.name, set(rows.names), is_whole=True)


def _table_chunks(
    file: SourceFile, stream: BinaryIO, start: Position | None, same: SameColumns, block_bytes: int
) -> Iterator[Chunk]:
    """In a table's position, `offset` counts groups done and `line` rows of the group under way."""
    row = start.row if start else 0
    group, inside = (start.offset, start.line) if start else (0, 0)
    for at, columns in read_table(file, stream, group, inside, block_bytes):
        group, inside = (group, inside) if at == group else (at, 0)
        num = len(next(iter(columns.values()), []))
        row, inside = row + num, inside + num
        numbers = list(range(row - num + 1, row + 1))
        if same.refuses(file.name, set(columns), is_whole=True, numbers=numbers):
            continue
        rows = Rows(ArrowColumns(columns), [file.name] * num, numbers)
        yield Chunk(rows, Position(file.name, row, group, inside))


def _as_it_is(text: bytes, line: int, is_last: bool) -> tuple[int, DataError | None]:
    return len(text), None


def _unreadable(file: SourceFile, err: Exception) -> DataError:
    return DataError(
        f"{file.name} must be a whole {file.kind} file",
        got=f"a file that cannot be read ({err})",
        fix="It may be half-copied; copy or write it again.",
    )
