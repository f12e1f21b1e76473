"""Words in running text: by script for spaced writing, by a dictionary for Chinese.

Promises: `split_words` gives the words of a text with their places, never a blank or a mark alone; a
run of Han characters is cut by the segmenter that is passed in, or into its characters where there is
none. The segmenter is rjieba (the jieba dictionary and its hidden Markov model, in Rust; MIT), an optional
library; jieba itself is larger, slower and without a release since 2020.
What is not covered: word boundaries in Thai, Lao, Khmer and Japanese (a run counts as one word).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple, TypeAlias

from textmill.core.errors import missing_extra

Segmenter: TypeAlias = Callable[[str], list[str]]
"""Cuts a run of Han characters into words whose concatenation is the run."""

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(rf"(?P<han>[{_HAN}]+)|[^\W_{_HAN}]+(?:['’\-][^\W_{_HAN}]+)*")
_ONE_HAN = re.compile(f"[{_HAN}]")
_SAMPLE = 1000
_SOME_HAN = 0.05
"""With less than this share of Han characters, Chinese words are quotations."""


class Word(NamedTuple):
    """A word and where it stands."""

    begin: int
    end: int
    is_han: bool


def split_words(text: str, segment: Segmenter | None = None) -> list[Word]:
    """Return the words of a text in order.

    Args:
        text: any text.
        segment: for Han characters; None for one word a character.
    """
    words = []
    for run in _RUN.finditer(text):
        begin = run.start()
        if run["han"] is None:
            words.append(Word(begin, run.end(), False))
            continue
        for piece in list(run[0]) if segment is None else segment(run[0]):
            words.append(Word(begin, begin + len(piece), True))
            begin += len(piece)
    return words


def han_share(texts: Iterable[str]) -> float:
    """Return the share of Han among all characters but blanks, in the first thousand texts."""
    sample = ["".join(text.split()) for text in islice(texts, _SAMPLE)]
    total = sum(map(len, sample))
    return sum(len(_ONE_HAN.findall(text)) for text in sample) / total if total else 0.0


def is_chinese(texts: Iterable[str]) -> bool:
    """Return whether Han characters are more than quotations in a text."""
    return han_share(texts) >= _SOME_HAN


def chinese_segmenter() -> Segmenter:
    """Return the segmenter for Chinese.

    Raises:
        MissingExtra: rjieba is not installed.
    """
    try:
        import rjieba
    except ImportError as err:
        raise missing_extra("rjieba", "zh", "Cutting Chinese into words") from err
    cut: Segmenter = rjieba.cut
    return cut
