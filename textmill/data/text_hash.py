"""One 64-bit number for a text, an id or a label, so that millions of rows can be compared.

Promises: the same everywhere and for ever; the number of a text is the head of a salted SHA-256,
that of an id or a label its XXH3.

Collisions: two different texts among N share a number with a probability of about N^2 / 2^65: 3 in a
billion for 100,000 rows, 3 in a million for ten million.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from xxhash import xxh3_64_intdigest

from textmill.core.types import Text

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SALT = b"textmill split 1\0"
_PAIR_SALT = b"textmill pair 1\0"
_BLOCK_ROWS = 65_536


def hash_texts(texts: Sequence[Text]) -> NDArray[np.uint64]:
    """Return the (N,) numbers of cleaned texts; a pair has a number of its own."""
    sha = hashlib.sha256
    try:
        digests = [sha(_SALT + text.encode()).digest() for text in texts]  # type: ignore[union-attr]
    except (AttributeError, UnicodeEncodeError):  # pairs, or half a surrogate pair
        digests = [sha(_bytes_of(text)).digest() for text in texts]
    return np.frombuffer(b"".join(digests), ">u8")[::4].astype(np.uint64)


def hash_names(names: Iterable[str]) -> NDArray[np.uint64]:
    """Return the (N,) numbers of ids."""
    numbers = [xxh3_64_intdigest(name.encode("utf-8", "surrogatepass")) for name in names]
    return np.array(numbers, dtype=np.uint64)


def hash_label_sets(sets: Sequence[tuple[str, ...]]) -> NDArray[np.uint64]:
    """Return the (N,) numbers of tuples of class names; the order of the names matters."""
    return hash_names("".join(f"{len(name)}:{name}" for name in names) for names in sets)


def positions(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return where (N,) texts lie in [0, 1), by the first 48 bits of their numbers."""
    return (hashes >> np.uint64(16)).astype(np.float64) / 2**48


def is_among(hashes: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return (N,), true where a hash is one of `others`; takes little memory beside its arguments."""
    found = np.zeros(len(hashes), bool)
    known = np.unique(others)
    if len(known):
        for start in range(0, len(hashes), _BLOCK_ROWS):
            part = hashes[start : start + _BLOCK_ROWS]
            places = np.minimum(np.searchsorted(known, part), len(known) - 1)
            found[start : start + _BLOCK_ROWS] = known[places] == part
    return found


def _bytes_of(text: Text) -> bytes:
    if isinstance(text, str):
        return _SALT + text.encode("utf-8", "surrogatepass")
    first, second = (part.encode("utf-8", "surrogatepass") for part in text)
    return _PAIR_SALT + len(first).to_bytes(8, "big") + first + second
