"""Texts that are no texts: whole files in a cell, numbers, signs alone, markup, and boilerplate.

Boilerplate is a beginning, an end or a line of 30 characters or more that many rows share: a model can
read a class from it (a signature of one author) and loses room for the rest.
What is not covered: boilerplate in the middle of a line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textmill.core.types import Example, Text
from textmill.data.duplicates import shorten
from textmill.data.findings.finding import NUM_NAMED, Finding, ids_of, named, plain, rows_of

_HUGE_TEXT = 100_000
_NUMBERS_SHARE = 0.9
_MARKUP_SHARE = 0.01
_SHARED_CHARS = 30  # a beginning or an end of so many characters
_SHARED_SHARE = 0.02
_SHARED_ROWS = 20
_TAG = re.compile(
    r"</?(?:p|br|div|span|a|b|i|em|strong|li|ul|ol|h[1-6]|td|tr|table|img|html|body)\b[^<>]*>", re.I
)
_MARKDOWN = re.compile(r"\[[^\[\]\n]+\]\(\S+?\)|^#{1,6} \S|^```|\*\*[^*\n]+\*\*", re.M)


@dataclass(frozen=True)
class Boilerplate:
    """A piece of text that many rows share."""

    text: str
    place: str
    """`beginning`, `end` or `line`."""
    num_rows: int
    share: float
    labels: dict[str, int]
    """Class -> rows with it, the most first."""
    rows: tuple[str, ...]


def find_in_texts(examples: Sequence[Example]) -> Iterator[Finding]:
    """Yield what is odd about single texts."""
    huge = [example for example in examples if _size(example.text) > _HUGE_TEXT]
    if huge:
        message = (
            f"{len(huge)} texts above {_HUGE_TEXT:,} characters, the first in {huge[0].id} "
            f"({_size(huge[0].text):,} characters)"
        )
        yield Finding("huge_text", "warning", message, "Check that no file went into one cell.", ids_of(huge))
    numbers = sum(_is_number(example.text) for example in examples)
    if examples and numbers > _NUMBERS_SHARE * len(examples):
        message = f"{numbers} of {len(examples)} texts are plain numbers"
        yield Finding("numbers", "warning", message, "Check data.text: it seems to name a column of numbers.")
    signs = [example for example in examples if not any(c.isalnum() for c in plain(example.text))]
    if signs:
        ids = ids_of(signs)
        message = f"{rows_of(len(signs))} hold no letter and no digit: {named(ids)}"
        fix = "Remove them, unless emoji or signs carry the meaning here."
        yield Finding(
            "no_words", "warning" if len(signs) > 0.01 * len(examples) else "note", message, fix, ids
        )
    for kind, pattern, what in (("html", _TAG, "HTML tags"), ("markdown", _MARKDOWN, "Markdown")):
        marked = [example for example in examples if pattern.search(plain(example.text))]
        if len(marked) > _MARKUP_SHARE * len(examples):
            ids = ids_of(marked)
            message = f"{rows_of(len(marked))} ({len(marked) / len(examples):.1%}) hold {what}: {named(ids)}"
            fix = "Take the markup out before training and before serving alike, or keep it in both."
            yield Finding(kind, "warning" if kind == "html" else "note", message, fix, ids)


def list_boilerplate(examples: Sequence[Example]) -> tuple[Boilerplate, ...]:
    """Return the pieces that many rows share, the most frequent first; a piece inside another is left out."""
    least = max(_SHARED_ROWS, _SHARED_SHARE * len(examples))
    heads: Counter[str] = Counter()
    tails: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for example in examples:
        text = plain(example.text)
        if len(text) <= _SHARED_CHARS:
            continue
        heads[text[:_SHARED_CHARS]] += 1
        tails[text[-_SHARED_CHARS:]] += 1
        if "\n" in text:
            lines.update({line for line in text.splitlines() if len(line.strip()) >= _SHARED_CHARS})
    found: list[Boilerplate] = []
    for place, counter in (("line", lines), ("beginning", heads), ("end", tails)):
        for piece, count in counter.most_common(5):
            if count < least or any(piece in other.text or other.text in piece for other in found):
                continue
            found.append(_boilerplate(piece, place, examples))
    return tuple(sorted(found, key=lambda piece: -piece.num_rows))


def find_boilerplate(pieces: Sequence[Boilerplate]) -> Iterator[Finding]:
    """Yield pieces that many rows share; a warning where they nearly give a class away."""
    for piece in pieces[:NUM_NAMED]:
        most, count = next(iter(piece.labels.items()), ("", 0))
        tells = len(piece.labels) == 1 or count > 0.95 * piece.num_rows
        message = (
            f"{rows_of(piece.num_rows)} ({piece.share:.1%}) share the {piece.place} {shorten(piece.text, 70)}"
            + (f", and {count / piece.num_rows:.0%} of them are {most!r}" if tells and most else "")
            + f": {named(piece.rows)}"
        )
        fix = (
            "Take it out: the model will read the class from it and fail where it is missing."
            if tells
            else "Take it out if it says nothing: it takes up tokens in every row."
        )
        yield Finding("boilerplate", "warning" if tells else "note", message, fix, piece.rows)


def _boilerplate(piece: str, place: str, examples: Sequence[Example]) -> Boilerplate:
    def has(text: str) -> bool:
        if place == "beginning":
            return text.startswith(piece)
        return text.endswith(piece) if place == "end" else piece in text

    holders = [example for example in examples if has(plain(example.text))]
    labels = Counter(label for example in holders for label in example.labels)
    longest = _extend(piece, place, [plain(example.text) for example in holders[:50]])
    return Boilerplate(
        longest,
        place,
        len(holders),
        len(holders) / len(examples),
        dict(labels.most_common(5)),
        ids_of(holders),
    )


def _extend(piece: str, place: str, texts: Sequence[str]) -> str:
    """Return the whole beginning or end that the texts share (at most 200 characters)."""
    if place == "line" or not texts:
        return piece
    whole = piece
    for size in range(len(piece), min(200, *(len(text) for text in texts), 200) + 1):
        cuts = {text[:size] if place == "beginning" else text[-size:] for text in texts}
        if len(cuts) > 1:
            break
        whole = next(iter(cuts))
    return whole


def _size(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _is_number(text: Text) -> bool:
    try:
        float(str(text).replace(",", "."))
    except ValueError:
        return False
    return True
