"""Which side a row is on: training, validation or test.

Promises: the side is a function of the cleaned text alone, so a row never changes side when rows
are added, removed or reordered, and two rows with one text are always on the same side. Shares hold
in expectation, for each class too. No class is absent from training: where chance would leave one
out, its text with the lowest hash trains (only that text can move, and only while the class has no
other training row).

What is not covered: groups (all rows of one author on one side) and splits by time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

Side = Literal["train", "valid", "test"]
SIDES: tuple[Side, ...] = ("train", "valid", "test")

_SALT = b"textmill split 1\0"


def position(text: str) -> float:
    """Return where a text lies in [0, 1), from its salted hash."""
    digest = hashlib.sha256(_SALT + text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def split_sides(
    texts: Sequence[str], labels: Sequence[str], valid_share: float, test_share: float
) -> list[Side]:
    """Return the side of each row.

    Args:
        texts: N cleaned texts.
        labels: N class names.
        valid_share: the share for validation, 0 for none.
        test_share: the share for the test, 0 for none.
    """
    assert 0 <= valid_share + test_share < 1, "some share must be left to training"
    positions = {text: position(text) for text in texts}
    lowest: dict[str, str] = {}
    for text, label in zip(texts, labels, strict=True):
        if label not in lowest or positions[text] < positions[lowest[label]]:
            lowest[label] = text
    anchors = set(lowest.values())

    def side(text: str) -> Side:
        if text in anchors or positions[text] < 1 - valid_share - test_share:
            return "train"
        return "valid" if positions[text] < 1 - test_share else "test"

    return [side(text) for text in texts]
