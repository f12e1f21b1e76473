"""Clean many texts at once: those that plainly need no repair are told by their bytes, in one go.

Promise: the same texts and counts as `clean.clean_texts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from textmill.data.clean import clean_texts
from textmill.data.config import CleanConfig

_BLANK, _DOUBTFUL = 1, 2
_KINDS_OF_BYTES = bytes(
    _BLANK if byte in b" \n" else 0 if 0x20 < byte < 0x7F and byte != ord("&") else _DOUBTFUL
    for byte in range(256)
)
"""What a byte of ASCII text can be to a repair: nothing, a blank that a second one would have to make one
of, or something that a repair may want to change."""


def clean_column(texts: Sequence[str], config: CleanConfig, counts: Counter[str]) -> list[str]:
    """Return what `clean_texts` yields; texts that plainly need no repair are not looked at one by one.

    Args:
        texts: N texts.
        config: which repairs to make.
        counts: is added to, as by `clean_texts`.
    """
    cleaned = list(texts)
    doubtful = _doubtful(texts)
    repaired = clean_texts([cleaned[row] for row in doubtful], config, counts)
    for row, text in zip(doubtful, repaired, strict=True):
        cleaned[row] = text
    return cleaned


def _doubtful(texts: Sequence[str]) -> list[int]:
    """Return the texts that some repair might change: all but printable ASCII with single blanks inside.

    No repair touches such a text: it has no surrogates, no `&`, no control characters, nothing that NFC or
    a wrong decoding could be about, and no run of blanks.
    """
    is_ascii = list(map(str.isascii, texts))
    is_all_plain = all(is_ascii)
    plain = (
        range(len(texts)) if is_all_plain else [row for row, ascii_only in enumerate(is_ascii) if ascii_only]
    )
    of_plain = texts if is_all_plain else [texts[row] for row in plain]
    # A line break before, between and behind: a blank at the end of a text then makes a run of two.
    kinds = ("\n" + "\n".join(of_plain) + "\n").encode().translate(_KINDS_OF_BYTES)
    kind = np.frombuffer(kinds, np.uint8)
    is_odd = kind == _DOUBTFUL
    is_odd[1:] |= (kind[1:] & kind[:-1] & _BLANK).view(bool)
    found = np.flatnonzero(is_odd)
    # Where the line break behind each text is.
    ends = np.cumsum(np.fromiter(map(len, of_plain), np.int64, len(plain)) + 1)
    places = np.unique(np.searchsorted(ends, found)).tolist()
    doubtful = [plain[place] for place in places if place < len(plain)]
    return sorted([*doubtful, *(row for row, ascii_only in enumerate(is_ascii) if not ascii_only)])
