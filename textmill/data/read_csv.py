"""Comma- and tab-separated text to columns of strings, block by block.

Promises: all values are strings as they stand in the file, the empty cell is the empty string;
the separator is the one of a `sep=` line, else found by the header line, and said where it is
unexpected; csv follows RFC 4180 (a quoted value may hold separators and line breaks), plain tsv has
no quoting at all, so that a single quotation mark is a character; a row with a mark that swallows
other rows, or with too many or too few values, is a bad row with its place. Of such a mark only the
line that holds it is bad: the rows that it would have swallowed are rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import csv as pacsv

from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows

_SEP_LINE = re.compile(rb"sep=(.)\r?\n")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_CANDIDATES = ",;\t|"
_NAMES = {"\t": "tab", ",": "','", ";": "';'", "|": "'|'"}


class CsvFormat:
    """How one file is written, by its first rows."""

    def __init__(self, head: bytes, name: str, *, separator: str | None, is_tsv: bool) -> None:
        """Find separator and column names.

        Args:
            head: UTF-8 text from the beginning of the file on, the header line at least.
            name: the file's name, for messages.
            separator: what the user set, or None to find it.
            is_tsv: plain tab-separated values, without quoting.

        Raises:
            DataError: a separator that cannot be one, or a header with a repeated name.
        """
        self.name = name
        self.notes: list[str] = []
        declared = _SEP_LINE.match(head)
        self.begin = declared.end() if declared else 0
        """Bytes before the header."""
        header = head[self.begin :].lstrip(b"\r\n").partition(b"\n")[0].decode("utf-8", "replace")
        said = declared[1].decode() if declared else None
        if said is not None:
            self.notes.append(f"{name}: the separator is {_shown(said)}, by its first line")
        mark = separator or said or _find_separator(header, is_tsv)
        if separator is None and said is None and mark != ("\t" if is_tsv else ","):
            self.notes.append(
                f"{name}: the separator is {_shown(mark)}, by its header; set data.separator if that is wrong"
            )
        if not mark.isascii() or mark in '\0\r\n"':
            raise DataError(
                f"The separator of {name} must be one plain ASCII character",
                got=repr(mark),
                fix="Write the file with ',', ';', '|' or tabs between the columns.",
            )
        self._mark = mark
        self._is_one_column = mark not in header
        self._quoting = not is_tsv
        around = b"[^" + re.escape(mark.encode()) + rb"\r\n]"
        # A mark opens a quoted value only at the beginning of a value; group 3 is one never closed.
        self._value = re.compile(rb"(?<!" + around + rb')"(?:((?>[^"]*(?:""[^"]*)*))"(.?)|())')
        self._raw_names = self._header(head) if head.strip() else []
        self.names = [column.strip() for column in self._raw_names]
        refuse_repeated_names(self.names, name)

    def cut(self, text: bytes, line: int, is_last: bool) -> tuple[int, DataError | None]:
        """Return how much of a text is whole rows, or its first line's length and what is wrong with it.

        Args:
            text: UTF-8, up to some line end.
            line: line ends of the file before it.
            is_last: whether the file ends with it.
        """
        if not self._quoting or b'"' not in text:
            return len(text), None
        spans: list[tuple[int, int]] = []  # quoted values of several lines
        for value in self._value.finditer(text):
            if value[3] is not None:
                if is_last and b"\n" not in text[value.start() :].rstrip(b"\r\n"):
                    return len(text), None  # the mark swallows nothing
                begin = _row_begin(text, value.start(), spans)
                if not is_last:
                    return begin, None
                return begin or _bad_line(text, 0), None if begin else self._never_closed(line)
            if b"\n" not in value[1]:
                continue
            if value[2] not in (b"", b"\r", self._mark.encode()):
                begin = _row_begin(text, value.start(), spans)
                if begin:
                    return begin, None
                last = line + text.count(b"\n", 0, value.end()) + 1
                first = line + text.count(b"\n", 0, value.start()) + 1
                return _bad_line(text, value.start()), self._glued(first, last)
            spans.append(value.span(1))
        return len(text), None

    def parse(
        self, text: bytes, has_header: bool, first_row: int, bad: BadRows
    ) -> tuple[dict[str, pa.ChunkedArray], list[int], int]:
        """Return the columns of whole rows, their numbers, and the number of the last row.

        Args:
            text: UTF-8; from the header on, or from a later row on.
            has_header: which of the two.
            first_row: rows of the file before the text.
            bad: is told of rows with too many or too few values.

        Raises:
            DataError: a bad row where that is not to be skipped.
        """
        shift = first_row - has_header
        if not text.strip() and not (self._is_one_column and not has_header):
            return {name: pa.chunked_array([], pa.large_string()) for name in self.names}, [], first_row
        faults: list[pacsv.InvalidRow] = []

        def keep_fault(row: pacsv.InvalidRow) -> str:
            faults.append(row)
            return "skip" if bad.policy == "skip" else "error"

        try:
            table = self._read(text, None if has_header else self.names, keep_fault)
        except pa.ArrowInvalid as err:
            if not faults:
                raise DataError(
                    f"{self.name} must be readable as columns separated by {_shown(self._mark)}",
                    got=f"a file that is not, behind row {first_row} ({err})",
                    fix="Check quotation marks and data.separator.",
                ) from err
            table = None
        skipped = set()
        for fault in faults:
            row = (fault.number or 1) + shift
            skipped.add(row)
            bad.refuse(self._wrong_width(fault, row), self.name, row, fault.text)
        assert table is not None, "a fault that is not skipped is raised"
        num = table.num_rows + len(skipped)
        columns = {name: table.column(index) for index, name in enumerate(self.names)}
        numbers = range(first_row + 1, first_row + num + 1)
        kept = [row for row in numbers if row not in skipped] if skipped else list(numbers)
        return columns, kept, first_row + num

    def _header(self, head: bytes) -> list[str]:
        text = head[self.begin :]
        parse = self._parse_options(lambda row: "skip")
        read = pacsv.ReadOptions(use_threads=False, block_size=len(text) + 1)
        try:
            with pacsv.open_csv(pa.BufferReader(text), read_options=read, parse_options=parse) as reader:
                return list(reader.schema.names)
        except pa.ArrowInvalid as err:
            raise DataError(
                f"{self.name} must be readable as columns separated by {_shown(self._mark)}",
                got=f"a file that is not ({err})",
                fix="Check quotation marks and data.separator.",
            ) from err

    def _parse_options(self, on_fault: object) -> pacsv.ParseOptions:
        return pacsv.ParseOptions(
            delimiter=self._mark,
            quote_char='"' if self._quoting else False,
            double_quote=self._quoting,
            newlines_in_values=self._quoting,
            # A lone column may hold an empty line as a value; between columns it is no row.
            ignore_empty_lines=not self._is_one_column,
            invalid_row_handler=on_fault,
        )

    def _read(self, text: bytes, names: list[str] | None, on_fault: object) -> pa.Table:
        read = pacsv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names)
        types = dict.fromkeys(names or self._raw_names, pa.large_string())
        convert = pacsv.ConvertOptions(column_types=types, strings_can_be_null=False, check_utf8=False)
        return pacsv.read_csv(
            pa.BufferReader(text),
            read_options=read,
            parse_options=self._parse_options(on_fault),
            convert_options=convert,
        )

    def _wrong_width(self, fault: pacsv.InvalidRow, row: int) -> DataError:
        return DataError(
            f"Each row of {self.name} must have {fault.expected_columns} values separated by "
            f"{_shown(self._mark)}",
            got=f"{fault.actual_columns} in row {row} below the header: {fault.text[:80]!r}",
            fix="Quote values that hold the separator, repair the row, or set data.separator.",
        )

    def _glued(self, first: int, last: int) -> DataError:
        return DataError(
            f"A quoted value of {self.name} must end at a separator or at the end of a line",
            got=f"a quotation mark inside the value that spans lines {first} to {last}",
            fix=f"Close the quotation mark in line {first}, or double marks that belong to the text.",
        )

    def _never_closed(self, line: int) -> DataError:
        return DataError(
            f"A quotation mark of {self.name} must be closed",
            got=f"one in line {line + 1} that is not closed up to the end of the file",
            fix=f"Close the quotation mark in line {line + 1}, or double marks that belong to the text.",
        )


def refuse_repeated_names(columns: Sequence[str], name: str) -> None:
    """Raise where two columns have one name: which of them holds the text or the label cannot be known.

    Raises:
        DataError: a name stands twice in `columns` of the file `name`.
    """
    if len(set(columns)) != len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise DataError(
            f"Each column of {name} must have its own name", got=f"{twice!r} twice", fix="Rename one of them."
        )


def _row_begin(text: bytes, place: int, spans: Sequence[tuple[int, int]]) -> int:
    """Return where the row that holds `place` begins; line ends inside `spans` end no row."""
    begin = text.rfind(b"\n", 0, place) + 1
    for first, last in reversed(spans):
        if first < begin <= last + 1:
            begin = text.rfind(b"\n", 0, first) + 1
    return begin


def _bad_line(text: bytes, place: int) -> int:
    """Return the end of the line that holds `place`."""
    at = text.find(b"\n", place)
    return at + 1 if at >= 0 else len(text)


def _find_separator(header: str, is_tsv: bool) -> str:
    if is_tsv:
        return "\t"
    bare = _QUOTED.sub("", header)
    return max(_CANDIDATES, key=lambda mark: (bare.count(mark), -_CANDIDATES.index(mark)))


def _shown(mark: str) -> str:
    return _NAMES.get(mark, repr(mark))
