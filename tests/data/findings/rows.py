"""Rows and splits for tests of findings."""

from __future__ import annotations

from collections.abc import Sequence

from textmill.core.seeds import numpy_generator
from textmill.core.types import Example, Text

_SYLLABLES = ("ka", "lo", "mi", "ru", "te", "sha", "von", "pel", "dri", "gam", "osk", "une")


def sentence(number: int, num_words: int = 14) -> str:
    """Return a long text of made-up words, another one for each number."""
    rng = numpy_generator(0, "sentence", number)
    words = ["".join(rng.choice(_SYLLABLES, size=int(rng.integers(2, 5)))) for _ in range(num_words)]
    return " ".join(words)


def examples(texts: Sequence[Text], labels: Sequence[tuple[str, ...]] | None = None) -> list[Example]:
    """Return rows r0, r1, ... that are labelled a and b in turn unless told otherwise."""
    given = labels or [("ab"[n % 2],) for n in range(len(texts))]
    return [Example(f"r{n}", text, label) for n, (text, label) in enumerate(zip(texts, given, strict=True))]
