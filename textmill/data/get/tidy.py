"""Raw texts to clean rows.

Promises: blank at both ends is cut; rows without text, rows that repeat an earlier text with the same
label, and all rows of a text that stands under two labels are left out; each is counted. The order of
the others is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple


class RawText(NamedTuple):
    """One text of a package."""

    id: str
    text: str
    label: str
    extra: dict[str, Any] = {}  # noqa: RUF012  # never changed
    """Further columns, the same in all rows of a set."""


@dataclass(frozen=True, slots=True)
class Tidy:
    """Clean rows and what was left out."""

    rows: list[RawText]
    num_empty: int = 0
    num_repeated: int = 0
    num_conflicting: int = 0

    def sentence(self) -> str:
        """Return what was left out."""
        return (
            f"Left out: {self.num_empty} rows without text, {self.num_repeated} repetitions, "
            f"{self.num_conflicting} rows whose text stands under two labels."
        )


def tidy(rows: Iterable[RawText]) -> Tidy:
    """Clean the rows of one set."""
    cut = [row._replace(text=row.text.strip()) for row in rows]
    full = [row for row in cut if row.text]
    labels: dict[str, set[str]] = {}
    for row in full:
        labels.setdefault(row.text, set()).add(row.label)
    clear = [row for row in full if len(labels[row.text]) == 1]
    first = {row.text: row for row in reversed(clear)}
    kept = [row for row in clear if first[row.text] is row]
    return Tidy(kept, len(cut) - len(full), len(clear) - len(kept), len(full) - len(clear))
