"""From the rows of a chunk to examples of one side.

Promises: texts are cleaned, and sides drawn from their hashes, as for data that is at hand; a row
of validation or test is never one of training; a class that is not among the known ones makes a bad
row; every row that is left out is counted with its reason.
What is not covered: conflicts of two labels; duplicates beyond a pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from textmill.core.errors import DataError, nearest
from textmill.core.types import Example, Task, Text
from textmill.data.bad_rows import BadRows
from textmill.data.clean import join_surrogates
from textmill.data.clean_column import clean_column
from textmill.data.columns import given_id, label_name, texts_of
from textmill.data.config import DataConfig
from textmill.data.fit import drop_unfit
from textmill.data.label_sets import label_set, label_spellings
from textmill.data.labels import tidy_label
from textmill.data.mapped_scan import is_blank
from textmill.data.rows import ArrowColumns, Rows
from textmill.data.split import SIDES, Side
from textmill.data.text_hash import hash_texts, positions


@dataclass(frozen=True)
class Usable:
    """What is done to each row; can be sent to another process."""

    config: DataConfig
    task: Task
    labels: tuple[str, ...] | None
    """The class names; None while they are still looked for."""
    held_out: frozenset[int] = field(default_factory=frozenset)
    """Hashes of texts of validation and test files, which never train."""

    def sort(self, rows: Rows, bad: BadRows, counts: Counter[str]) -> dict[Side, list[Example]]:
        """Return the rows that can be used, by side.

        Args:
            rows: N rows.
            bad: what happens to bad rows.
            counts: is added to: `rows`, `unfit`, `missing_text`, `missing_label`, `held_out`, and
                `lacking <column>` for rows that have no such key.

        Raises:
            DataError: a bad row where that is not to be skipped, or a missing column.
        """
        found: dict[Side, list[Example]] = {side: [] for side in SIDES}
        for place, example in self._usable(rows, bad, counts):
            found[SIDES[place]].append(example)
        return found

    def _usable(self, rows: Rows, bad: BadRows, counts: Counter[str]) -> Iterator[tuple[int, Example]]:
        """Yield the rows that can be used with the places of their sides in `SIDES`."""
        counts["rows"] += len(rows)
        given, rows = len(rows), self._with_columns(self.whole_tables(rows, bad), counts)
        rows = drop_unfit(rows, self.config, self.task == "multilabel", bad)
        counts["unfit"] += given - len(rows)
        if not len(rows):
            return
        texts, labels, ids = self._texts(rows, counts), self._labels(rows, bad), self._ids(rows)
        hashes = hash_texts(texts)
        places = self._sides(hashes)
        for index, text in enumerate(texts):
            names = labels[index]
            if is_blank(text):
                counts["missing_text"] += 1
            elif names is None:
                counts["missing_label"] += 1
            elif int(hashes[index]) in self.held_out:
                counts["held_out"] += 1
            elif names is _UNKNOWN:
                counts["unfit"] += 1
            else:
                yield places[index], Example(ids[index], text, names)

    def sort_one_side(self, rows: Rows, bad: BadRows, counts: Counter[str]) -> list[Example]:
        """Return the rows that can be used, of a file that is one side as a whole, in order.

        Args:
            rows: N rows.
            bad: what happens to bad rows.
            counts: is added to, as by `sort`.

        Raises:
            DataError: as from `sort`.
        """
        return [example for _, example in self._usable(rows, bad, counts)]

    def _with_columns(self, rows: Rows, counts: Counter[str]) -> Rows:
        """Return rows with all columns that the project names: of JSON lines any row may lack a key."""
        for column in self._wanted().values():
            if not len(rows) or column is None or column in rows.columns:
                continue
            counts[f"lacking {column}"] += len(rows)
            rows = replace(rows, columns={**rows.columns, column: [None] * len(rows)})
        return rows

    def whole_tables(self, rows: Rows, bad: BadRows) -> Rows:
        """Return rows of a table that has all columns that the project names, else none: all are bad.

        Raises:
            DataError: a column is missing, where bad rows are not to be skipped.
        """
        if not len(rows) or not isinstance(rows.columns, ArrowColumns):
            return rows
        for key, column in self._wanted().items():
            if column is None or column in rows.columns:
                continue
            try:
                rows.column(column, key)
            except DataError as error:
                columns = f"columns {', '.join(rows.columns)}"
                bad.refuse(error, rows.files[0], rows.row_number[0], columns, len(rows))
            return rows.take([])
        return rows

    def _wanted(self) -> Mapping[str, str | None]:
        return {
            "data.text": self.config.text,
            "data.text_pair": self.config.text_pair,
            "data.label": self.config.label,
            "data.id": self.config.id,
        }

    def _texts(self, rows: Rows, counts: Counter[str]) -> list[Text]:
        def cleaned(column: str, key: str) -> list[str]:
            given = [text or "" for text in texts_of(rows, column, key)]
            return clean_column(given, self.config.clean, Counter())

        first = cleaned(self.config.text, "data.text")
        if self.config.text_pair is None:
            return list(first)
        return list(zip(first, cleaned(self.config.text_pair, "data.text_pair"), strict=True))

    def _labels(self, rows: Rows, bad: BadRows) -> list[tuple[str, ...] | None]:
        values = rows.column(self.config.label, "data.label")
        named = [self._names(value, rows, index) for index, value in enumerate(values)]
        if self.labels is None:
            return named
        known = frozenset(self.labels)
        for index, names in enumerate(named):
            new = None if names is None else next((name for name in names if name not in known), None)
            if new is not None:
                bad.refuse(
                    self._unknown(new, rows.origin(index)), rows.files[index], rows.row_number[index], new
                )
                named[index] = _UNKNOWN
        return named

    def _names(self, value: object, rows: Rows, index: int) -> tuple[str, ...] | None:
        if self.task == "multilabel":
            spelled = label_spellings(value, self.config.label_separator, rows, index)
            return None if spelled is None else label_set([join_surrogates(name) for name in spelled])
        name = label_name(value, rows, index)
        tidied = "" if name is None else _tidied(name)
        return (tidied,) if tidied else None

    def _unknown(self, name: str, origin: str) -> DataError:
        return DataError(
            "A class of a stream must be among the first rows or in data.labels",
            got=f"{name!r} in {origin}",
            fix=f"List all classes in data.labels. {nearest(name, (self.labels or ())[:50])}",
        )

    def _ids(self, rows: Rows) -> Sequence[str]:
        if self.config.id is None:
            return [join_surrogates(rows.origin(index)) for index in range(len(rows))]
        values = rows.column(self.config.id, "data.id")
        return [given_id(value, self.config.id, rows.origin(index)) for index, value in enumerate(values)]

    def _sides(self, hashes: npt.NDArray[np.uint64]) -> list[int]:
        """The rule of `split.py`, without its exception for classes that would not train."""
        valid = 0.0 if self.config.valid else self.config.valid_share
        test = 0.0 if self.config.test else self.config.test_share
        place = positions(hashes)
        sides = np.full(len(hashes), SIDES.index("valid"), np.int8)
        sides[place >= 1 - test] = SIDES.index("test")
        sides[place < 1 - valid - test] = SIDES.index("train")
        found: list[int] = sides.tolist()
        return found


_tidied = lru_cache(maxsize=1024)(tidy_label)  # a stream has few classes and many rows
_UNKNOWN: tuple[str, ...] = ("\0",)
