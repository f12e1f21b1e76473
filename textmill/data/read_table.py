"""Parquet and Arrow files in bounded batches.

Promises: one batch or page at a time is in memory; class numbers of the `datasets` library become
class names; a position is the row group (or record batch) and the row in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from textmill.data.find_files import SourceFile
from textmill.data.read_csv import refuse_repeated_names
from textmill.data.rows import values_of

_BATCH_ROWS = 4096
CHUNK_BYTES = 4 << 20


def read_table(
    file: SourceFile, stream: BinaryIO, start: int, skip: int, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """Yield (row groups or batches done, columns) from row `skip` of group `start` on.

    A part of a group counts as its beginning: the first number is that of the group under way.

    Raises:
        pa.ArrowException: a damaged file.
        DataError: two columns of one name.
    """
    if file.kind == ".parquet":
        yield from _parquet(file, stream, start, skip, chunk_bytes)
    else:
        yield from _arrow(file, stream, start, skip, chunk_bytes)


def num_rows(file: SourceFile, stream: BinaryIO) -> int:
    """Return the rows of a parquet or arrow file, from what it says of itself."""
    if file.kind == ".parquet":
        return int(pq.ParquetFile(stream).metadata.num_rows)
    reader = _reader(stream)
    if isinstance(reader, pa.RecordBatchFileReader):
        return sum(reader.get_batch(index).num_rows for index in range(reader.num_record_batches))
    return sum(batch.num_rows for batch in reader)


def _parquet(
    file: SourceFile, stream: BinaryIO, start: int, skip: int, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    opened = pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)
    schema = opened.schema_arrow
    refuse_repeated_names(schema.names, file.name)
    classes = _class_names(schema)
    if not opened.num_row_groups:
        yield 0, {name: pa.array([], schema.field(name).type) for name in schema.names}
    for group in range(start, opened.num_row_groups):
        for batch in opened.iter_batches(_BATCH_ROWS, row_groups=[group], use_threads=False):
            for part in _bounded(batch, chunk_bytes):
                taken = min(skip, part.num_rows)
                skip -= taken
                if taken < part.num_rows:
                    yield group, _columns(part.slice(taken), classes)
        skip = 0


def _arrow(
    file: SourceFile, stream: BinaryIO, start: int, skip: int, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    reader = _reader(stream)
    refuse_repeated_names(reader.schema.names, file.name)
    classes = _class_names(reader.schema)
    is_empty = True
    for index, batch in _record_batches(reader, start):
        is_empty = False
        for part in _bounded(batch, chunk_bytes):
            taken = min(skip, part.num_rows)
            skip -= taken
            if taken < part.num_rows:
                yield index, _columns(part.slice(taken), classes)
        skip = 0
    if is_empty and not start:
        schema = reader.schema
        yield 0, {name: pa.array([], schema.field(name).type) for name in schema.names}


def _record_batches(reader: Any, start: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    if isinstance(reader, pa.RecordBatchFileReader):
        for index in range(start, reader.num_record_batches):
            yield index, reader.get_batch(index)
        return
    for index, batch in enumerate(reader):
        if index >= start:
            yield index, batch


def _reader(stream: BinaryIO) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    name = getattr(stream, "name", None)
    # A local file is mapped: only the batches that are read come into memory.
    source = pa.memory_map(name) if isinstance(name, str) else pa.PythonFile(stream, mode="r")
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _bounded(batch: pa.RecordBatch, chunk_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch so that no part is much larger than a chunk."""
    if not batch.num_rows:
        return
    num = min(_BATCH_ROWS, max(1, batch.num_rows * chunk_bytes // max(1, batch.nbytes)))
    for begin in range(0, batch.num_rows, num):
        yield batch.slice(begin, num)


def _columns(batch: pa.RecordBatch, classes: dict[str, dict[Any, str]]) -> dict[str, pa.Array]:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for column, names in classes.items():
        if column in columns:
            columns[column] = _named(columns[column], names)
    return columns


def _named(values: pa.Array, names: dict[Any, str]) -> pa.Array:
    found = [names.get(value, value) for value in values_of(values)]
    # A number without a name stays itself, as text.
    return pa.array([None if value is None else str(value) for value in found], pa.string())


def _class_names(schema: pa.Schema) -> dict[str, dict[Any, str]]:
    """Return number -> class name for the columns that the `datasets` library stored as class numbers."""
    stored = (schema.metadata or {}).get(b"huggingface")
    if stored is None:
        return {}
    features = json.loads(stored).get("info", {}).get("features", {})
    return {
        column: dict(enumerate(feature["names"]))
        for column, feature in features.items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and feature.get("names")
    }
