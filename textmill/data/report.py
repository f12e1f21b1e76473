"""The account of every row on the way from files to splits.

Promises: counts are complete; for each reason the first ids are named, so that a row can be found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from textmill.data.fingerprint import SidePrint
from textmill.data.labels import LabelNames
from textmill.data.split import Side

NUM_LISTED = 20  # ids kept in the report for each reason; counts are always complete


@dataclass(frozen=True)
class Left:
    """Rows that did not come through, for one reason."""

    count: int = 0
    rows: tuple[str, ...] = ()
    """Ids (or file and row number) of the first of them."""


@dataclass(frozen=True)
class SourceReport:
    """What happened to the rows of one source (the `train`, `valid` or `test` of the project)."""

    path: str
    rows: int
    """Rows read: those that follow, those left out for any reason, and bad ones."""
    columns: tuple[str, ...]
    """The columns of the files."""
    notes: tuple[str, ...]
    """What had to be guessed."""
    cleaned: dict[str, int]
    """Repair -> texts changed, and `characters_removed`."""
    missing_text: Left
    missing_label: Left
    duplicates: Left
    conflicts: Left
    """Rows of texts with two labels (dropped or kept, by `on_conflict`)."""
    bad_rows: Left = Left()
    """Rows that could not be read or used, skipped by `on_bad_row`; they are in the side file too."""


@dataclass(frozen=True)
class DataReport:
    """Every count of the way from files to splits."""

    sources: dict[str, SourceReport]
    labels: LabelNames
    sides: dict[Side, dict[str, int]]
    """Side -> class -> rows, zero where a class has none there."""
    leakage: dict[Side, Left] = field(default_factory=dict)
    """`train` -> rows dropped from it since their text is also in validation or test; `valid` likewise."""
    fingerprints: dict[Side, SidePrint] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return asdict(self)


def listed(ids: Sequence[str]) -> Left:
    """Return the count and the first of the ids."""
    return Left(len(ids), tuple(ids[:NUM_LISTED]))


def report_from_json(table: Mapping[str, Any], paths: Mapping[str, str | None]) -> DataReport:
    """Return the report that `as_json` described.

    Args:
        table: its JSON values.
        paths: where the sources are now, by name.
    """
    return DataReport(
        sources={side: _source(found, str(paths[side])) for side, found in table["sources"].items()},
        labels=LabelNames(**table["labels"]),
        sides=table["sides"],
        leakage={side: _left(found) for side, found in table["leakage"].items()},
        fingerprints={side: SidePrint(**found) for side, found in table["fingerprints"].items()},
    )


def _source(table: Mapping[str, Any], path: str) -> SourceReport:
    values: dict[str, Any] = dict(table, path=path)
    for name in ("columns", "notes"):
        values[name] = tuple(values[name])
    for name in ("missing_text", "missing_label", "duplicates", "conflicts", "bad_rows"):
        values[name] = _left(values[name])
    return SourceReport(**values)


def _left(table: Mapping[str, Any]) -> Left:
    return Left(table["count"], tuple(table["rows"]))
