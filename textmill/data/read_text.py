"""The bytes of a text file as UTF-8 pieces that end at the end of a row, in flat memory.

Promises: a piece is never longer than a block and the longest row; each knows the byte offset behind
it, from which the same pieces follow; what comes before a fault (bytes of another encoding, a `.gz`
that breaks off) is given out before the fault is.
What is not covered: rows longer than 32 MiB.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from textmill.core.errors import DataError
from textmill.data.encoding import Codec, begin_codec, guess_codec, misfit
from textmill.data.find_files import SourceFile
from textmill.data.rows import Position

BLOCK_BYTES = 4 << 20
LONGEST_ROW = 32 << 20
_GZIP = 31  # zlib's window bits for a gzip header and checksum
_PACKED_BYTES = 1 << 18
_UNPACKED_BYTES = 1 << 20


class Cut(Protocol):
    """How many bytes of a text are whole rows; with an error: how many bytes are one bad row."""

    def __call__(self, text: bytes, line: int, is_last: bool) -> tuple[int, DataError | None]:
        """Judge UTF-8 text whose first line has `line` line ends before it in its file."""
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole rows, or one bad row with its error."""

    text: bytes  # UTF-8
    line: int
    """Line ends of the file before it."""
    after: tuple[int, int, str | None]
    """Byte offset, line ends and encoding behind it."""
    fault: DataError | None = None


class BreaksOff(Exception):
    """A packed file ends or is damaged before its end."""


class TextFile:
    """One csv, tsv or jsonl file, read from some place on."""

    def __init__(
        self,
        file: SourceFile,
        stream: BinaryIO,
        encoding: str | None,
        start: Position | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        """Keep what is to be read.

        Args:
            file: which.
            stream: its bytes.
            encoding: what the user set, or None to find out.
            start: where to go on, or None for the beginning.
            block_bytes: how much is read at a time.
        """
        self._name = file.name
        self._encoding = encoding
        self._offset = start.offset if start else 0
        self._line = start.line if start else 0
        self._codec = start.encoding if start and start.offset else None
        self._block_bytes = block_bytes
        self._reader = _Packed(stream, self._offset) if file.is_packed else _Plain(stream, self._offset)
        self.notes: list[str] = []
        """What had to be guessed so far."""

    def pieces(self, cut: Cut) -> Iterator[Piece]:
        """Yield the rows; a `.gz` that breaks off gives its whole rows, then a `DataError` as fault."""
        raw = b""
        is_begun = self._offset > 0
        want = self._block_bytes
        while True:
            # Always as much from here on, whatever was read before: a piece depends on its beginning alone.
            raw += self._reader.read(want - len(raw))
            is_end = len(raw) < want
            if not is_begun:
                begun = begin_codec(raw, self._name, self._encoding)
                is_begun, self._codec, self._offset = True, begun.name, begun.mark
                raw = raw[begun.mark :]
                self._note(begun)
            broken = self._reader.broken if is_end else None
            is_last = is_end and broken is None
            end = len(raw) if is_last else _last_line_end(raw, self._codec)
            found = next(self._judge(raw, end, cut, is_last), None)
            if found is None and not is_end and len(raw) > LONGEST_ROW:
                found = self._too_long(raw)
            if found is not None:
                use, piece = found
                yield piece
                self._offset, self._line, _ = piece.after
                raw = raw[use:]
                want = self._block_bytes
            elif is_end:
                if broken is not None:
                    yield Piece(raw, self._line, self._behind(len(raw), 0), self._half_copied(broken))
                return
            else:
                want = len(raw) + self._block_bytes

    def _judge(self, raw: bytes, end: int, cut: Cut, is_last: bool) -> Iterator[tuple[int, Piece]]:
        """Yield pieces of `raw[:end]` with the number of raw bytes each takes."""
        begin = 0
        while begin < end:
            text, bad = self._decode(raw[begin:end])
            sound = begin + bad[0] if bad else end
            at = 0
            while at < len(text):
                use, fault = cut(text[at:] if at else text, self._line, is_last and not bad)
                if not use:
                    break
                part = text[at : at + use]
                size = self._raw_size(part)
                yield size, Piece(part, self._line, self._behind(size, part.count(b"\n")), fault)
                begin, at = begin + size, at + use
            if not bad:
                return
            stop = sound - bad[0] + bad[1]
            line = self._line + raw.count(b"\n", begin, sound) + 1
            lost = raw[begin:stop]
            error = misfit(self._name, self._codec or "utf-8", line)
            yield len(lost), Piece(lost, self._line, self._behind(len(lost), lost.count(b"\n")), error)
            begin = stop

    def _decode(self, raw: bytes) -> tuple[bytes, tuple[int, int] | None]:
        """Return UTF-8 up to the first line that does not fit, and where that line is."""
        if self._codec in (None, "utf-8") and raw.isascii():
            return raw, None
        try:
            if self._codec in (None, "utf-8"):
                raw.decode("utf-8")
                self._codec = "utf-8"
                return raw, None
            assert self._codec is not None
            return raw.decode(self._codec).encode("utf-8", "replace"), None
        except UnicodeDecodeError as err:
            if self._codec is None:
                return self._guess(raw, err)
            fault = err.start
        wide = _unit(self._codec)
        begin = _line_end_before(raw, fault, wide)
        return self._decode(raw[:begin])[0], (begin, _line_end_after(raw, fault, wide))

    def _guess(self, raw: bytes, err: UnicodeDecodeError) -> tuple[bytes, tuple[int, int] | None]:
        try:
            found = guess_codec(raw, self._name, err, self._line)
        except DataError as fault:
            if "one encoding" not in fault.rule:
                raise
            self._codec = "utf-8"
        else:
            self._note(found)
            self._codec = found.name
        return self._decode(raw)

    def _note(self, found: Codec) -> None:
        if found.note:
            self.notes.append(found.note)

    def _raw_size(self, text: bytes) -> int:
        """How many bytes of the file became this UTF-8 text."""
        if self._codec in (None, "utf-8"):
            return len(text)
        assert self._codec is not None
        return len(text.decode("utf-8").encode(self._codec))

    def _behind(self, size: int, lines: int) -> tuple[int, int, str | None]:
        return self._offset + size, self._line + lines, self._codec

    def _too_long(self, raw: bytes) -> tuple[int, Piece]:
        stop = _line_end_after(raw, 0, _unit(self._codec))
        error = DataError(
            f"A row of {self._name} must be shorter than {LONGEST_ROW >> 20} MiB",
            got=f"a longer one from line {self._line + 1} on",
            fix="Look for a quotation mark there that is never closed.",
        )
        return stop, Piece(raw[:stop], self._line, self._behind(stop, 1), error)

    def _half_copied(self, err: BreaksOff) -> DataError:
        return DataError(
            f"{self._name} must be a whole .gz file",
            got=f"one that breaks off in line {self._line + 1} ({err})",
            fix="It may be half-copied; copy or write it again.",
        )


class _Plain:
    """The bytes of a file from some place on."""

    broken: BreaksOff | None = None

    def __init__(self, stream: BinaryIO, offset: int) -> None:
        stream.seek(offset)
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end."""
        parts: list[bytes] = []
        while size > 0 and (part := self._stream.read(size)):
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _Packed:
    """The unpacked bytes of a gzip file from some place on."""

    def __init__(self, stream: BinaryIO, offset: int) -> None:
        self.broken: BreaksOff | None = None
        self._blocks = _unpacked(stream)
        self._skip = offset
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end or where the file is damaged; then `broken` tells it."""
        parts, num = [self._rest], len(self._rest)
        while num < size and self.broken is None and (block := next(self._blocks, None)) is not None:
            if isinstance(block, BreaksOff):
                self.broken = block
                break
            kept = block[self._skip :]
            self._skip -= len(block) - len(kept)
            parts.append(kept)
            num += len(kept)
        found = b"".join(parts)
        self._rest = found[max(0, size) :]
        return found[: max(0, size)]


def _unpacked(stream: BinaryIO) -> Iterator[bytes | BreaksOff]:
    """Yield the contents of all members of a gzip file, and last what is wrong with it."""
    member = zlib.decompressobj(_GZIP)
    is_fresh = True
    while packed := stream.read(_PACKED_BYTES):
        while packed:
            try:
                block = member.decompress(packed, _UNPACKED_BYTES)
            except zlib.error as err:
                yield BreaksOff(str(err))
                return
            is_fresh = False
            yield block
            if not member.eof:
                packed = member.unconsumed_tail
                continue
            packed = member.unused_data.lstrip(b"\0")  # gzip pads its members with zeros
            member, is_fresh = zlib.decompressobj(_GZIP), True
    while not is_fresh and (block := member.decompress(b"", _UNPACKED_BYTES)):
        yield block
    if not is_fresh and not member.eof:
        yield BreaksOff("the end of the compressed data is missing")


def _unit(codec: str | None) -> int:
    """Bytes of a line end."""
    return 2 if codec and codec.startswith("utf-16") else 4 if codec and codec.startswith("utf-32") else 1


def _newline(codec_unit: int, raw_codec: str | None) -> bytes:
    return b"\n" if codec_unit == 1 or raw_codec is None else "\n".encode(raw_codec)


def _last_line_end(raw: bytes, codec: str | None) -> int:
    """Return where the last whole line ends, 0 if none does."""
    unit = _unit(codec)
    mark = _newline(unit, codec)
    at = raw.rfind(mark)
    while at >= 0 and at % unit:
        at = raw.rfind(mark, 0, at + len(mark) - 1)
    if at >= 0:
        return at + unit
    if unit == 1:
        # Old line ends; one at the very end may be the first half of \r\n.
        return raw.rfind(b"\r", 0, len(raw) - 1) + 1
    return 0


def _line_end_before(raw: bytes, place: int, unit: int) -> int:
    at = raw.rfind(b"\n", 0, place)
    while at >= 0 and unit > 1 and not _is_newline(raw, at // unit * unit, unit):
        at = raw.rfind(b"\n", 0, at)
    return at // unit * unit + unit if at >= 0 else 0


def _line_end_after(raw: bytes, place: int, unit: int) -> int:
    at = raw.find(b"\n", place)
    while at >= 0 and unit > 1 and not _is_newline(raw, at // unit * unit, unit):
        at = raw.find(b"\n", at + 1)
    return at // unit * unit + unit if at >= 0 else len(raw)


def _is_newline(raw: bytes, begin: int, unit: int) -> bool:
    return raw[begin : begin + unit].strip(b"\0") == b"\n" and len(raw[begin : begin + unit]) == unit
