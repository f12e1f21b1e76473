"""Bytes of a text file to a string, with the encoding said.

Promises: a byte order mark decides; then UTF-8; then a guess by charset-normalizer, which is told
to the user; a file that is UTF-8 but for a few bytes is refused with the row instead of being read
as something else.
"""

from __future__ import annotations

import codecs
import re
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
_HIGH = re.compile(rb"[\x80-\xff]+")
_SAMPLE_BYTES = 200_000
_USUAL = "cp1252"
# On short German and French samples cp1257 and cp1250 came out up to 0.07 less chaotic than cp1252.
_NEAR_CHAOS = 0.1
_NEAR_COHERENCE = 0.01


class Decoded(NamedTuple):
    """A file's text and the encoding it was in; `note` is None where there is nothing to say."""

    text: str
    encoding: str
    note: str | None


def decode(raw: bytes, name: str, encoding: str | None) -> Decoded:
    """Return the text of a file.

    Args:
        raw: all bytes of the file.
        name: the file's name, for messages.
        encoding: what the user set, or None to find out.

    Raises:
        DataError: an unknown encoding, or bytes that do not fit it.
    """
    if encoding is not None:
        return Decoded(_decode_strictly(raw, name, encoding), encoding, None)
    for mark, found in _MARKS:
        if raw.startswith(mark):
            note = f"{name}: read as {_NAMES[found]}" if found in _NAMES else None
            return Decoded(_decode_strictly(raw, name, found), found, note)
    wide = _wide_without_mark(raw)
    if wide:
        note = f"{name}: read as {wide} (no byte order mark); set data.encoding if that is wrong"
        return Decoded(_decode_strictly(raw, name, wide), wide, note)
    try:
        return Decoded(raw.decode("utf-8"), "utf-8", None)
    except UnicodeDecodeError as err:
        return _guess(raw, name, err)


def _guess(raw: bytes, name: str, fault: UnicodeDecodeError) -> Decoded:
    loose = raw.decode("utf-8", "replace")
    broken = loose.count("\ufffd")
    sound = sum(1 for char in loose if ord(char) > 127) - broken
    if sound > 10 * broken:
        raise DataError(
            f"{name} must be in one encoding",
            got=f"UTF-8 with {broken} broken bytes, the first in line {_line(raw, fault.start)}",
            fix="Repair that line, or set data.encoding.",
        ) from fault
    found = _likeliest(charset_normalizer.from_bytes(_sample(raw)))
    if found is None:
        raise DataError(
            f"{name} must be text",
            got=f"bytes of no known encoding (not UTF-8 from line {_line(raw, fault.start)} on)",
            fix="Check that this is a text file, or set data.encoding.",
        ) from fault
    note = f"{name}: not UTF-8, read as {found}; set data.encoding if that is wrong"
    return Decoded(_decode_strictly(raw, name, found), found, note)


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


def _decode_strictly(raw: bytes, name: str, encoding: str) -> str:
    try:
        return raw.decode(encoding)
    except LookupError as err:
        raise DataError(
            "data.encoding must be an encoding that Python knows",
            got=repr(encoding),
            fix="Write for example utf-8, cp1252, gb18030 or utf-16.",
        ) from err
    except UnicodeError as err:
        where = f" in line {_line(raw, err.start)}" if isinstance(err, UnicodeDecodeError) else ""
        raise DataError(
            f"{name} must be readable as {encoding}",
            got=f"bytes that do not fit{where}",
            fix="Set data.encoding to the file's encoding.",
        ) from err


def _wide_without_mark(raw: bytes) -> str | None:
    head = raw[:2_000]
    if head.count(0) * 4 < len(head) or len(head) < 4:
        return None
    return "utf-16-le" if head[1::2].count(0) >= head[0::2].count(0) else "utf-16-be"


def _line(raw: bytes, position: int) -> int:
    return raw.count(b"\n", 0, position) + 1
