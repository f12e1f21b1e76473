"""Rows that repeat, contradict or leak into each other.

Promises: two rows are duplicates when their cleaned texts and labels are equal, and the first is
kept; one text with two labels is a conflict, decided by the project's policy; all are counted with
the rows' ids.

What is not covered: near duplicates (other words, other case).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from textmill.core.errors import DataError
from textmill.core.types import Example


class Kept(NamedTuple):
    """Rows that stay, in their order, and the rows that went."""

    examples: list[Example]
    dropped: list[Example]


def drop_duplicates(examples: Sequence[Example]) -> Kept:
    """Keep the first of all rows with equal text and label."""
    seen: set[tuple[object, ...]] = set()
    kept = Kept([], [])
    for example in examples:
        key = (example.text, example.labels)
        (kept.dropped if key in seen else kept.examples).append(example)
        seen.add(key)
    return kept


def find_conflicts(examples: Sequence[Example]) -> list[list[Example]]:
    """Return the groups of rows that share a text but not a label, in order of first appearance."""
    groups: dict[object, list[Example]] = {}
    for example in examples:
        groups.setdefault(example.text, []).append(example)
    return [group for group in groups.values() if len({row.labels for row in group}) > 1]


def settle_conflicts(examples: Sequence[Example], policy: Literal["drop", "keep", "fail"]) -> Kept:
    """Apply the policy for texts with two labels.

    Raises:
        DataError: the policy is `fail` and there is a conflict.
    """
    groups = find_conflicts(examples)
    if not groups or policy == "keep":
        return Kept(list(examples), [])
    if policy == "fail":
        rows = " and ".join(f"{row.labels[0]!r} in {row.id}" for row in groups[0][:3])
        raise DataError(
            "One text must have one label (data.on_conflict is 'fail')",
            got=f"{len(groups)} texts with several, the first being {shorten(groups[0][0].text)} as {rows}",
            fix="Correct the rows, or set data.on_conflict to 'drop' or 'keep'.",
        )
    torn = {group[0].text for group in groups}
    return Kept(
        [example for example in examples if example.text not in torn],
        [example for example in examples if example.text in torn],
    )


def drop_leaks(examples: Sequence[Example], other: Collection[Example]) -> Kept:
    """Drop rows whose text also stands on another side, whatever its label there."""
    elsewhere = {example.text for example in other}
    return Kept(
        [example for example in examples if example.text not in elsewhere],
        [example for example in examples if example.text in elsewhere],
    )


def shorten(value: object, limit: int = 60) -> str:
    """Return a value as it may stand in a message."""
    shown = repr(value)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
