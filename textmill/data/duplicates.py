"""Rows that repeat, contradict or leak into each other, found by the hashes of their texts.

Promises: two rows are duplicates when their cleaned texts and labels are equal, and the first is
kept; one text with two labels is a conflict, decided by the project's policy; all are counted with
the rows' ids. Texts are equal where their 64-bit hashes are (see `text_hash` for the odds).

What is not covered: near duplicates (other words, other case).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def repeated(hashes: NDArray[np.uint64], codes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the rows, ascending, whose text and label an earlier row has.

    Args:
        hashes: (N,) of the cleaned texts.
        codes: (N,) numbers that stand for the labels of a row.
    """
    rows = sharing_a_text(hashes)
    rows = rows[np.lexsort((rows, codes[rows], hashes[rows]))]
    is_same = (hashes[rows[1:]] == hashes[rows[:-1]]) & (codes[rows[1:]] == codes[rows[:-1]])
    return np.sort(rows[1:][is_same])


def torn(hashes: NDArray[np.uint64], codes: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Return the groups of rows that share a text but not a label, in order of first appearance."""
    rows = sharing_a_text(hashes)
    rows = rows[np.lexsort((rows, hashes[rows]))]
    if not len(rows):
        return []
    starts = np.flatnonzero(np.concatenate([[True], hashes[rows[1:]] != hashes[rows[:-1]]]))
    groups = [group for group in np.split(rows, starts[1:]) if (codes[group] != codes[group[0]]).any()]
    return sorted(groups, key=lambda group: int(group[0]))


def shorten(value: object, limit: int = 60) -> str:
    """Return a value as it may stand in a message."""
    shown = repr(value)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def sharing_a_text(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the rows, ascending, whose text another row has too: the only ones to look at further."""
    order = np.argsort(hashes, kind="stable")
    found = hashes[order]
    is_like_next = np.zeros(len(found) + 1, bool)
    is_like_next[1:-1] = found[1:] == found[:-1]
    return np.sort(order[is_like_next[1:] | is_like_next[:-1]])
