"""What makes two data sets the same, in enough detail to say how they differ.

Promises: equal fingerprints mean the same ids, texts and labels on the same sides in the same
order (up to a chance of 2^-64 for each row that changed, since rows enter by 64-bit hashes);
`what_differs` says in words whether rows were added, removed, changed or only reordered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from textmill.core.types import Example
from textmill.data.split import Side
from textmill.data.text_hash import hash_label_sets, hash_names, hash_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class SidePrint:
    """The fingerprint of one side; all hashes are hexadecimal SHA-256."""

    rows: int
    ids: str
    """Over the set of ids."""
    content: str
    """Over the multiset of texts with labels."""
    order: str
    """Over ids, texts and labels in their order."""


@runtime_checkable
class Printed(Protocol):
    """Rows that know their fingerprint."""

    @property
    def print(self) -> SidePrint:
        """The fingerprint of the rows."""
        ...


def print_rows(ids: NDArray[np.uint64], texts: NDArray[np.uint64], labels: NDArray[np.uint64]) -> SidePrint:
    """Return the fingerprint of N rows from the (N,) hashes of their ids, texts and labels."""
    content = texts ^ labels
    content.sort()
    whole = _digest(content)
    del content
    return SidePrint(
        rows=len(ids), ids=_digest(np.sort(ids)), content=whole, order=_digest(ids, texts, labels)
    )


def print_side(examples: Sequence[Example]) -> SidePrint:
    """Return the fingerprint of the rows of one side."""
    if isinstance(examples, Printed):
        return examples.print
    blocks = list(_hash_blocks(examples))
    none = np.zeros(0, np.uint64)
    return print_rows(*(np.concatenate([none, *(block[place] for block in blocks)]) for place in range(3)))


def print_splits(sides: Mapping[Side, SidePrint]) -> str:
    """Return the SHA-256 over all sides."""
    plain = json.dumps({name: asdict(side) for name, side in sorted(sides.items())})
    return hashlib.sha256(plain.encode()).hexdigest()


def what_differs(before: Mapping[Side, SidePrint], now: Mapping[Side, SidePrint]) -> list[str]:
    """Return one line for each side that is not what it was; none if all is equal."""
    lines = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if old is None or new is None:
            lines.append(f"{name}: {'was not there' if old is None else 'is gone'}")
        elif old.rows != new.rows:
            lines.append(f"{name}: {old.rows} rows before, {new.rows} now ({new.rows - old.rows:+d})")
        elif old.content != new.content:
            lines.append(f"{name}: {new.rows} rows as before, but other texts or labels")
        elif old.ids != new.ids:
            lines.append(f"{name}: the same texts and labels under other ids (was the file renamed?)")
        else:
            lines.append(f"{name}: the same rows in another order")
    return lines


def _hash_blocks(examples: Sequence[Example]) -> Iterator[tuple[NDArray[np.uint64], ...]]:
    for start in range(0, len(examples), _BLOCK_ROWS):
        rows = list(examples[start : start + _BLOCK_ROWS])
        yield (
            hash_names(row.id for row in rows),
            hash_texts([row.text for row in rows]),
            hash_label_sets([row.labels for row in rows]),
        )


def _digest(*parts: NDArray[np.uint64]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big"))
        total.update(np.ascontiguousarray(part.astype("<u8", copy=False)).data)
    return total.hexdigest()
