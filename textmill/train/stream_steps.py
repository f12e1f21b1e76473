"""From a stream to the steps of an epoch, pool by pool; loads no torch, so that it starts soon elsewhere.

A pool is a number of slices, at least one of each part that is being read: its rows are filtered, freed of
exact duplicates, tokenised, shuffled, grouped by length and cut by the token budget. The first pool of an
epoch is small, so that the first batch comes at once; later ones grow up to `data.shuffle_rows`.

Promises: the steps are a function of (seed, epoch, source, settings); a pool's beginning is a
place in the source and a few counts, so that a pool is read again rather than kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textmill.core.errors import DataError
from textmill.core.seeds import stream_seed
from textmill.core.types import Example
from textmill.data.bad_rows import BadRows
from textmill.data.rows import Rows
from textmill.data.stream.heads import SLICED_ROWS, Heads
from textmill.data.stream.parts import NUM_HEADS
from textmill.data.stream.source import Source
from textmill.data.stream.usable import Usable
from textmill.encode.long_text import row_weights
from textmill.encode.token_store import TokenStore, store_tokens
from textmill.encode.tokenizer import Tokenizer
from textmill.order.sampler import BatchPlan

_FIRST_ROWS = 512
_FIRST_CHARACTERS = 1 << 18
"""The first pool: a quarter of a second's tokenising on one core, so that the first batch comes soon."""
_GROWTH = 4
_POOL_CHARACTERS = 64 << 20
"""A pool ends here even if it has few rows: with ids and objects a quarter of a GiB at most."""


class Arrays(NamedTuple):
    """A batch as NumPy arrays, which go to another process as they are."""

    inputs: dict[str, npt.NDArray[np.int64]]  # (B, T) each
    targets: npt.NDArray[Any]  # (B,) int64, or (B, C) float32
    ids: tuple[str, ...]  # B
    lengths: npt.NDArray[np.int64]  # (B,)
    weights: npt.NDArray[np.float32] | None  # (B,)


@dataclass(frozen=True, slots=True)
class PoolStart:
    """Where a pool begins."""

    epoch: int
    number: int
    """Of the pool in its epoch."""
    first_step: int
    """Steps of the epoch before it."""
    rows: int
    """Rows of the source read in the epoch before it."""
    heads: dict[str, Any]
    """The place in the source."""

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Pool:
    """The batches of a pool, not yet padded."""

    start: PoolStart
    after: PoolStart | None
    """Where the next one begins; None at the end of the epoch."""
    next_epoch: dict[str, Any]
    """Where the source stands behind it, for an epoch that goes on there."""
    steps: list[list[npt.NDArray[np.int64]]]
    """Positions of the rows of each batch of each step."""
    encoded: TokenStore
    targets: npt.NDArray[Any]
    ids: Sequence[str]
    weights: npt.NDArray[np.float32] | None


@dataclass(frozen=True)
class StepMaker:
    """All that the steps are a function of; can be sent to another process."""

    source: Source
    usable: Usable
    tokenizer: Tokenizer
    max_tokens: int
    row_limit: int | None
    seed: int
    accumulate: int = 1
    pool_rows: int = 16384
    epoch_rows: int | None = None
    side_file: Path | None = None
    counts: Counter[str] = field(default_factory=Counter, compare=False)
    """Is added to while reading, in the process that reads."""

    def begin(self, epoch: int, heads: dict[str, Any] | None = None) -> PoolStart:
        """Return where an epoch begins.

        Args:
            epoch: from 0.
            heads: where the epoch before ended, for a source whose epochs are not passes.
        """
        place = heads or Heads(self.source, self.seed, BadRows(), epoch).state()
        return PoolStart(epoch, 0, 0, 0, place)

    def pools(self, start: PoolStart) -> Iterator[Pool]:
        """Yield the pools of an epoch from `start` on.

        Raises:
            DataError: a bad row where that is not to be skipped, or a source that does not come back.
        """
        bad = BadRows(self.usable.config.on_bad_row, self.side_file)
        heads = self._heads(bad, start.heads)
        at: PoolStart | None = start
        try:
            while at is not None:
                examples, rows, is_end, heads = self._fill(at, heads, bad)
                pool = self._make(at, examples, rows, is_end, heads)
                self.counts["bad"] = bad.count
                bad.flush()
                yield pool
                at = pool.after
        finally:
            heads.close()
            bad.flush()

    def batch(self, pool: Pool, positions: npt.NDArray[np.int64]) -> Arrays:
        """Return the rows of a pool at `positions` (B,), padded to the longest of them."""
        return Arrays(
            pool.encoded.padded(positions),
            pool.targets[positions],
            tuple(pool.ids[position] for position in positions.tolist()),
            pool.encoded.lengths[positions],
            None if pool.weights is None else pool.weights[positions],
        )

    def _heads(self, bad: BadRows, state: dict[str, Any] | None = None, number: int = 0) -> Heads:
        def keep(rows: Rows) -> Rows:
            return self.usable.whole_tables(rows, bad)

        return Heads(self.source, self.seed, bad, number, state, keep)

    def _fill(self, at: PoolStart, heads: Heads, bad: BadRows) -> tuple[list[Example], int, bool, Heads]:
        """Read slices until the pool is full; return its rows, the rows read, and whether the epoch ends."""
        target = min(self.pool_rows, _FIRST_ROWS * _GROWTH ** min(at.number, 16))
        bound = min(_POOL_CHARACTERS, _FIRST_CHARACTERS * _GROWTH ** min(at.number, 16))
        share = min(1.0, bound / (NUM_HEADS * _FIRST_CHARACTERS))
        found: list[Example] = []
        rows = characters = num_slices = 0
        is_empty_pass = heads.state()["next"] == 0
        while True:
            wanted = min(target, SLICED_ROWS)
            if self.epoch_rows is not None:
                wanted = min(wanted, self.epoch_rows - at.rows - rows)
            part = heads.next_rows(wanted, share)
            if part is None:
                if self.epoch_rows is None:
                    return found, rows, True, heads
                if is_empty_pass and not rows:
                    raise DataError(
                        "A stream must give rows", got="a whole pass without any", fix="Check the source."
                    )
                heads.close()
                heads, is_empty_pass = self._heads(bad, number=heads.number + 1), True
                continue
            is_empty_pass = False
            rows += len(part)
            num_slices += 1
            examples = self.usable.sort(part, bad, self.counts)["train"]
            found += examples
            characters += sum(
                len(row.text) if isinstance(row.text, str) else sum(map(len, row.text)) for row in examples
            )
            if self.epoch_rows is not None and at.rows + rows >= self.epoch_rows:
                return found, rows, True, heads
            is_full = len(found) >= target or characters >= bound
            if is_full and num_slices >= heads.num_open:
                return found, rows, False, heads

    def _make(self, at: PoolStart, examples: list[Example], rows: int, is_end: bool, heads: Heads) -> Pool:
        unique = list({(row.text, row.labels): row for row in reversed(examples)}.values())[::-1]
        encoded = store_tokens(unique, self.tokenizer)
        owner, lengths = encoded.owner, encoded.lengths
        has_windows = len(encoded) > len(unique)
        targets = self.targets(unique)[owner]
        seed = stream_seed(self.seed, "stream-pool", at.epoch, at.number)
        plan = BatchPlan(lengths, self.max_tokens, self.row_limit, seed=seed)
        batches = plan.plan_epoch(0) if len(lengths) else []
        steps = [batches[i : i + self.accumulate] for i in range(0, len(batches), self.accumulate)]
        self.counts["duplicates"] += len(examples) - len(unique)
        place = heads.state()
        after = PoolStart(at.epoch, at.number + 1, at.first_step + len(steps), at.rows + rows, place)
        return Pool(
            start=at,
            after=None if is_end else after,
            next_epoch=place,
            steps=steps,
            encoded=encoded,
            targets=targets,
            ids=[unique[index].id for index in owner.tolist()],
            weights=row_weights(owner) if has_windows else None,
        )

    def targets(self, examples: Sequence[Example]) -> npt.NDArray[Any]:
        """(N,) int64 class of each example, or (N, C) float32 of 0 and 1."""
        labels = self.usable.labels or ()
        place = {label: index for index, label in enumerate(labels)}
        if self.usable.task != "multilabel":
            return np.array([place[row.labels[0]] for row in examples], np.int64)
        targets = np.zeros((len(examples), len(labels)), np.float32)
        for index, row in enumerate(examples):
            targets[index, [place[name] for name in row.labels]] = 1
        return targets
