"""What a stream is read from: parts that are read one by one, each in order and from any place on.

Promises: the parts and their order are a function of the files alone; rows and their ids do not depend on
the order in which parts are read. A source can be sent to another process unless it says otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.duplicates import shorten
from textmill.data.find_files import SourceFile, find_files, others_in, place_of, refuse_own_folder
from textmill.data.read_file import read_file
from textmill.data.read_table import num_rows
from textmill.data.rows import Chunk, Position, Rows
from textmill.data.stream.limit import limited
from textmill.data.stream.parts import BLOCK_BYTES, Part, estimate_rows, parts_of
from textmill.data.stream.remote import remote_files
from textmill.data.stream.retry import WAITS_S, open_retrying, size_of

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

    def weight(self, part: int) -> int:
        """Return about how large a part is beside the others, at least 1."""
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
class FileSource:
    """Files on this machine or behind a URL."""

    parts: tuple[Part, ...]
    files: tuple[SourceFile, ...]
    separator: str | None = None
    encoding: str | None = None
    waits_s: Sequence[float] = WAITS_S
    others: str | None = None
    """A sentence on files of no known kind beside them."""

    @property
    def num_parts(self) -> int:
        """How many parts there are."""
        return len(self.parts)

    @property
    def can_move(self) -> bool:
        """Whether another process can read it: not what lives in this process's memory."""
        return all(getattr(file.file_system, "protocol", "") != "memory" for file in self.files)

    def weight(self, part: int) -> int:
        """Return the bytes of a part."""
        return self.parts[part].weight

    def read(self, part: int, after: Position | None, bad: BadRows) -> Iterator[Chunk]:
        """Yield the rows of a part in chunks."""
        found = self.parts[part]
        is_table = found.file.kind == ".parquet"
        start = after or found.start

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
            too_many = 0 if found.last_row is None else chunk.after.row - found.last_row
            if too_many >= len(chunk.rows) > 0:
                return
            yield _without_last(chunk, too_many) if too_many > 0 else chunk

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
                total += estimate_rows(file, self.encoding, self.separator, self.waits_s)
        return Count(total, is_exact)

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

    def weight(self, part: int) -> int:
        """Return 1: there is one part."""
        return 1

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
    if place is None:
        files, others = remote_files(path)
    else:
        files, others = find_files(path, base), others_in(path, base)
    return FileSource(parts_of(files, encoding, separator), tuple(files), separator, encoding, others=others)


def _without_last(chunk: Chunk, num: int) -> Chunk:
    """Return a chunk of a table without its last rows."""
    after = replace(chunk.after, row=chunk.after.row - num, line=chunk.after.line - num)
    return Chunk(chunk.rows.part(0, len(chunk.rows) - num), after)
