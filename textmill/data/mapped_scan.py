"""One pass over the rows of a source: clean, drop what has no text or label, store, keep only hashes.

Promises: rows are read piece by piece and nothing but numbers is kept of them (20 bytes a row: hashes of
text and id, a label code), besides the spellings of the labels; ids of one source are unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from textmill.core.progress import SILENT, Progress
from textmill.core.types import Text
from textmill.data.bad_rows import BadRows
from textmill.data.clean import join_surrogates
from textmill.data.clean_column import clean_column
from textmill.data.columns import label_name, refuse_repeated_id, row_ids, texts_of
from textmill.data.config import DataConfig
from textmill.data.fit import drop_unfit
from textmill.data.label_sets import label_set, label_spellings
from textmill.data.labels import tidy_label
from textmill.data.mapped import Shards
from textmill.data.mapped_write import ShardWriter
from textmill.data.report import NUM_LISTED, Left
from textmill.data.rows import Rows
from textmill.data.text_hash import hash_names, hash_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_LABEL = -1


@dataclass
class LabelCodes:
    """Label sets and their codes, in order of first appearance, for all sources of a project."""

    is_multilabel: bool = False
    """Whether the label column holds any number of classes a row."""
    label_sets: list[tuple[str, ...]] = field(default_factory=list)
    _codes: dict[tuple[str, ...], int] = field(default_factory=dict)

    def code(self, names: tuple[str, ...]) -> int:
        """Return the code of a label set, a new one for a new set."""
        if names not in self._codes:
            self._codes[names] = len(self.label_sets)
            self.label_sets.append(names)
        return self._codes[names]


@dataclass
class Scan:
    """What is known of the rows of one source that have text and label; M of them."""

    path: str
    shards: Shards
    hashes: NDArray[np.uint64]  # (M,) of the texts
    ids: NDArray[np.uint64]  # (M,) hashes of the ids
    codes: NDArray[np.int32]  # (M,) label codes
    rows: int
    """Rows read, bad ones too."""
    columns: tuple[str, ...]
    notes: tuple[str, ...]
    cleaned: dict[str, int]
    missing_text: Left
    missing_label: Left
    spellings: Counter[str]
    bad_rows: Left


def scan_source(
    path: str,
    pieces: Callable[[Progress], Iterable[Rows]],
    config: DataConfig,
    codes: LabelCodes,
    writer: ShardWriter,
    prefix: str = "",
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> Scan:
    """Take all rows of a source.

    Args:
        path: as in the project file, for the report.
        pieces: begins to read the rows, piece by piece; a second reading is needed only to tell where two
            rows with one id stand.
        config: the `[data]` table.
        codes: gets new label sets.
        writer: gets the rows.
        prefix: what comes before ids made of file name and row number.
        bad: what happens to rows that do not fit; None: the first one is an error.
        progress: is told what had to be guessed.

    Raises:
        DataError: a missing column, a value that does not fit, a row without an id or two rows with one.
    """
    state = _State(config, codes, writer, bad or BadRows())
    for rows in pieces(progress):
        state.add(rows, prefix)
    state.refuse_lacking_columns()
    if config.id is not None:
        _refuse_repeated_ids(state.id_hashes(), map(state.usable, pieces(SILENT)), config.id)
    return state.finish(path)


class _State:
    """What grows while a source is read; numbers of rows in flat memory that is never copied to grow."""

    def __init__(self, config: DataConfig, codes: LabelCodes, writer: ShardWriter, bad: BadRows) -> None:
        self._config = config
        self._bad = bad
        self._codes = codes
        self._writer = writer
        self._spelled: dict[str, int] = {}
        self._hashes = bytearray()  # uint64
        self._kept_ids = bytearray()  # uint64
        self._all_ids = bytearray()  # uint64
        self._labels = bytearray()  # int32
        self._cleaned: Counter[str] = Counter()
        self._spellings: Counter[str] = Counter()
        self._no_text = Listing()
        self._no_label = Listing()
        self._rows = 0
        self._columns: dict[str, None] = {}
        self._lacking: dict[str, tuple[str, Rows]] = {}
        self._notes: dict[str, None] = {}

    def add(self, rows: Rows, prefix: str) -> None:
        """Take a piece."""
        config = self._config
        self._columns.update(dict.fromkeys(rows.columns))
        self._notes.update(dict.fromkeys(rows.notes))
        if not len(rows):
            return
        rows = self.usable(rows)
        self._rows += len(rows)
        ids = row_ids(rows, config.id, prefix)
        texts = self._texts(rows)
        codes = self._label_codes(rows)
        hashes = hash_names(ids)
        if config.id is not None:
            self._all_ids += hashes.tobytes()
        no_text = _blank_rows(texts)
        no_label = [index for index, code in enumerate(codes) if code == _NO_LABEL]
        self._no_text.extend(ids, no_text)
        self._no_label.extend(ids, no_label)
        if no_text or no_label:
            kept = sorted({*range(len(ids))}.difference(no_text, no_label))
            ids, texts, codes = ([column[row] for row in kept] for column in (ids, texts, codes))
            hashes = hashes[kept]
        self._writer.add(ids, texts, codes)
        self._hashes += hash_texts(texts).tobytes()
        self._kept_ids += hashes.tobytes()
        self._labels += np.array(codes, np.int32).tobytes()

    def usable(self, rows: Rows) -> Rows:
        """Return the rows of a piece that are not bad, with all columns that the project names."""
        return drop_unfit(self._with_columns(rows), self._config, self._codes.is_multilabel, self._bad)

    def id_hashes(self) -> NDArray[np.uint64]:
        """Return the hashes of all ids read; only of the user's own."""
        return np.frombuffer(self._all_ids, np.uint64)

    def refuse_lacking_columns(self) -> None:
        """Raise where a column that the project names was in no piece."""
        for name, (key, rows) in self._lacking.items():
            if name not in self._columns:
                rows.column(name, key)

    def finish(self, path: str) -> Scan:
        """Return what was gathered; the shards are complete."""
        return Scan(
            path=path,
            shards=self._writer.finish(),
            hashes=np.frombuffer(self._hashes, np.uint64),
            ids=np.frombuffer(self._kept_ids, np.uint64),
            codes=np.frombuffer(self._labels, np.int32),
            rows=self._rows + self._bad.count,
            columns=tuple(self._columns),
            notes=tuple(self._notes),
            cleaned=dict(self._cleaned),
            missing_text=self._no_text.as_left(),
            missing_label=self._no_label.as_left(),
            spellings=self._spellings,
            bad_rows=Left(self._bad.count, tuple(row.place for row in self._bad.first)),
        )

    def _with_columns(self, rows: Rows) -> Rows:
        """Return a piece with all columns that the project names: one of JSON lines may lack a key."""
        wanted = {self._config.text: "data.text", self._config.label: "data.label"}
        if self._config.text_pair is not None:
            wanted[self._config.text_pair] = "data.text_pair"
        if self._config.id is not None:
            wanted[self._config.id] = "data.id"
        lacking = {name: [None] * len(rows) for name in wanted if name not in rows.columns}
        for name in lacking:
            self._lacking.setdefault(name, (wanted[name], rows))
        return replace(rows, columns={**rows.columns, **lacking}) if lacking else rows

    def _texts(self, rows: Rows) -> list[Text]:
        first = self._cleaned_texts(rows, self._config.text)
        if self._config.text_pair is None:
            return list(first)
        return list(
            zip(first, self._cleaned_texts(rows, self._config.text_pair, "data.text_pair"), strict=True)
        )

    def _cleaned_texts(self, rows: Rows, column: str, key: str = "data.text") -> list[str]:
        given = texts_of(rows, column, key)
        return list(clean_column([text or "" for text in given], self._config.clean, self._cleaned))

    def _label_codes(self, rows: Rows) -> list[int]:
        """Return the code of each row's labels, `_NO_LABEL` where there are none."""
        values = rows.column(self._config.label, "data.label")
        if self._codes.is_multilabel:
            return [self._set_code(value, rows, index) for index, value in enumerate(values)]
        if set(map(type, values)) != {str}:
            named = [label_name(value, rows, index) for index, value in enumerate(values)]
            values = ["" if spelling is None else spelling for spelling in named]
        for spelling, count in Counter(values).items():
            if spelling not in self._spelled:
                name = tidy_label(join_surrogates(spelling))
                self._spelled[spelling] = self._codes.code((name,)) if name else _NO_LABEL
            if self._spelled[spelling] != _NO_LABEL:
                self._spellings[join_surrogates(spelling)] += count
        return list(map(self._spelled.__getitem__, values))

    def _set_code(self, value: object, rows: Rows, index: int) -> int:
        """Return the code of the labels of one row of multi-label data."""
        spelled = label_spellings(value, self._config.label_separator, rows, index)
        if spelled is None:
            return _NO_LABEL
        names = [join_surrogates(spelling).strip() for spelling in spelled]
        self._spellings.update(names)
        return self._codes.code(label_set(names))


class Listing:
    """Counts rows and keeps the first ids."""

    def __init__(self) -> None:
        self._count = 0
        self._first: list[str] = []

    def extend(self, ids: Sequence[str], indices: Sequence[int]) -> None:
        """Add the rows at `indices`."""
        self._count += len(indices)
        self._first += [ids[index] for index in indices[: NUM_LISTED - len(self._first)]]

    def as_left(self) -> Left:
        """Return the count and the first ids."""
        return Left(self._count, tuple(self._first))


def _blank_rows(texts: Sequence[Text]) -> list[int]:
    try:
        return [index for index, text in enumerate(texts) if not text or text.isspace()]  # type: ignore[union-attr]
    except AttributeError:  # pairs
        return [index for index, text in enumerate(texts) if is_blank(text)]


def is_blank(text: Text) -> bool:
    """Return whether a text, or a text of a pair, is empty."""
    return not text.strip() if isinstance(text, str) else not all(part.strip() for part in text)


def _refuse_repeated_ids(hashes: NDArray[np.uint64], pieces: Iterable[Rows], column: str) -> None:
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    if not len(same):
        return
    place = same[np.argmin(order[same + 1])]
    wanted = {int(order[place]), int(order[place + 1])}
    found: list[tuple[str, str]] = []
    start = 0
    for rows in pieces:
        for row in sorted(wanted):
            if start <= row < start + len(rows):
                value = rows.column(column, "data.id")[row - start]
                found.append((str(value), rows.origin(row - start)))
        start += len(rows)
    refuse_repeated_id(found[1][0], found[0][1], found[1][1])
