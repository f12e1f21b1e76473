"""Which side a row is on: training, validation or test.

Promises: the side is a function of the cleaned text alone, so a row never changes side when rows
are added, removed or reordered, and two rows with one text are always on the same side. Shares hold
in expectation, for each class too. No class is absent from training: where chance would leave one
out, its text with the lowest hash trains (only that text can move, and only while the class has no
other training row).

What is not covered: groups (all rows of one author on one side) and splits by time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from textmill.core.types import Text
from textmill.data.text_hash import hash_texts, is_among, positions

if TYPE_CHECKING:
    from numpy.typing import NDArray

Side = Literal["train", "valid", "test"]
SIDES: tuple[Side, ...] = ("train", "valid", "test")


def position(text: Text) -> float:
    """Return where a text lies in [0, 1), from its salted hash."""
    return float(positions(hash_texts([text]))[0])


def split_sides(
    hashes: NDArray[np.uint64],
    codes: NDArray[np.int32],
    label_sets: Sequence[tuple[str, ...]],
    valid_share: float,
    test_share: float,
) -> NDArray[np.int8]:
    """Return the side of each row as (N,) places in `SIDES`.

    Args:
        hashes: (N,) of the cleaned texts.
        codes: (N,) places in `label_sets`.
        label_sets: the class names of a row, for each code.
        valid_share: the share for validation, 0 for none.
        test_share: the share for the test, 0 for none.
    """
    assert 0 <= valid_share + test_share < 1, "some share must be left to training"
    place = positions(hashes)
    is_anchor = is_among(hashes, _lowest_of_classes(hashes, codes, label_sets))
    sides = np.full(len(hashes), SIDES.index("valid"), np.int8)
    sides[place >= 1 - test_share] = SIDES.index("test")
    sides[is_anchor | (place < 1 - valid_share - test_share)] = SIDES.index("train")
    return sides


def _lowest_of_classes(
    hashes: NDArray[np.uint64], codes: NDArray[np.int32], label_sets: Sequence[tuple[str, ...]]
) -> NDArray[np.uint64]:
    """Return the lowest hash of each class, which trains whatever the shares say."""
    lowest = np.full(len(label_sets), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(lowest, codes, hashes)
    by_class: dict[str, int] = {}
    for code in np.unique(codes).tolist():
        for name in label_sets[code]:
            by_class[name] = min(by_class.get(name, 1 << 64), int(lowest[code]))
    return np.array(list(by_class.values()), dtype=np.uint64)
