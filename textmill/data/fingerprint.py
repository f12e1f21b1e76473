"""What makes two data sets the same, in enough detail to say how they differ.

Promises: equal fingerprints mean the same ids, texts and labels on the same sides in the same
order; `what_differs` says in words whether rows were added, removed, changed or only reordered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from textmill.core.types import Example
from textmill.data.split import Side


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


def print_side(examples: Sequence[Example]) -> SidePrint:
    """Return the fingerprint of the rows of one side."""
    return SidePrint(
        rows=len(examples),
        ids=_digest(sorted(example.id for example in examples)),
        content=_digest(sorted(_plain([example.text, example.labels]) for example in examples)),
        order=_digest(_plain([example.id, example.text, example.labels]) for example in examples),
    )


def print_splits(sides: Mapping[Side, SidePrint]) -> str:
    """Return the SHA-256 over all sides."""
    return _digest([_plain({name: asdict(side) for name, side in sorted(sides.items())})])


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


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)


def _digest(parts: Iterable[str]) -> str:
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()
