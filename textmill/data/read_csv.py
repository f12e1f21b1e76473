"""Comma- and tab-separated text to columns of strings.

Promises: all values are strings as they stand in the file, the empty cell is the empty string;
the separator is the one of a `sep=` line, else found by the header line, and said where it is
unexpected; csv follows RFC 4180 (a quoted value may hold separators and line breaks), plain tsv has
no quoting at all, so that a single quotation mark is a character; a row with a mark that swallows
other rows, or with too many or too few values, is an error with its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import csv as pacsv

from textmill.core.errors import DataError

_SEP_LINE = re.compile(r"sep=(.)\r?\n")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_CANDIDATES = ",;\t|"
_NAMES = {"\t": "tab", ",": "','", ";": "';'", "|": "'|'"}
_BLOCK_BYTES = 1 << 20


def read_csv(
    text: str, name: str, *, separator: str | None, is_tsv: bool
) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    """Return the columns of a csv or tsv text and what had to be guessed.

    Args:
        text: the whole file.
        name: the file's name, for messages.
        separator: what the user set, or None to find it.
        is_tsv: plain tab-separated values, without quoting.

    Raises:
        DataError: a row with a wrong number of values, or a header with a repeated name.
    """
    notes: list[str] = []
    declared = _SEP_LINE.match(text)
    if declared:
        text = text[declared.end() :]
        notes.append(f"{name}: the separator is {_shown(declared[1])}, by its first line")
    if not text.strip():
        return {}, tuple(notes)
    header = _first_line(text)
    mark = separator or (declared[1] if declared else _find_separator(header, is_tsv))
    if separator is None and declared is None and mark != ("\t" if is_tsv else ","):
        notes.append(
            f"{name}: the separator is {_shown(mark)}, by its header; set data.separator if that is wrong"
        )
    if not mark.isascii() or mark in '\0\r\n"':
        raise DataError(
            f"The separator of {name} must be one plain ASCII character",
            got=repr(mark),
            fix="Write the file with ',', ';', '|' or tabs between the columns.",
        )
    table = _parse(text, name, mark, quoting=not is_tsv, one_column=mark not in header)
    if not is_tsv and table.num_rows + 1 < text.count("\n"):
        _refuse_glued_rows(text, name, mark)
    names = [column.strip() for column in table.column_names]
    refuse_repeated_names(names, name)
    columns = {column: table.column(index).to_pylist() for index, column in enumerate(names)}
    return columns, tuple(notes)


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


def _first_line(text: str) -> str:
    return text.lstrip("\r\n").partition("\n")[0]


def _find_separator(header: str, is_tsv: bool) -> str:
    if is_tsv:
        return "\t"
    bare = _QUOTED.sub("", header)
    return max(_CANDIDATES, key=lambda mark: (bare.count(mark), -_CANDIDATES.index(mark)))


def _parse(text: str, name: str, mark: str, *, quoting: bool, one_column: bool) -> pa.Table:
    faults: list[pacsv.InvalidRow] = []

    def keep_fault(row: pacsv.InvalidRow) -> str:
        faults.append(row)
        return "error"

    data = text.encode("utf-8", "replace")
    parse = pacsv.ParseOptions(
        delimiter=mark,
        quote_char='"' if quoting else False,
        double_quote=quoting,
        newlines_in_values=quoting,
        # A lone column may hold an empty line as a value; between columns it is no row.
        ignore_empty_lines=not one_column,
        invalid_row_handler=keep_fault,
    )
    longest = _BLOCK_BYTES if len(data) <= _BLOCK_BYTES else min(len(data) + 1, 1 << 30)
    read = pacsv.ReadOptions(use_threads=False, block_size=longest)
    try:
        with pacsv.open_csv(pa.BufferReader(data), read_options=read, parse_options=parse) as reader:
            names = reader.schema.names
        convert = pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=False, check_utf8=False
        )
        return pacsv.read_csv(
            pa.BufferReader(data), read_options=read, parse_options=parse, convert_options=convert
        )
    except pa.ArrowInvalid as err:
        if not faults:
            raise DataError(
                f"{name} must be readable as columns separated by {_shown(mark)}",
                got=f"a file that is not ({err})",
                fix="Check quotation marks and data.separator.",
            ) from err
        first = faults[0]
        where = "a row" if first.number is None else f"row {first.number - 1} below the header"
        raise DataError(
            f"Each row of {name} must have {first.expected_columns} values separated by {_shown(mark)}",
            got=f"{first.actual_columns} in {where}: {first.text[:80]!r}",
            fix="Quote values that hold the separator, repair the row, or set data.separator.",
        ) from err


def _refuse_glued_rows(text: str, name: str, mark: str) -> None:
    """Raise where a quotation mark that was never closed has swallowed the rows up to the next one.

    In a sound file a closing mark stands before a separator or the end of a line; a value of several
    lines whose closing mark stands elsewhere is two rows, or text that should have doubled its marks.
    """
    quoted = re.compile(rf'(?<![^{re.escape(mark)}\r\n])"([^"]*(?:""[^"]*)*)"(.?)')
    for value in quoted.finditer(text):
        if "\n" in value[1] and value[2] not in ("", mark, "\r"):
            first, last = (text.count("\n", 0, place) + 1 for place in value.span())
            raise DataError(
                f"A quoted value of {name} must end at a separator or at the end of a line",
                got=f"a quotation mark inside the value that spans lines {first} to {last}",
                fix=f"Close the quotation mark in line {first}, or double marks that belong to the text.",
            )


def _shown(mark: str) -> str:
    return _NAMES.get(mark, repr(mark))
