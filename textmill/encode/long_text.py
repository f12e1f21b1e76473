"""What becomes of a text that is longer than the model reads: its head, its tail, both, or windows.

Promises: every row keeps all special tokens and has at most `max_length` tokens; windows leave no token
out; the same rule cuts in training and in serving, since it is saved with the tokenizer.

head        the first tokens; of a pair the longer part gives way first
tail        the last tokens
head-tail   as many of the first as of the last (Sun et al. 2019, "How to Fine-Tune BERT for Text
            Classification?", found it best for reviews and articles)
windows     several rows for a text, each but the last `1 - overlap` of a window further on; the last one
            ends with the text, so that it is as full as the others. In a pair the windows go over the
            second text beside the first, which keeps its head of half the room, or what the second leaves.

The scores of windows are pooled per text: mean, or max (the highest score of each class; those of a
single-label model are divided by their sum, so that they stay probabilities).
This module loads only NumPy, so that serving processes can use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from textmill.encode.config import LongText, WindowPool
from textmill.encode.padding import Encoded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from textmill.core.types import Scores


class Cut(NamedTuple):
    """Texts as rows of tokens: one for each text, or several where it is cut to windows."""

    rows: list[Encoded]
    """R rows; those of one text stand together, in the order of the texts."""
    owner: NDArray[np.int64]  # (R,) index of the text of each row, ascending


def row_weights(owner: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return (R,) weights of mean 1 by which all rows of a text together count as much as any other text.

    Args:
        owner: (R,) index of the text of each row; each of the N texts has a row.
    """
    num_rows = np.bincount(owner)  # (N,)
    weights: NDArray[np.float32] = (len(owner) / len(num_rows) / num_rows[owner]).astype(np.float32)
    return weights


def pool_scores(scores: Scores, owner: NDArray[np.int64], pool: WindowPool, is_multilabel: bool) -> Scores:
    """Return the (N, C) scores of texts from the (R, C) scores of their rows.

    Args:
        scores: (R, C) probabilities.
        owner: (R,) index of the text of each row, ascending; each of the N texts has a row.
        pool: how the rows of a text become one.
        is_multilabel: whether scores stand alone; else those of a text sum to 1.
    """
    num_texts = int(owner[-1]) + 1 if len(owner) else 0
    if num_texts == len(owner):
        return scores
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    assert len(starts) == num_texts, "each text has a row"
    if pool == "mean":
        sums = np.add.reduceat(scores.astype(np.float64), starts, axis=0)
        pooled = sums / np.bincount(owner)[:, None]
    else:
        pooled = np.maximum.reduceat(scores, starts, axis=0).astype(np.float64)
        if not is_multilabel:
            pooled /= pooled.sum(axis=1, keepdims=True)
    return pooled.astype(np.float32)


def cut_long(
    row: Encoded,
    part: NDArray[np.int64],
    rule: LongText,
    max_length: int,
    overlap: float,
) -> list[Encoded]:
    """Return the rows of a text that is longer than `max_length`.

    Args:
        row: the whole text, special tokens included.
        part: (T,) 0 for tokens of the first text, 1 for those of the second, -1 for special tokens.
        rule: head-tail or windows; what a tokenizer can cut by itself is not cut here.
        max_length: longest row, special tokens included.
        overlap: share of a window that the next one repeats.
    """
    first, second = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
    special = np.flatnonzero(part < 0)
    room = max_length - len(special)
    assert room > 0, "max_length leaves no room for text"
    if rule == "head-tail":
        sizes = allot(len(first), len(second), room)
        kept = [_both_ends(tokens, size) for tokens, size in zip((first, second), sizes, strict=True)]
        return [_take(row, [special, *kept])]
    assert rule == "windows", "the tokenizer itself cuts head and tail"
    if not len(second):
        return [_take(row, [special, window]) for window in _windows(first, room, overlap)]
    fixed = first[: max(room // 2, room - len(second))]
    return [_take(row, [special, fixed, window]) for window in _windows(second, room - len(fixed), overlap)]


def allot(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many tokens each part of a pair keeps when the longer one gives way first."""
    if first + second <= room:
        return first, second
    half = room // 2
    if first <= half:
        return first, room - first
    if second <= room - half:
        return room - second, second
    return half, room - half


def _both_ends(tokens: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return `size` of the positions: the first half of them, one more if it is odd, and the last half."""
    if size >= len(tokens):
        return tokens
    tail = size // 2
    return np.concatenate([tokens[: size - tail], tokens[len(tokens) - tail :]])


def _windows(tokens: NDArray[np.int64], size: int, overlap: float) -> list[NDArray[np.int64]]:
    if len(tokens) <= size:
        return [tokens]
    step = max(1, size - round(overlap * size))
    last = len(tokens) - size
    starts: Sequence[int] = [*range(0, last, step), last]
    return [tokens[start : start + size] for start in starts]


def _take(row: Encoded, positions: Sequence[NDArray[np.int64]]) -> Encoded:
    kept = np.sort(np.concatenate(positions))
    return Encoded(row.ids[kept], None if row.type_ids is None else row.type_ids[kept])
