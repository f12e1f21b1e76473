"""One thing to know about a data set or a model before training, and a table for people.

Promises: a finding says what was found with its number, which rows show it first, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from textmill.core.types import Example, Text

Level = Literal["error", "warning", "note"]

NUM_NAMED = 5  # ids that a finding names


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know: an `error` stops training, a `warning` may spoil it, a `note` is for information."""

    kind: str
    """What sort of finding, one word for programs."""
    level: Level
    message: str
    """One sentence with the numbers."""
    fix: str
    """The next step."""
    rows: tuple[str, ...] = ()
    """Ids of the first rows that show it."""

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Table:
    """One table for people."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


def findings_table(title: str, findings: Sequence[Finding]) -> Table:
    """Return findings as a table, errors first."""
    order: dict[Level, int] = {"error": 0, "warning": 1, "note": 2}
    ranked = sorted(findings, key=lambda finding: order[finding.level])
    return Table(title, ("level", "what", "next step"), [(f.level, f.message, f.fix) for f in ranked])


def named(rows: Sequence[str]) -> str:
    """Return ids for a sentence: the first few, and that there are more."""
    shown = ", ".join(rows[:NUM_NAMED])
    return f"{shown}, ..." if len(rows) > NUM_NAMED else shown


def rows_of(num: int) -> str:
    """Return `1 row` or `5 rows`."""
    return f"{num:,} row" if num == 1 else f"{num:,} rows"


def plain(text: Text) -> str:
    """Return a text or a pair of texts as one string."""
    return text if isinstance(text, str) else "\n".join(text)


def excerpt(text: Text, limit: int) -> str:
    """Return a text on one line, cut to `limit` characters."""
    line = " ".join(plain(text)[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def ids_of(examples: Sequence[Example], limit: int = NUM_NAMED) -> tuple[str, ...]:
    """Return the ids of the first examples."""
    return tuple(example.id for example in examples[:limit])
