"""One pass after the other over a source, from several places at once.

Promises: the rows are a function of (source, seed, pass, what is asked for), and `state` between any two
slices is enough to go on; the parts come in an order drawn for each pass, a few of them in turns, each by
slices in proportion to its size, so that they end at about the same time and neighbours in a file are
not neighbours in the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from textmill.core.seeds import numpy_generator
from textmill.data.bad_rows import BadRows
from textmill.data.rows import Chunk, Position, Rows
from textmill.data.stream.parts import NUM_HEADS
from textmill.data.stream.source import Source

SLICED_ROWS = 512
"""Rows of all parts together in one turn each: a slice is then mostly less than a chunk, so that
the parts keep their proportions."""


def _as_they_are(rows: Rows) -> Rows:
    return rows


@dataclass
class _Head:
    """A place in a part."""

    part: int
    place: Position | None
    """Behind the last chunk that was given out whole."""
    taken: int = 0
    """Rows given out of the chunk behind it."""
    reader: Iterator[Chunk] | None = None
    rows: Rows | None = None
    """That chunk."""
    after: Position | None = None
    """The place behind it."""


class Heads:
    """Reads one pass."""

    def __init__(
        self,
        source: Source,
        seed: int,
        bad: BadRows,
        number: int = 0,
        state: dict[str, Any] | None = None,
        keep: Callable[[Rows], Rows] = _as_they_are,
    ) -> None:
        """Begin a pass, or go on in it.

        Args:
            source: what is read.
            seed: of the training.
            bad: what happens to bad rows.
            number: of the pass, from 0; with a state, the state's.
            state: as `state` gave it.
            keep: leaves out what is wrong with a chunk as a whole, before it is cut.
        """
        self._source, self._bad, self._keep = source, bad, keep
        self.number = int(state["pass"]) if state else number
        self._order: list[int] = (
            numpy_generator(seed, "stream", self.number).permutation(source.num_parts).tolist()
        )
        self._next = int(state["next"]) if state else 0
        self._turn = int(state["turn"]) if state else 0
        self._heads = [
            _Head(part, None if place is None else Position.from_json(place), taken)
            for part, place, taken in (state["heads"] if state else [])
        ]

    def state(self) -> dict[str, Any]:
        """Return where the pass stands, as JSON values."""
        heads = [
            [head.part, None if head.place is None else head.place.as_json(), head.taken]
            for head in self._heads
        ]
        return {"pass": self.number, "next": self._next, "turn": self._turn, "heads": heads}

    @property
    def num_open(self) -> int:
        """How many parts are read in turns just now."""
        return len(self._heads)

    def next_rows(self, num: int, share: float = 1.0) -> Rows | None:
        """Return a slice of the part whose turn it is, None at the end of the pass.

        Args:
            num: rows wanted of all parts together in one turn each; a slice has its part's share of
                them, at least one row, and never more than the rest of a chunk.
            share: a slice has no more than this share of a chunk.
        """
        while True:
            while len(self._heads) < NUM_HEADS and self._next < len(self._order):
                self._heads.append(_Head(self._order[self._next], None))
                self._next += 1
            if not self._heads:
                return None
            self._turn %= len(self._heads)
            head = self._heads[self._turn]
            if not self._load(head):
                del self._heads[self._turn]
                continue
            assert head.rows is not None
            whole = sum(self._source.weight(other.part) for other in self._heads)
            wanted = num * self._source.weight(head.part) / whole
            most = max(1, round(min(wanted, share * len(head.rows))))
            found = head.rows.part(head.taken, head.taken + most)
            head.taken += len(found)
            if head.taken == len(head.rows):
                head.place, head.taken, head.rows = head.after, 0, None
            self._turn += 1
            return found

    def _load(self, head: _Head) -> bool:
        """See to it that the head has rows; return whether there are any."""
        if head.reader is None:
            head.reader = self._source.read(head.part, head.place, self._bad)
        while head.rows is None:
            chunk = next(head.reader, None)
            if chunk is None:
                return False
            rows, head.after = self._keep(chunk.rows), chunk.after
            if head.taken < len(rows):
                head.rows = rows
            else:
                head.place, head.taken = chunk.after, 0
        return True

    def close(self) -> None:
        """Close what is open."""
        for head in self._heads:
            if head.reader is not None:
                head.reader.close()  # type: ignore[attr-defined]
