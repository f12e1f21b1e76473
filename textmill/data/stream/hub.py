"""Streams through the `datasets` library: names on a hub, local data sets, and folders that it saved.

Promises: class numbers become class names; shards are parts. A saved folder is read from any row at once;
elsewhere going on in a shard passes over the rows before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import datasets

from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.read_hub import class_values, hub_chunks
from textmill.data.rows import Chunk, Position, Rows
from textmill.data.stream.source import Count

_CHUNK_ROWS = 1024


@dataclass(frozen=True)
class HubSource:
    """An iterable data set of the `datasets` library."""

    name: str
    rows: Any
    """A `datasets.IterableDataset`."""

    can_move = True

    @property
    def num_parts(self) -> int:
        """Its shards."""
        return max(1, int(self.rows.num_shards))

    def weight(self, part: int) -> int:
        """Return 1: shards are taken to be of one size."""
        return 1

    def read(self, part: int, after: Position | None, bad: BadRows) -> Iterator[Chunk]:
        """Yield the rows of a shard in chunks."""
        name = self.name if self.num_parts == 1 else f"{self.name}/{part}"
        shard = self.rows.shard(self.num_parts, part) if self.num_parts > 1 else self.rows
        row = after.row if after else 0
        found = iter(shard.skip(row) if row else shard)
        features = self.rows.features or {}
        while block := list(islice(found, _CHUNK_ROWS)):
            columns = {
                column: class_values([values.get(column) for values in block], features.get(column))
                for column in dict.fromkeys(column for values in block for column in values)
            }
            numbers = list(range(row + 1, row + len(block) + 1))
            row += len(block)
            yield Chunk(Rows(columns, [name] * len(block), numbers), Position(name, row))

    def count(self) -> Count:
        """Return what the data set says of itself."""
        splits = getattr(self.rows.info, "splits", None) or {}
        split = splits.get(str(self.rows.split)) if self.rows.split is not None else None
        rows = getattr(split, "num_examples", None) or None
        return Count(rows, is_exact=rows is not None)

    def fingerprint(self) -> str:
        """Return the SHA-256 over name, split, columns and size."""
        facts = repr((self.name, str(self.rows.split), str(self.rows.features), self.count(), self.num_parts))
        return hashlib.sha256(facts.encode()).hexdigest()


@dataclass(frozen=True)
class SavedSource:
    """A folder that `save_to_disk` wrote."""

    path: str
    base: Path
    rows: int
    print: str

    num_parts = 1
    can_move = True

    def weight(self, part: int) -> int:
        """Return 1: shards are taken to be of one size."""
        return 1

    def read(self, part: int, after: Position | None, bad: BadRows) -> Iterator[Chunk]:
        """Yield the rows in chunks."""
        yield from hub_chunks(self.path, self.base, after)

    def count(self) -> Count:
        """Return its rows."""
        return Count(self.rows, is_exact=True)

    def fingerprint(self) -> str:
        """Return the data set's own fingerprint."""
        return hashlib.sha256(self.print.encode()).hexdigest()


def open_hub(name: str, base: Path) -> HubSource | SavedSource:
    """Return the stream of `<dataset>[:split]`; a local folder is taken before the hub.

    Raises:
        DataError: the dataset or the split is not there or cannot be reached.
    """
    path, _, split = name.partition(":")
    local = base / path
    try:
        if (local / "dataset_dict.json").exists() or (local / "dataset_info.json").exists():
            saved = datasets.load_from_disk(str(local))
            if isinstance(saved, datasets.DatasetDict):
                saved = saved[split or "train"]
            return SavedSource(name, base, len(saved), saved._fingerprint)
        loaded = datasets.load_dataset(
            str(local) if local.is_dir() else path, split=split or "train", streaming=True
        )
    except (OSError, ValueError, KeyError, TypeError, datasets.exceptions.DatasetsError) as err:
        raise DataError(
            f"The dataset hf:{name} must be reachable",
            got=f"{type(err).__name__}: {(str(err).splitlines() or [repr(err)])[0][:200]}",
            fix="Check its name, its split and the network, or download it and give its folder.",
        ) from err
    return HubSource(name, loaded)
