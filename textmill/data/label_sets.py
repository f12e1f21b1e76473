"""The label column of multi-label data: the set of class names of each row.

Promises: a row's names are sorted and each stands once; a name is spelled and tidied as for single labels.
What a value means, in every kind of file:

    ["a", "b"]      a list (jsonl, parquet, arrow): its names
    a, b            text: cut at `data.label_separator`, blanks around the names dropped
    ["a", "b"]      text that is a list as JSON or Python writes it (so pandas writes lists to csv): its names
    [] or ""        no class applies; the row is labelled and stays. In csv and tsv this is the empty cell
    null, no key    nobody has labelled the row: it is dropped and counted (jsonl, parquet, arrow)

What is not covered: a column of 0 and 1 for each class.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from textmill.core.errors import DataError
from textmill.data.columns import label_name
from textmill.data.duplicates import shorten
from textmill.data.labels import tidy_label
from textmill.data.rows import Rows

_PRINTED_ARRAY = re.compile(r"""['"]\s+['"]""")
"""Two names without a comma: NumPy prints arrays so, and Python would read them as one name."""


def label_spellings(value: object, separator: str, rows: Rows, index: int) -> list[str] | None:
    """Return the names of one row as they are spelled, None where nobody labelled it.

    Args:
        value: of the label column.
        separator: `data.label_separator`.
        rows: where the value stands, for messages.
        index: of the row.

    Raises:
        DataError: a value that is neither names nor a list of names.
    """
    if isinstance(value, str):
        listed = _written_list(value, rows, index)
        if listed is None:
            return [part for part in value.split(separator) if tidy_label(part)]
        value = listed
    if isinstance(value, list | tuple | set):
        names = [label_name(item, rows, index) for item in value]
        return [name for name in names if name is not None and tidy_label(name)]
    name = label_name(value, rows, index)
    return None if name is None else [name]


def label_set(spellings: list[str]) -> tuple[str, ...]:
    """Return the class names of a row: tidied, sorted, each once."""
    return tuple(sorted({tidy_label(spelling) for spelling in spellings}))


def looks_like_sets(values: list[Any], separator: str = ",") -> bool:
    """Return whether a column seems to hold sets of classes rather than one class a row.

    That is where values are lists, or where the parts of the values are fewer than the values that
    they form: `a`, `b`, `a, b` are three values of two parts.
    """
    if any(isinstance(value, list | tuple | set) for value in values):
        return True
    found = {value for value in values if isinstance(value, str) and value.strip()}
    joined = {value for value in found if separator in value}
    parts = {tidy_label(part) for value in found for part in value.split(separator)}
    return len(joined) >= 2 and len(parts) < len(found) and max(map(len, parts)) <= _LONGEST_NAME


_LONGEST_NAME = 40
"""Characters of a class name; longer parts are the clauses of sentences."""


def _written_list(text: str, rows: Rows, index: int) -> list[Any] | None:
    """Return the list that a text spells out, None where it is no list."""
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return None
    if _PRINTED_ARRAY.search(stripped):
        raise DataError(
            "A list of labels written as text must have commas",
            got=f"{shorten(text)} in {rows.origin(index)}",
            fix="Turn NumPy arrays into lists before writing the file, or write a Parquet file.",
        )
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(stripped)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(found, list):
            return found
    return None
