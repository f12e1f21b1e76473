"""What a stream is read from: parts that are read one by one, each in order and from any place on.

Promises: the parts and their order are a function of the files alone; rows and their ids do not depend on
the order in which parts are read. A source can be sent to another process unless it says otherwise.
What is not covered: a csv is one part (where its rows begin cannot be known without reading them), and
so is a `.gz` and an arrow file; put large ones into several files so that they can be mixed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.duplicates import shorten
from textmill.data.find_files import (
    SourceFile,
    as_source_file,
    find_files,
    kind_of,
    place_of,
    refuse_own_folder,
)
from textmill.data.read_file import read_file
from textmill.data.read_table import num_rows
from textmill.data.rows import Chunk, Position, Rows
from textmill.data.stream.limit import limited
from textmill.data.stream.retry import WAITS_S, open_retrying, size_of

PART_BYTES = 64 << 20
"""Size of the parts of a JSON lines file: 32 parts of 2 GB, enough to mix from; found by one seek each."""
BLOCK_BYTES = 1 << 18
"""Text is read in blocks of 256 KiB, some hundred to some thousand rows, so that a batch comes soon."""
_CHUNK_ROWS = 1024
_PRINT_BYTES = 1 << 16


@dataclass(frozen=True)
class Count:
    """How many rows a source has."""

    rows: int | None
    """None: nobody knows."""
    is_exact: bool


class Source(Protocol):
    """Rows in parts."""

    @property
    def num_parts(self) -> int:
        """How many parts there are, at least one."""
        ...

    @property
    def can_move(self) -> bool:
        """Whether another process can read it."""
        ...

    def read(self, part: int, after: Position | None, bad: BadRows) -> Iterator[Chunk]:
        """Yield the rows of a part in chunks, from the beginning or from behind a chunk."""
        ...

    def count(self) -> Count:
        """Count or estimate the rows, without reading them all."""
        ...

    def fingerprint(self) -> str:
        """Return a SHA-256 that changes when the data does."""
        ...


@dataclass(frozen=True)
class _Part:
    file: SourceFile
    begin: int = 0
    """Byte, or row group."""
    end: int | None = None
    """Byte or row group behind it; None: the file's end."""
    first_row: int = 0


@dataclass(frozen=True)
class FileSource:
    """Files on this machine or behind a URL."""

    parts: tuple[_Part, ...]
    files: tuple[SourceFile, ...]
    separator: str | None = None
    encoding: str | None = None
    waits_s: Sequence[float] = WAITS_S

    @property
    def num_parts(self) -> int:
        """How many parts there are."""
        return len(self.parts)

    @property
    def can_move(self) -> bool:
        """Whether another process can read it: not what lives in this process's memory."""
        return all(getattr(file.file_system, "protocol", "") != "memory" for file in self.files)

    def read(self, part: int, after: Position | None, bad: BadRows) -> Iterator[Chunk]:
        """Yield the rows of a part in chunks."""
        found = self.parts[part]
        is_table = found.file.kind == ".parquet"
        start = after
        if start is None and (found.begin or found.first_row):
            start = Position(found.file.name, found.first_row, found.begin)

        def open_part(file: SourceFile) -> BinaryIO:
            stream = open_retrying(file, self.waits_s)
            return stream if is_table or found.end is None else limited(stream, found.end)

        chunks = read_file(
            found.file,
            separator=self.separator,
            encoding=self.encoding,
            bad=bad,
            start=start,
            open_file=open_part,
            block_bytes=BLOCK_BYTES,
        )
        for chunk in chunks:
            if is_table and found.end is not None and chunk.after.offset >= found.end:
                return
            yield chunk

    def count(self) -> Count:
        """Count by what tables say of themselves, estimate texts by the bytes of their first rows."""
        total, is_exact = 0, True
        for file in self.files:
            if file.kind in (".parquet", ".arrow", ".feather"):
                is_local = file.file_system is None
                try:
                    with file.open() if is_local else open_retrying(file, self.waits_s) as stream:
                        total += num_rows(file, stream)
                except pa.ArrowException:  # reading it says what is wrong, or skips it
                    is_exact = False
            else:
                is_exact = False
                total += self._estimate(file)
        return Count(total, is_exact)

    def _estimate(self, file: SourceFile) -> int:
        """Rows by the size of the first ones; what was unpacked of a `.gz` against what was read for it."""
        size = size_of(file, self.waits_s)
        with open_retrying(file, self.waits_s) as stream:
            chunks = read_file(
                file,
                separator=self.separator,
                encoding=self.encoding,
                bad=BadRows("skip"),
                open_file=lambda _: stream,
                block_bytes=4 * BLOCK_BYTES,
            )
            chunk = next(chunks, None)
            if chunk is None or not chunk.after.row:
                return 0
            used = stream.tell() if file.is_packed else chunk.after.offset
            chunks.close()  # type: ignore[attr-defined]
        return chunk.after.row if used >= size else round(chunk.after.row * size / max(1, used))

    def fingerprint(self) -> str:
        """Return the SHA-256 over names, sizes, beginnings and ends of the files."""
        total = hashlib.sha256()
        for file in self.files:
            size = size_of(file, self.waits_s)
            total.update(f"{file.name}\0{size}\0".encode("utf-8", "surrogatepass"))
            with open_retrying(file, self.waits_s) as stream:
                total.update(stream.read(_PRINT_BYTES))
                stream.seek(max(0, size - _PRINT_BYTES))
                total.update(stream.read(_PRINT_BYTES))
        return total.hexdigest()


@dataclass(frozen=True)
class IterableSource:
    """Rows from Python: `begin()` gives mappings from column to value, the same ones each time."""

    begin: Callable[[], Iterable[Mapping[str, Any]]]
    name: str = "rows"
    rows: int | None = None
    """How many there are, if that is known."""
    waits_s: Sequence[float] = field(default=WAITS_S)

    num_parts = 1
    can_move = False

    def read(self, part: int, after: Position | None, bad: BadRows) -> Iterator[Chunk]:
        """Yield the rows in chunks; to go on, those before are passed over."""
        row = after.row if after else 0
        found = islice(iter(self.begin()), row, None)
        while block := list(islice(found, _CHUNK_ROWS)):
            for offset, values in enumerate(block):
                if not isinstance(values, Mapping):
                    raise DataError(
                        f"Each row of {self.name} must be a mapping from column to value",
                        got=f"{shorten(values)} in row {row + offset + 1}",
                        fix='Yield {"text": ..., "label": ...}.',
                    )
            names = list(dict.fromkeys(name for values in block for name in values))
            columns = {name: [values.get(name) for values in block] for name in names}
            numbers = list(range(row + 1, row + len(block) + 1))
            row += len(block)
            yield Chunk(Rows(columns, [self.name] * len(block), numbers), Position(self.name, row))

    def count(self) -> Count:
        """Return what the caller said."""
        return Count(self.rows, is_exact=self.rows is not None)

    def fingerprint(self) -> str:
        """Return the SHA-256 over the name: what the rows are, only the caller knows."""
        return hashlib.sha256(self.name.encode()).hexdigest()


def open_source(
    path: str, base: Path, *, separator: str | None = None, encoding: str | None = None
) -> Source:
    """Return the source behind a path, a folder, a URL or an `hf:` name.

    Raises:
        DataError: nothing there, or a URL whose library is not installed.
    """
    place = None if path.startswith("hf:") or "://" in path else place_of(path, base)
    if path.startswith("hf:") or (place is not None and (place / "dataset_info.json").exists()):
        from textmill.data.stream.hub import open_hub

        return open_hub(path.removeprefix("hf:"), base)
    if place is not None:
        refuse_own_folder(path, base)
    files = _remote_files(path) if place is None else find_files(path, base)
    parts = tuple(part for file in files for part in _parts(file, encoding))
    return FileSource(parts, tuple(files), separator, encoding)


def _remote_files(url: str) -> list[SourceFile]:
    import fsspec

    try:
        file_system, root = fsspec.core.url_to_fs(url)
        names = sorted(file_system.find(root)) if _is_folder(file_system, root) else [root]
        is_there = bool(names) and (len(names) > 1 or file_system.exists(names[0]))
    except ImportError as err:
        raise DataError(
            f"The URL {url} must be readable here", got=str(err), fix="Install that package with pip."
        ) from err
    except Exception as err:  # what the library behind the URL raises (aiohttp, botocore)
        raise DataError(
            "The data must be there", got=f"{url} ({err})", fix="Check the URL, the network and your rights."
        ) from err
    if not is_there:
        raise DataError("The data must be there", got=f"nothing at {url}", fix="Check the URL.")
    if names == [root]:
        return [as_source_file(root, root.rsplit("/", 1)[-1], file_system)]
    kept = [name for name in names if kind_of(Path(name)) and not Path(name).name.startswith((".", "_"))]
    return [as_source_file(name, os.path.relpath(name, root), file_system) for name in kept]


def _is_folder(file_system: Any, path: str) -> bool:
    if kind_of(Path(path)) is None:
        return bool(file_system.isdir(path))
    # Over HTTP `isdir` would fetch the whole file to look for links in it.
    return bool(file_system.exists(path)) and file_system.info(path)["type"] == "directory"


def _parts(file: SourceFile, encoding: str | None) -> Iterator[_Part]:
    if file.kind == ".parquet":
        yield from _row_groups(file)
    elif (
        file.kind in (".jsonl", ".ndjson", ".tsv", ".tab")
        and not file.is_packed
        and encoding in (None, "utf-8")
    ):
        yield from _byte_ranges(file)
    else:
        yield _Part(file)


def _row_groups(file: SourceFile) -> Iterator[_Part]:
    try:
        with open_retrying(file) as stream:
            found = pq.ParquetFile(stream).metadata
    except (OSError, ValueError):
        yield _Part(file)  # reading it says what is wrong
        return
    row = 0
    for group in range(found.num_row_groups):
        yield _Part(file, group, group + 1, row)
        row += found.row_group(group).num_rows
    if not found.num_row_groups:
        yield _Part(file)


def _byte_ranges(file: SourceFile) -> Iterator[_Part]:
    """Cut a file of one row a line, in an encoding whose line ends are single bytes."""
    size = size_of(file)
    if size <= 2 * PART_BYTES:
        yield _Part(file)
        return
    with open_retrying(file) as stream:
        if stream.read(2) in (b"\xff\xfe", b"\xfe\xff") or b"\0" in stream.read(64):
            yield _Part(file)
            return
        begin = 0
        while begin < size:
            stream.seek(min(size, begin + PART_BYTES))
            stream.readline()
            end = size if size - stream.tell() < PART_BYTES // 2 else stream.tell()
            # Row numbers are not known in the middle of a file: they count from the part's first byte.
            named = replace(file, name=f"{file.name}@{begin}") if begin else file
            yield _Part(named, begin, end)
            begin = end
