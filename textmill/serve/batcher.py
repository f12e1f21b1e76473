"""What waits for one version, and which of it makes the next batch.

The queue is kept sorted by length. A batch always holds the text that has waited longest, so
nobody starves; around it the neighbours in length are taken that make the batch cheapest for each
real token: cost = fixed cost of a run + rows x longest row. There is no waiting window: what waits
when a compute thread is free is what can be batched.

What is not covered: admission (the version counts items and tokens) and time.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textmill.encode.padding import Encoded
    from textmill.serve.pending import Pending

RUN_COST_TOKENS = 24
"""Fixed cost of one run of the model, in tokens (call overhead, reading the weights)."""
SUSPECT_AFTER = 2
"""Deaths of a worker under a text after which the text is computed alone, with nothing beside it."""


@dataclass(slots=True, eq=False)
class Item:
    """One row of a request: a text, or a window of one."""

    pending: Pending
    index: int
    """Place of the row among those of the request."""
    text: int
    """Place of its text among those of the request."""
    encoded: Encoded
    length: int
    sequence: int
    deaths: int = 0
    """How many workers died while they computed this text."""
    key: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.key = (self.length, self.sequence)


class Batcher:
    """Waiting items of one version."""

    def __init__(self, max_tokens: int, max_rows: int) -> None:
        self._max_tokens = max_tokens
        self._max_rows = max_rows
        self._by_length: list[Item] = []
        self._by_age: dict[int, Item] = {}
        self._suspects: list[Item] = []
        self._num_tokens = 0

    def __len__(self) -> int:
        return len(self._by_age) + len(self._suspects)

    @property
    def num_tokens(self) -> int:
        """Tokens waiting, without padding."""
        return self._num_tokens

    def add(self, items: Iterable[Item]) -> None:
        """Let items wait; their order of age is the order of the calls."""
        for item in items:
            self._num_tokens += item.length
            if item.deaths >= SUSPECT_AFTER:
                self._suspects.append(item)
                continue
            bisect.insort(self._by_length, item, key=_key)
            self._by_age[item.sequence] = item

    def put_back(self, items: Iterable[Item]) -> None:
        """Let items wait again at their old age (their worker died)."""
        self.add(items)
        self._by_age = dict(sorted(self._by_age.items()))

    def discard(self, items: Iterable[Item]) -> None:
        """Forget items whose request has ended; those no longer waiting are ignored."""
        for item in items:
            if self._by_age.pop(item.sequence, None) is not None:
                place = bisect.bisect_left(self._by_length, item.key, key=_key)
                del self._by_length[place]
                self._num_tokens -= item.length
            elif item in self._suspects:
                self._suspects.remove(item)
                self._num_tokens -= item.length

    @property
    def has_suspects(self) -> bool:
        """Whether a text waits that has to be computed alone."""
        return bool(self._suspects)

    def take_suspect(self) -> Item | None:
        """Return a text that has to be computed alone, if one waits."""
        if not self._suspects:
            return None
        item = self._suspects.pop(0)
        self._num_tokens -= item.length
        return item

    def take(self, num_free: int = 1) -> list[Item]:
        """Return the items of the next batch, shortest first; empty when nothing waits.

        Args:
            num_free: compute threads that are idle; what waits is shared out between them.
        """
        if not self._by_length:
            return []
        oldest = next(iter(self._by_age.values()))
        anchor = bisect.bisect_left(self._by_length, oldest.key, key=_key)
        share = self._max_tokens if num_free < 2 else -(-self._num_tokens // num_free)
        first, last = self._window(anchor, min(self._max_tokens, share))
        batch = self._by_length[first:last]
        del self._by_length[first:last]
        for item in batch:
            del self._by_age[item.sequence]
            self._num_tokens -= item.length
        return batch

    def _window(self, anchor: int, max_tokens: int) -> tuple[int, int]:
        """Return the slice of the sorted queue around `anchor` that is cheapest for each real token."""
        waiting = self._by_length
        best, best_yield = (anchor, anchor + 1), 0.0
        between = 0  # tokens of the rows right of the anchor, the longest one included
        for last in range(anchor, min(len(waiting), anchor + self._max_rows)):
            longest = waiting[last].length
            max_rows = min(self._max_rows, max(1, max_tokens // longest))
            if last - anchor + 1 > max_rows:
                break
            between += longest
            first, tokens = anchor, between
            while first > 0 and last - first + 1 < max_rows:
                cost = RUN_COST_TOKENS + (last - first + 1) * longest
                # One more row pays if it is better filled than the batch so far.
                if waiting[first - 1].length * cost <= tokens * longest:
                    break
                first -= 1
                tokens += waiting[first].length
            rows = last - first + 1
            filled = tokens / (RUN_COST_TOKENS + rows * longest)
            if filled > best_yield:
                best, best_yield = (first, last + 1), filled
        return best


def _key(item: Item) -> tuple[int, int]:
    return item.key
