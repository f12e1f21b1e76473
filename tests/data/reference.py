"""The way of `prepare` on plain lists that are held in memory, one small step after the other: what the
mapped way must equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from textmill.core.types import Example
from textmill.data.clean import clean_texts
from textmill.data.config import DataConfig
from textmill.data.labels import tidy_label
from textmill.data.split import position

Kept = tuple[list[Example], list[Example]]


def drop_duplicates(examples: Sequence[Example]) -> Kept:
    seen = set()
    kept: Kept = ([], [])
    for example in examples:
        key = (example.text, example.labels)
        kept[key in seen].append(example)
        seen.add(key)
    return kept


def drop_conflicts(examples: Sequence[Example]) -> Kept:
    labels: dict[object, set[tuple[str, ...]]] = {}
    for example in examples:
        labels.setdefault(example.text, set()).add(example.labels)
    kept: Kept = ([], [])
    for example in examples:
        kept[len(labels[example.text]) > 1].append(example)
    return kept


def drop_leaks(examples: Sequence[Example], others: Sequence[Example]) -> Kept:
    elsewhere = {example.text for example in others}
    kept: Kept = ([], [])
    for example in examples:
        kept[example.text in elsewhere].append(example)
    return kept


def split(examples: Sequence[Example], valid_share: float, test_share: float) -> dict[str, list[Example]]:
    places = {example.text: position(example.text) for example in examples}
    lowest: dict[str, object] = {}
    for example in examples:
        for label in example.labels:
            if label not in lowest or places[example.text] < places[lowest[label]]:  # type: ignore[index]
                lowest[label] = example.text
    sides: dict[str, list[Example]] = {"train": [], "valid": [], "test": []}
    for example in examples:
        place = places[example.text]
        if example.text in lowest.values() or place < 1 - valid_share - test_share:
            sides["train"].append(example)
        else:
            sides["valid" if place < 1 - test_share else "test"].append(example)
    return sides


def prepare_in_memory(
    rows: Sequence[tuple[str, str]], config: DataConfig, name: str = "t.csv"
) -> tuple[dict[str, list[Example]], dict[str, list[str]]]:
    """Return the sides of one csv file, and the ids that left for each reason."""
    cleaned = clean_texts((text for text, _ in rows), config.clean, Counter())
    examples = [
        Example(f"{name}:{number}", text, (tidy_label(label),))
        for number, (text, (_, label)) in enumerate(zip(cleaned, rows, strict=True), start=1)
    ]
    usable = [example for example in examples if example.text.strip() and example.labels[0]]  # type: ignore[union-attr]
    unique, twice = drop_duplicates(usable)
    settled, torn = drop_conflicts(unique)
    if config.on_conflict == "keep":
        settled = unique
    sides = split(settled, config.valid_share, config.test_share)
    sides["valid"], _ = drop_leaks(sides["valid"], sides["test"])
    sides["train"], _ = drop_leaks(sides["train"], [*sides["valid"], *sides["test"]])
    left = {
        "missing_text": [e.id for e in examples if not e.text.strip()],  # type: ignore[union-attr]
        "missing_label": [e.id for e in examples if not e.labels[0]],
        "duplicates": [e.id for e in twice],
        "conflicts": [e.id for e in torn],
    }
    return sides, left
