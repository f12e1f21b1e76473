from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from textmill.data.split import SIDES, Side, position
from textmill.data.split import split_sides as split_hashes
from textmill.data.text_hash import hash_texts

TEXTS = [f"text number {number}" for number in range(4_000)]
LABELS = ["a" if number % 4 else "b" for number in range(4_000)]


def split_sides(texts: Sequence[str], labels: Sequence[str], valid: float, test: float) -> list[Side]:
    names = sorted(set(labels))
    codes = np.array([names.index(label) for label in labels], np.int32)
    sides = split_hashes(hash_texts(texts), codes, [(name,) for name in names], valid, test)
    return [SIDES[side] for side in sides.tolist()]


def test_shares_hold_for_each_class() -> None:
    sides = split_sides(TEXTS, LABELS, 0.1, 0.2)
    for label in "ab":
        own = [side for side, name in zip(sides, LABELS, strict=True) if name == label]
        assert own.count("valid") / len(own) == pytest.approx(0.1, abs=0.03)
        assert own.count("test") / len(own) == pytest.approx(0.2, abs=0.03)


def test_a_row_never_changes_side() -> None:
    before = dict(zip(TEXTS, split_sides(TEXTS, LABELS, 0.1, 0.1), strict=True))
    rows = list(zip(TEXTS, LABELS, strict=True))[500:] + [(f"new {number}", "a") for number in range(900)]
    random.Random(0).shuffle(rows)
    texts, labels = zip(*rows, strict=True)
    now = dict(zip(texts, split_sides(texts, labels, 0.1, 0.1), strict=True))
    assert all(now[text] == before[text] for text in texts if text in before)


def test_a_larger_validation_share_leaves_the_test_untouched() -> None:
    small = split_sides(TEXTS, LABELS, 0.1, 0.1)
    large = split_sides(TEXTS, LABELS, 0.3, 0.1)
    assert [side == "test" for side in small] == [side == "test" for side in large]


def test_both_rows_of_a_conflict_are_on_one_side() -> None:
    texts = [text for text in TEXTS for _ in "ab"]
    sides = split_sides(texts, ["a", "b"] * len(TEXTS), 0.2, 0.2)
    assert all(first == second for first, second in zip(sides[::2], sides[1::2], strict=True))


def test_no_class_is_absent_from_training() -> None:
    lonely = max(TEXTS, key=position)
    texts = [*TEXTS, lonely]
    sides = split_sides(texts, [*LABELS[: len(TEXTS)], "c"], 0.1, 0.1)
    assert sides[-1] == "train"


def test_the_hash_is_the_same_everywhere() -> None:
    assert position("a text") == pytest.approx(0.01592324, abs=1e-8)


def test_no_share_means_all_rows_train() -> None:
    assert set(split_sides(TEXTS, LABELS, 0, 0)) == {"train"}
