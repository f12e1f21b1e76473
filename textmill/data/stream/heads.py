"""One pass after the other over a source, from several places at once.

Promises: the chunks are a function of (source, seed, pass), and `state` between any two of them is enough
to go on; the parts come in an order drawn for each pass, a few of them in turns, so that neighbours
in a file are not neighbours in the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from textmill.core.seeds import numpy_generator
from textmill.data.bad_rows import BadRows
from textmill.data.rows import Chunk, Position
from textmill.data.stream.source import Source

NUM_HEADS = 8
"""Parts read in turns; each holds one open file and one chunk."""


class Heads:
    """Reads one pass."""

    def __init__(
        self, source: Source, seed: int, bad: BadRows, number: int = 0, state: dict[str, Any] | None = None
    ) -> None:
        """Begin a pass, or go on in it.

        Args:
            source: what is read.
            seed: of the training.
            bad: what happens to bad rows.
            number: of the pass, from 0; with a state, the state's.
            state: as `state` gave it.
        """
        self._source, self._bad = source, bad
        self.number = int(state["pass"]) if state else number
        self._order: list[int] = (
            numpy_generator(seed, "stream", self.number).permutation(source.num_parts).tolist()
        )
        self._next = int(state["next"]) if state else 0
        self._turn = int(state["turn"]) if state else 0
        self._places: list[tuple[int, Position | None]] = [
            (part, None if place is None else Position.from_json(place))
            for part, place in (state["heads"] if state else [])
        ]
        self._readers: list[Iterator[Chunk] | None] = [None] * len(self._places)

    def state(self) -> dict[str, Any]:
        """Return where the pass stands, as JSON values."""
        heads = [[part, None if place is None else place.as_json()] for part, place in self._places]
        return {"pass": self.number, "next": self._next, "turn": self._turn, "heads": heads}

    def next_chunk(self) -> Chunk | None:
        """Return the next chunk, None at the end of the pass."""
        while True:
            # One more part is begun for each chunk, so that the first one comes soon.
            if len(self._places) < NUM_HEADS and self._next < len(self._order):
                self._turn = len(self._places)
                self._places.append((self._order[self._next], None))
                self._readers.append(None)
                self._next += 1
            if not self._places:
                return None
            part, place = self._places[self._turn]
            reader = self._readers[self._turn] or self._source.read(part, place, self._bad)
            self._readers[self._turn] = reader
            chunk = next(reader, None)
            if chunk is not None:
                self._places[self._turn] = (part, chunk.after)
                self._turn = (self._turn + 1) % len(self._places)
                return chunk
            del self._places[self._turn], self._readers[self._turn]
            self._turn = self._turn % len(self._places) if self._places else 0

    def close(self) -> None:
        """Close what is open."""
        for reader in self._readers:
            if reader is not None:
                reader.close()  # type: ignore[attr-defined]
