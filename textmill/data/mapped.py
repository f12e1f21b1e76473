"""Rows that lie in Arrow record batches, memory-mapped or in memory, as a sequence of examples.

Promises: opening costs nothing that grows with the number of rows; an `Example` is made when it is
asked for and kept by nobody; a side of a split is a list of row numbers into the rows of its source,
so that no text is stored twice; pickling sends the place, not the rows.
What is not covered: changing rows. A file that is deleted stays readable while it is open.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa

from textmill.core.types import Example, Text
from textmill.data.fingerprint import SidePrint, print_rows
from textmill.data.text_hash import hash_label_sets, hash_names, hash_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.large_string()), ("label", pa.int32())])
PAIR_SCHEMA = SCHEMA.insert(2, pa.field("text_pair", pa.large_string()))
BLOCK_ROWS = 4096


class Shards:
    """All rows of one source in their order: columns `id`, `text`, perhaps `text_pair`, `label`."""

    def __init__(self, batches: Sequence[pa.RecordBatch], files: Sequence[Path] = ()) -> None:
        """Keep the record batches; `files` are those that they are mapped from."""
        self._batches = [batch for batch in batches if batch.num_rows]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)]).tolist()
        self._files = tuple(files)

    @classmethod
    def open(cls, files: Sequence[Path]) -> Shards:
        """Map Arrow files."""
        batches: list[pa.RecordBatch] = []
        for file in files:
            reader = pa.ipc.open_file(pa.memory_map(str(file)))
            batches += [reader.get_batch(index) for index in range(reader.num_record_batches)]
        return cls(batches, files)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the names of the files; rows in memory go as they are."""
        return (Shards.open, (self._files,)) if self._files else (Shards, (self._batches,))

    def value(self, column: str, row: int) -> Any:
        """Return one value."""
        place = bisect_right(self._starts, row) - 1
        return self._batches[place].column(column)[row - self._starts[place]].as_py()

    def ids(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the ids at a few `rows` in any order."""
        places = np.searchsorted(self._starts, rows, side="right") - 1
        columns = self._id_columns
        within = (rows - np.asarray(self._starts)[places]).tolist()
        return [columns[place][row].as_py() for place, row in zip(places.tolist(), within, strict=True)]

    @cached_property
    def _id_columns(self) -> list[pa.Array]:
        return [batch.column("id") for batch in self._batches]

    def text(self, row: int) -> Text:
        """Return the text, or pair of texts, of one row."""
        first: str = self.value("text", row)
        return (first, self.value("text_pair", row)) if self.has_pairs else first

    @property
    def has_pairs(self) -> bool:
        """Whether a row has two texts."""
        return bool(self._batches) and "text_pair" in self._batches[0].schema.names

    def take(self, column: str, rows: NDArray[np.int64]) -> list[Any]:
        """Return the values of a column at `rows`, which are best ascending, as Python values."""
        values: list[Any] = []
        for place, found in self._by_batch(rows):
            values += self._batches[place].column(column).take(pa.array(found)).to_pylist()
        return values

    def texts(self, rows: NDArray[np.int64]) -> list[Text]:
        """Return the texts, or pairs of texts, at `rows`."""
        first = self.take("text", rows)
        return list(zip(first, self.take("text_pair", rows), strict=True)) if self.has_pairs else first

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the label codes at `rows`."""
        labels = [
            self._batches[place].column("label").to_numpy()[found] for place, found in self._by_batch(rows)
        ]
        return np.concatenate([np.zeros(0, np.int32), *labels])

    def _by_batch(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield runs of rows that lie in one batch: its number, and the rows counted from its start."""
        places = np.searchsorted(self._starts, rows, side="right") - 1
        cuts = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), len(rows)]
        for start, end in pairwise(cuts):
            if start < end:
                place = int(places[start])
                yield place, rows[start:end] - self._starts[place]


class MappedExamples(Sequence[Example]):
    """The rows of one side."""

    def __init__(
        self,
        shards: Shards,
        rows: NDArray[np.int64],
        label_sets: Sequence[tuple[str, ...]],
        known_print: SidePrint | None = None,
        cache: Path | None = None,
    ) -> None:
        """Keep where the rows are.

        Args:
            shards: the rows of the source.
            rows: (N,) rows of this side.
            label_sets: the class names for each label code.
            known_print: the fingerprint, if it is known.
            cache: the folder of caches that the shards lie in; None for rows in memory.
        """
        self.shards = shards
        self.rows = rows
        self.label_sets = tuple(label_sets)
        self.cache = cache
        self._print = known_print

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> MappedExamples: ...
    def __getitem__(self, index: int | slice) -> Example | MappedExamples:
        """Return one example, or a part as another sequence."""
        if isinstance(index, slice):
            return MappedExamples(self.shards, self.rows[index], self.label_sets)
        row = int(self.rows[index])
        labels = self.label_sets[self.shards.value("label", row)]
        return Example(self.shards.value("id", row), self.shards.text(row), labels)

    def __iter__(self) -> Iterator[Example]:
        for start in range(0, len(self), BLOCK_ROWS):
            rows = self.rows[start : start + BLOCK_ROWS]
            ids, texts = self.shards.take("id", rows), self.shards.texts(rows)
            for row_id, text, code in zip(ids, texts, self.shards.codes(rows).tolist(), strict=True):
                yield Example(row_id, text, self.label_sets[code])

    def __eq__(self, other: object) -> bool:
        """Compare with any sequence of examples, row by row."""
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    @property
    def print(self) -> SidePrint:
        """The fingerprint of the rows."""
        if self._print is None:
            names = hash_label_sets(self.label_sets)
            ids = [hash_names(self.shards.take("id", rows)) for rows in self._blocks()]
            texts = [hash_texts(self.shards.texts(rows)) for rows in self._blocks()]
            none = np.zeros(0, np.uint64)
            self._print = print_rows(
                np.concatenate([none, *ids]), np.concatenate([none, *texts]), names[self.label_codes()]
            )
        return self._print

    def texts(self, start: int, stop: int) -> list[Text]:
        """Return the texts from `start` to before `stop`."""
        return self.shards.texts(self.rows[start:stop])

    def ids_at(self, positions: NDArray[np.int64]) -> list[str]:
        """Return the ids of the examples at `positions` (B,), in any order."""
        return self.shards.ids(self.rows[positions])

    def label_codes(self) -> NDArray[np.int32]:
        """Return the (N,) places of the rows' labels in `label_sets`."""
        codes = [self.shards.codes(rows) for rows in self._blocks()]
        return np.concatenate([np.zeros(0, np.int32), *codes])

    def count_labels(self) -> Counter[str]:
        """Return class -> rows that have it."""
        numbers = np.bincount(self.label_codes(), minlength=len(self.label_sets))
        counts: Counter[str] = Counter()
        for names, number in zip(self.label_sets, numbers.tolist(), strict=True):
            if number:
                counts.update(dict.fromkeys(names, number))
        return counts

    def _blocks(self) -> Iterator[NDArray[np.int64]]:
        for start in range(0, len(self), BLOCK_ROWS):
            yield self.rows[start : start + BLOCK_ROWS]


def text_blocks(examples: Sequence[Example], block_rows: int = BLOCK_ROWS) -> Iterator[list[Text]]:
    """Yield the texts of any examples, some thousand at a time, so that they need not be held together."""
    for start in range(0, len(examples), block_rows):
        stop = min(start + block_rows, len(examples))
        if isinstance(examples, MappedExamples):
            yield examples.texts(start, stop)
        else:
            yield [example.text for example in examples[start:stop]]
