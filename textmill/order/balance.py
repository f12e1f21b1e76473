"""Rows in a sequence of which every stretch has the same mix of classes.

Promises: no row comes twice, so nothing is drawn endlessly and no batch is filled with copies; the
classes come in equal numbers as far as their rows go, and a class with fewer rows is spread evenly
over the whole sequence instead of being used up at its start; of each class a share of the rows is
left for what comes afterwards. Cut anywhere, a stretch of such a sequence is balanced, whatever
the token budget makes of it.
What is not covered: rare classes drawn more than once (use `train.class_weights`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_OF_A_CLASS = 0.5
"""Share of a class's rows that may come in a balanced head. Were it 1, a class of 1 row in 20 would be used
up by a head of 30 %, and the shuffled rest of the epoch would never show it."""
_SMALL = 4
"""A class that gives less than a quarter of what the largest gives is named in a note."""
_MAX_NAMED = 5


def class_quotas(counts: NDArray[np.int64], num: int, share: float) -> NDArray[np.int64]:
    """Return how many rows each class gives to a balanced head.

    Args:
        counts: (C,) rows of each class.
        num: rows wanted in all.
        share: of all rows that the head takes; classes may give at least this share of theirs.

    Returns:
        (C,) numbers, as equal as the classes' own limits allow; together `num` if the limits reach that far.
    """
    limits: NDArray[np.int64] = np.ceil(counts * max(share, _MOST_OF_A_CLASS)).astype(np.int64)
    quotas: NDArray[np.int64] = np.zeros_like(limits)
    left = min(num, int(limits.sum()))
    while left > 0:
        is_open = quotas < limits
        each = left // int(is_open.sum())
        if each == 0:  # fewer rows than classes are left: the largest classes give one more
            by_size = np.argsort(-counts, kind="stable")
            quotas[by_size[is_open[by_size]][:left]] += 1
            break
        given = np.where(is_open, np.minimum(each, limits - quotas), 0)
        quotas += given
        left -= int(given.sum())
    return quotas


def balanced_head(
    ranking: NDArray[np.int64], classes: NDArray[np.int64], num: int, share: float
) -> NDArray[np.int64]:
    """Return the first rows of each class in a sequence that is balanced wherever it is cut.

    Row j of the q rows of a class is put at (j + 1/2) / q of the way, so that in any stretch a class
    has its share of the head up to one row; classes of equal numbers take turns.

    Args:
        ranking: (N,) all positions, in the order wanted within each class.
        classes: (N,) class of each position.
        num: rows wanted.
        share: of all rows that the head takes.

    Returns:
        (H,) different positions, H <= num.
    """
    if not len(ranking):
        return ranking
    counts = np.bincount(classes)
    quotas = class_quotas(counts, num, share)
    ranked = classes[ranking]
    by_class = np.argsort(ranked, kind="stable")
    place = np.empty(len(ranking), dtype=np.int64)  # of a row among those of its class
    place[by_class] = np.arange(len(ranking)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_taken = place < quotas[ranked]
    keys = (place[is_taken] + 0.5) / quotas[ranked[is_taken]]
    return ranking[is_taken][np.lexsort((ranked[is_taken], keys))]


def small_class_notes(
    classes: NDArray[np.int64], num: int, share: float, labels: Sequence[str]
) -> tuple[str, ...]:
    """Return a sentence about classes too small to be in each balanced batch, if there are any.

    Args:
        classes: (N,) class of each row.
        num: rows of the balanced head.
        share: of all rows that the head takes.
        labels: class names; a class beyond them is called by its number.
    """
    counts = np.bincount(classes)
    quotas = class_quotas(counts, num, share)
    small = np.flatnonzero((counts > 0) & (quotas * _SMALL < quotas.max(initial=0)))
    if not len(small):
        return ()
    shown = small[np.argsort(counts[small], kind="stable")][:_MAX_NAMED].tolist()
    names = ", ".join(
        f"{labels[index] if index < len(labels) else f'class {index}'!r} "
        f"({counts[index]} row{'' if counts[index] == 1 else 's'})"
        for index in shown
    )
    more = f" and {len(small) - len(shown)} more" if len(small) > len(shown) else ""
    return (
        f"Too small to be in every class-balanced batch: {names}{more}. Their rows are spread over the "
        "ordered part; none is repeated.",
    )


def balance_classes(targets: NDArray[Any]) -> NDArray[np.int64]:
    """Return (N,) the class by which a row is balanced.

    Args:
        targets: (N,) class numbers, as they are returned; or (N, C) 0 and 1 of multi-label rows, each of
            which counts as the rarest of its classes (a row of none as a class of its own, C).
    """
    if targets.ndim == 1:
        return targets.astype(np.int64)
    given = targets > 0.5
    by_rarity = np.argsort(given.sum(axis=0), kind="stable")
    rarest = (
        by_rarity[given[:, by_rarity].argmax(axis=1)] if given.shape[1] else np.zeros(len(given), np.int64)
    )
    return np.where(given.any(axis=1), rarest, given.shape[1]).astype(np.int64)
