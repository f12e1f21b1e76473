"""Cleaned rows to Arrow record batches: in files that can be memory-mapped, or in memory.

Promises: rows keep their order; a record batch holds a few megabytes, whatever pieces the rows come in;
files are complete when `finish` returns.
What is not covered: syncing them, and making a folder of files visible as a whole (`build_once`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from textmill.core.types import Text
from textmill.data.mapped import PAIR_SCHEMA, SCHEMA, Shards

_BATCH_CHARS = 4_000_000  # a random row touches one batch; smaller ones only cost bookkeeping
_BATCH_ROWS = 32_768
_SHARD_BYTES = 256 * 1024 * 1024


class ShardWriter:
    """Takes the rows of one source."""

    def __init__(self, folder: Path | None, name: str, has_pairs: bool) -> None:
        """Begin.

        Args:
            folder: gets `<name>-00000.arrow` and so on; None keeps the rows in memory.
            name: of the source.
            has_pairs: whether a text is a pair.
        """
        self._folder = folder
        self._name = name
        self._schema = PAIR_SCHEMA if has_pairs else SCHEMA
        self._has_pairs = has_pairs
        self._columns: list[list[Any]] = [[], [], []]
        self._chars = 0
        self._batches: list[pa.RecordBatch] = []
        self._files: list[Path] = []
        self._open: tuple[pa.OSFile, pa.RecordBatchWriter] | None = None

    def add(self, ids: Sequence[str], texts: Sequence[Text], codes: Sequence[int]) -> None:
        """Take some rows."""
        step = 4096
        for start in range(0, len(ids), step):
            part = slice(start, start + step)
            for column, values in zip(self._columns, (ids, texts, codes), strict=True):
                column.extend(values[part])
            self._chars += sum(map(len, texts[part]))
            if self._chars >= _BATCH_CHARS or len(self._columns[0]) >= _BATCH_ROWS:
                self._flush()

    def finish(self) -> Shards:
        """Write what is left and return all rows."""
        self._flush()
        self._close_shard()
        return Shards(self._batches) if self._folder is None else Shards.open(self._files)

    def abandon(self) -> None:
        """Close the file that is open, after a fault."""
        if self._open is not None:
            self._open[0].close()
            self._open = None

    def _flush(self) -> None:
        ids, texts, codes = self._columns
        if not ids:
            return
        columns = [pa.array(ids, pa.string())]
        for values in zip(*texts, strict=True) if self._has_pairs else (texts,):
            columns.append(pa.array(values, pa.large_string()))
        columns.append(pa.array(codes, pa.int32()))
        batch = pa.record_batch(columns, schema=self._schema)
        self._columns, self._chars = [[], [], []], 0
        if self._folder is None:
            self._batches.append(batch)
            return
        if self._open is None:
            path = self._folder / f"{self._name}-{len(self._files):05d}.arrow"
            self._files.append(path)
            sink = pa.OSFile(str(path), "wb")
            self._open = (sink, pa.ipc.new_file(sink, self._schema))
        self._open[1].write_batch(batch)
        if self._open[0].tell() > _SHARD_BYTES:
            self._close_shard()

    def _close_shard(self) -> None:
        if self._open is None:
            return
        sink, writer = self._open
        writer.close()
        sink.close()
        self._open = None
