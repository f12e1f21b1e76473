"""Generated files of real sentences: movie reviews, each made its own text by a running number."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

from bench.figures import SCRATCH
from textmill.data.config import DataConfig
from textmill.data.get.catalogue import get
from textmill.data.prepare import Splits, prepare

_LONG_SENTENCES = 9
"""Sentences of a text in the large file: about a thousand characters, as long as a film review."""


def movie_reviews() -> Splits:
    """Return the movie reviews, split as `textmill` splits them."""
    path = get("movie-reviews", SCRATCH / "data")
    return prepare(DataConfig(train=str(path), id="id"), path.parent)


def write_rows(path: Path, rows: int) -> None:
    """Write `rows` rows of one sentence as csv or JSON lines, by the file's ending."""
    texts = _numbered(_sentences(), 1)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if path.suffix == ".csv":
            writer.writerow(["text", "label"])
        for number in range(rows):
            text, label = next(texts), number % 2
            if path.suffix == ".csv":
                writer.writerow([text, label])
            else:
                file.write(json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n")


def write_bytes(path: Path, size: int) -> int:
    """Write a csv of at least `size` bytes with long texts; return the number of its rows."""
    texts = _numbered(_sentences(), _LONG_SENTENCES)
    rows = 0
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        while file.tell() < size:
            writer.writerows([next(texts), number % 2] for number in range(1000))
            rows += 1000
    return rows


def _sentences() -> Sequence[str]:
    splits = movie_reviews()
    return [str(example.text) for side in (splits.train, splits.valid, splits.test) for example in side]


def _numbered(sentences: Sequence[str], per_text: int) -> Iterator[str]:
    endless = cycle(sentences)
    number = 0
    while True:
        number += 1
        yield " ".join(next(endless) for _ in range(per_text)) + f" {number}"
