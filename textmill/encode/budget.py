"""Batches by token budget: rows x longest row stays below a bound.

Promises: every row is in exactly one batch; a batch is over the budget only if it is one row that
is longer than the budget by itself.
This module loads only NumPy, so that serving processes can use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK_ROWS = 65_536


def token_batches(
    lengths: NDArray[np.int64], max_tokens: int, max_rows: int | None = None
) -> list[NDArray[np.int64]]:
    """Cut rows, in the order given, into batches with rows x longest <= `max_tokens`.

    Args:
        lengths: (N,) tokens of each row, in the order wanted.
        max_tokens: bound on rows x longest, padding included.
        max_rows: bound on the rows of a batch; None for no bound.

    Returns:
        Batches of positions into `lengths`, each ascending; together 0 .. N-1 in order.
    """
    assert max_tokens > 0, "max_tokens must be positive"
    assert max_rows is None or max_rows > 0, "max_rows must be positive"
    starts: list[int] = []
    longest = 0
    for position, length in enumerate(_as_ints(lengths)):
        rows = position - starts[-1] if starts else 0
        longest_after = max(longest, length)
        is_full = (rows + 1) * longest_after > max_tokens or (max_rows is not None and rows >= max_rows)
        if rows == 0 or is_full:
            starts.append(position)
            longest = length
        else:
            longest = longest_after
    ends = [*starts[1:], len(lengths)]
    return [np.arange(start, end, dtype=np.int64) for start, end in zip(starts, ends, strict=False)]


def _as_ints(lengths: NDArray[np.int64]) -> Iterator[int]:
    """Yield Python's integers, which take four times the memory, a few at a time."""
    for start in range(0, len(lengths), _BLOCK_ROWS):
        yield from lengths[start : start + _BLOCK_ROWS].tolist()


def batches_by_length(
    lengths: NDArray[np.int64], max_tokens: int, max_rows: int | None = None
) -> list[NDArray[np.int64]]:
    """Return batches of rows sorted by length, the longest first, for inference.

    The longest come first so that a lack of memory shows at once. Equal lengths keep their order.

    Returns:
        Batches of positions into `lengths`; the caller puts the answers back in place.
    """
    order = np.argsort(-lengths, kind="stable").astype(np.int64)
    return [order[batch] for batch in token_batches(lengths[order], max_tokens, max_rows)]


def padding_share(lengths: NDArray[np.int64], batches: Sequence[NDArray[np.int64]]) -> float:
    """Return the share of padding among all tokens of `batches`, 0 to 1."""
    filled = sum(int(lengths[batch].sum()) for batch in batches)
    total = sum(len(batch) * int(lengths[batch].max(initial=0)) for batch in batches)
    return 1.0 - filled / total if total else 0.0
