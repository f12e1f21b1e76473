"""Bytes of a text file to a string, with the encoding said.

Promises: a byte order mark decides; then UTF-8; then a guess by charset-normalizer, which is told
to the user; a file that is UTF-8 but for a few bytes is refused with the row instead of being read
as something else.
What is not covered: files are judged block by block (4 MiB); one that begins in one encoding and
goes on in another is refused at the line where it changes.
"""

from __future__ import annotations

import codecs
import re
import sys
from typing import NamedTuple

import charset_normalizer

from textmill.core.errors import DataError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NAMES = {"utf-16": "UTF-16 with a byte order mark", "utf-32": "UTF-32 with a byte order mark"}
_WITHOUT_MARK = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_NATIVE = {
    "utf-8-sig": "utf-8",
    "utf-16": f"utf-16-{sys.byteorder[0]}e",
    "utf-32": f"utf-32-{sys.byteorder[0]}e",
}
_HIGH = re.compile(rb"[\x80-\xff]+")
_SAMPLE_BYTES = 200_000
_USUAL = "cp1252"
# On short German and French samples cp1257 and cp1250 came out up to 0.07 less chaotic than cp1252.
_NEAR_CHAOS = 0.1
_NEAR_COHERENCE = 0.01


class Codec(NamedTuple):
    """How the bytes of a file become text; `note` is None where there is nothing to say."""

    name: str | None
    """A Python codec without a byte order mark; None: UTF-8 as far as was seen (only ASCII so far)."""
    mark: int
    """Bytes of the byte order mark at the beginning of the file."""
    note: str | None


def begin_codec(head: bytes, name: str, encoding: str | None) -> Codec:
    """Return how a file begins.

    Args:
        head: its first bytes.
        name: the file's name, for messages.
        encoding: what the user set, or None to find out.

    Raises:
        DataError: an unknown encoding.
    """
    for mark, found in _MARKS:
        if head.startswith(mark) and (encoding is None or found == _known(encoding)):
            codec = _WITHOUT_MARK[mark]
            said = _NAMES.get(found) if encoding is None else None
            return Codec(codec, len(mark), f"{name}: read as {said}" if said else None)
    if encoding is not None:
        return Codec(_NATIVE.get(_known(encoding), encoding), 0, None)
    wide = _wide_without_mark(head)
    if wide:
        note = f"{name}: read as {wide} (no byte order mark); set data.encoding if that is wrong"
        return Codec(wide, 0, note)
    return Codec(None, 0, None)


def guess_codec(raw: bytes, name: str, fault: UnicodeDecodeError, line: int) -> Codec:
    """Return the likeliest encoding of text that is not UTF-8 and is ASCII up to here.

    Args:
        raw: the first block that holds other bytes than ASCII.
        name: the file's name, for messages.
        fault: where it is not UTF-8.
        line: line ends before the block.

    Raises:
        DataError: UTF-8 with some broken bytes, or no known encoding.
    """
    loose = raw.decode("utf-8", "replace")
    broken = loose.count("\ufffd")
    sound = sum(1 for char in loose if ord(char) > 127) - broken
    at = line + raw.count(b"\n", 0, fault.start) + 1
    if sound > 10 * broken:
        raise DataError(
            f"{name} must be in one encoding",
            got=f"UTF-8 with {broken} broken bytes, the first in line {at}",
            fix="Repair that line, or set data.encoding.",
        ) from fault
    found = _likeliest(charset_normalizer.from_bytes(_sample(raw)))
    if found is None:
        raise DataError(
            f"{name} must be text",
            got=f"bytes of no known encoding (not UTF-8 from line {at} on)",
            fix="Check that this is a text file, or set data.encoding.",
        ) from fault
    return Codec(found, 0, f"{name}: not UTF-8, read as {found}; set data.encoding if that is wrong")


def misfit(name: str, encoding: str, line: int) -> DataError:
    """Return the error for bytes in `line` (from 1) that are not of the encoding."""
    return DataError(
        f"{name} must be readable as {encoding}",
        got=f"bytes that do not fit in line {line}",
        fix="Set data.encoding to the file's encoding, or repair that line.",
    )


def _likeliest(matches: charset_normalizer.CharsetMatches) -> str | None:
    """Return the best match; among near equals the one that most files are really in (Windows Western)."""
    best = matches.best()
    if best is None:
        return None
    equals = {
        encoding
        for match in matches
        if match.chaos <= best.chaos + _NEAR_CHAOS and match.coherence >= best.coherence - _NEAR_COHERENCE
        for encoding in match.could_be_from_charset
    }
    return _USUAL if _USUAL in equals else best.encoding


def _sample(raw: bytes) -> bytes:
    """Return the lines that hold non-ASCII bytes: only they tell encodings apart."""
    lines, size = [], 0
    for line in raw.splitlines(keepends=True):
        if _HIGH.search(line):
            lines.append(line)
            size += len(line)
        if size > _SAMPLE_BYTES:
            break
    return b"".join(lines)


def _known(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError as err:
        raise DataError(
            "data.encoding must be an encoding that Python knows",
            got=repr(encoding),
            fix="Write for example utf-8, cp1252, gb18030 or utf-16.",
        ) from err


def _wide_without_mark(raw: bytes) -> str | None:
    head = raw[:2_000]
    if head.count(0) * 4 < len(head) or len(head) < 4:
        return None
    return "utf-16-le" if head[1::2].count(0) >= head[0::2].count(0) else "utf-16-be"
