"""Cut files into parts that can be read on their own, and tell how many rows they have.

Promises: parts are a function of the files alone. Where a source has fewer files than are read in turns,
small text files (up to `_SCANNED_BYTES`) are looked through once, so that parts begin at rows whose numbers
are known; larger JSON lines and tsv are cut at line ends, and row numbers count from the part's first byte.
What is not covered: larger csv files, `.gz` and arrow files are one part each: where their rows
begin cannot be known without reading them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow.parquet as pq

from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.find_files import TEXT_KINDS, SourceFile
from textmill.data.read_file import read_file
from textmill.data.rows import Position
from textmill.data.stream.retry import WAITS_S, open_retrying, size_of

NUM_HEADS = 8
"""Parts read in turns; each holds one open file and one chunk."""
PART_BYTES = 64 << 20
"""Size of the parts of a JSON lines file: 32 parts of 2 GB, enough to mix from; found by one seek each."""
BLOCK_BYTES = 1 << 18
"""Text is read in blocks of 256 KiB, some hundred to some thousand rows, so that a batch comes soon."""
_SCANNED_BYTES = 128 << 20
_SCANNED_CSV_BYTES = 64 << 20
"""What is looked through once: well under a second."""
_SCAN_BYTES = 1 << 20
_SMALLEST_PART = 2 * BLOCK_BYTES
_SKIPPED_BYTES = 64 << 20
"""A row group of parquet up to this size is cut: to begin inside, the rows before must be unpacked."""
_PLACES, _FAR_PLACES, _SAMPLE_BYTES = 32, 4, 1 << 16
"""At how many places and how much of a large text is looked at to estimate its rows; behind a URL each
place costs a request, and some MB that fsspec reads ahead."""
_JSON_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True)
class Part:
    """A piece of a file."""

    file: SourceFile
    weight: int = 1
    """About how large it is, beside other parts of the source."""
    start: Position | None = None
    """None: the file's beginning."""
    end: int | None = None
    """Byte or row group behind it; None: the file's end."""
    last_row: int | None = None
    """Number of its last row, where a row group is cut; else None."""


def parts_of(
    files: Sequence[SourceFile], encoding: str | None = None, separator: str | None = None
) -> tuple[Part, ...]:
    """Return the parts of the files of a source, in order."""
    pieces = -(-NUM_HEADS // max(1, len(files)))
    pieces = 1 if len(files) >= NUM_HEADS else max(2, pieces)
    return tuple(part for file in files for part in _parts(file, encoding, separator, pieces))


def _parts(file: SourceFile, encoding: str | None, separator: str | None, pieces: int) -> Iterator[Part]:
    if file.kind == ".parquet":
        yield from _row_groups(file, pieces)
        return
    size = size_of(file)
    whole = Part(file, max(1, size))
    is_local = file.file_system is None and not file.is_packed
    pieces = min(pieces, size // _SMALLEST_PART)
    if file.kind not in TEXT_KINDS or file.is_packed:
        yield whole
    elif file.kind in _JSON_LINES and pieces > 1 and is_local and size <= _SCANNED_BYTES:
        yield from _between(whole, _line_places(file, size, pieces) if encoding in (None, "utf-8") else [])
    elif file.kind not in _JSON_LINES and pieces > 1 and is_local and size <= _SCANNED_CSV_BYTES:
        yield from _between(whole, _row_places(file, size, pieces, encoding, separator))
    elif file.kind != ".csv" and encoding in (None, "utf-8") and size > 2 * PART_BYTES:
        yield from _byte_ranges(whole, size)
    else:
        yield whole


def _between(whole: Part, places: Sequence[Position]) -> Iterator[Part]:
    """Yield the parts of a file that begin at places inside it."""
    starts: list[Position | None] = [None, *places]
    ends: list[int | None] = [*(place.offset for place in places), None]
    for start, end in zip(starts, ends, strict=True):
        size = (whole.weight if end is None else end) - (start.offset if start else 0)
        yield replace(whole, weight=max(1, size), start=start, end=end)


def _line_places(file: SourceFile, size: int, pieces: int) -> list[Position]:
    """Return places at line ends near equal distances; none where lines are not rows, or not UTF-8."""
    places: list[Position] = []
    lines = offset = 0
    rest = b""
    with open_retrying(file) as stream:
        while block := stream.read(_SCAN_BYTES):
            whole, mark, tail = (rest + block).rpartition(b"\n")
            text, rest = whole + mark, tail
            if b"\n\n" in text or b"\n\r\n" in text or text[:1] in (b"\n", b"\r") or b"\0" in text:
                return []  # a blank line is no row
            if not text.isascii():
                try:
                    text.decode("utf-8")
                except UnicodeDecodeError:
                    return []
            while len(places) < pieces - 1 and (goal := size * (len(places) + 1) // pieces) <= offset + len(
                text
            ):
                at = max(1, goal - offset)
                at = text.find(b"\n", at - 1) + 1  # there is one: the text ends with it
                row = lines + text.count(b"\n", 0, at)
                places.append(Position(file.name, row, offset + at, row))
            lines, offset = lines + text.count(b"\n"), offset + len(text)
    return [place for place in dict.fromkeys(places) if place.offset < size]


def _row_places(
    file: SourceFile, size: int, pieces: int, encoding: str | None, separator: str | None
) -> list[Position]:
    """Return places behind chunks near equal distances, as the reader itself finds them."""
    chunks = read_file(
        file, separator=separator, encoding=encoding, bad=BadRows("skip"), block_bytes=BLOCK_BYTES
    )
    places: list[Position] = []
    try:
        for chunk in chunks:
            if size * (len(places) + 1) // pieces <= chunk.after.offset < size and len(places) < pieces - 1:
                places.append(chunk.after)
    except DataError:  # reading it says what is wrong
        return []
    return places


def _byte_ranges(whole: Part, size: int) -> Iterator[Part]:
    """Cut a file of one row a line, in an encoding whose line ends are single bytes."""
    with open_retrying(whole.file) as stream:
        if stream.read(2) in (b"\xff\xfe", b"\xfe\xff") or b"\0" in stream.read(64):
            yield whole
            return
        begin = 0
        while begin < size:
            stream.seek(min(size, begin + PART_BYTES))
            stream.readline()
            end = size if size - stream.tell() < PART_BYTES // 2 else stream.tell()
            # Row numbers are not known in the middle of a file: they count from the part's first byte.
            name = f"{whole.file.name}@{begin}" if begin else whole.file.name
            start = Position(name, 0, begin) if begin else None
            yield Part(replace(whole.file, name=name), max(1, end - begin), start, end)
            begin = end


def _row_groups(file: SourceFile, pieces: int) -> Iterator[Part]:
    try:
        with open_retrying(file) as stream:
            found = pq.ParquetFile(stream).metadata
    except (OSError, ValueError):
        yield Part(file)  # reading it says what is wrong
        return
    if not found.num_row_groups:
        yield Part(file)
    row = 0
    for number in range(found.num_row_groups):
        group = found.row_group(number)
        num, size = group.num_rows, max(1, group.total_byte_size)
        cuts = -(-pieces // found.num_row_groups) if size <= _SKIPPED_BYTES else 1
        cuts = max(1, min(cuts, size // _SMALLEST_PART))
        for cut in range(cuts):
            begin, end = num * cut // cuts, num * (cut + 1) // cuts
            start = Position(file.name, row + begin, number, begin) if row + begin or number else None
            last = row + end if cuts > 1 else None
            yield Part(file, max(1, size // cuts), start, number + 1, last)
        row += num


def estimate_rows(
    file: SourceFile, encoding: str | None, separator: str | None, waits_s: Sequence[float] = WAITS_S
) -> int:
    """Return about how many rows a text has.

    The first rows tell how many rows a line is; lines are counted, in a large file at some places. A `.gz`
    goes by what was unpacked of it against what was read for that, a smaller file behind a URL by its first
    rows.
    """
    size = size_of(file, waits_s)
    with open_retrying(file, waits_s) as stream:
        chunks = read_file(
            file,
            separator=separator,
            encoding=encoding,
            bad=BadRows("skip"),
            open_file=lambda _: stream,
            block_bytes=4 * BLOCK_BYTES,
        )
        chunk = next(chunks, None)
        if chunk is None or not chunk.after.row:
            return 0
        row, offset = chunk.after.row, chunk.after.offset
        used = stream.tell() if file.is_packed else offset
        chunks.close()  # type: ignore[attr-defined]
    if used >= size:
        return row
    if file.is_packed or (file.file_system is not None and size <= _SCANNED_BYTES):
        return round(row * size / max(1, used))
    with open_retrying(file, waits_s) as stream:
        head = stream.read(offset)
        lines = head.count(b"\n")
        if not lines:
            return round(row * size / max(1, used))
        if file.file_system is None and size <= _SCANNED_BYTES:
            rest: float = sum(block.count(b"\n") for block in iter(lambda: stream.read(_SCAN_BYTES), b""))
            return row + round(rest * row / lines)
        seen = marks = 0
        places = _PLACES if file.file_system is None else _FAR_PLACES
        for place in range(places):
            stream.seek(offset + (size - offset) * place // places)
            block = stream.read(_SAMPLE_BYTES)
            seen, marks = seen + len(block), marks + block.count(b"\n")
        rest = (size - offset) * marks / max(1, seen)
    return row + round(rest * row / lines)
