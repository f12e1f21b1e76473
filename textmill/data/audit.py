"""What one should know about a data set before training on it: the tables behind `textmill check`.

Promises: every finding says what was found, where, and what to do; counts of rows and classes are those
of the whole data set as `prepare` leaves it, so that what is checked is what is trained on. What takes
longer (lengths, near-duplicates, languages, suspects) looks at samples of stated size that are the same
each time.

The kinds of findings lie in `findings/`, one file each. What is not covered: the model (`train/preflight/`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from textmill.core.progress import SILENT, Progress
from textmill.core.seeds import numpy_generator
from textmill.core.types import Example
from textmill.data.findings.classes import find_empty_sides, find_in_classes, find_unlabelled
from textmill.data.findings.finding import Finding, Table, findings_table, ids_of, rows_of
from textmill.data.findings.languages import Languages, find_in_languages, find_languages
from textmill.data.findings.lengths import CountTokens, Lengths, count_lengths, find_in_lengths, sum_up
from textmill.data.findings.near import NearDuplicates, compare_rows, find_near, near_table
from textmill.data.findings.rows import find_in_rows
from textmill.data.findings.suspects import Suspects, find_suspects, suspect_labels, suspects_table
from textmill.data.findings.texts import Boilerplate, find_boilerplate, find_in_texts, list_boilerplate
from textmill.data.findings.unknown import CountUnknown, Unknown, find_unknown, sum_up_unknown
from textmill.data.prepare import Splits
from textmill.data.report import Left
from textmill.data.split import SIDES, Side

__all__ = ["Audit", "AuditLimits", "ClassCount", "Finding", "Lengths", "Table", "audit"]


@dataclass(frozen=True, slots=True)
class AuditLimits:
    """How many rows each part looks at, at most; 0 leaves the part out."""

    rows: int = 200_000
    """For lengths, near-duplicates and odd texts."""
    unknown_rows: int = 5_000
    """For UNK tokens, scripts and languages."""
    suspect_rows: int = 4_000
    """For suspect labels."""


@dataclass(frozen=True)
class ClassCount:
    """Rows of one class that came through, and their share."""

    rows: int
    share: float
    sides: dict[str, int]
    """Side -> rows."""


@dataclass(frozen=True)
class Audit:
    """The tables of a data set."""

    rows: int
    """Rows read."""
    kept: int
    """Rows that reach training, validation or test."""
    columns: tuple[str, ...]
    classes: dict[str, ClassCount]
    missing_text: Left
    missing_label: Left
    duplicates: Left
    conflicts: Left
    leakage: Left
    cleaned: dict[str, int]
    """Repair -> texts changed, and `characters_removed`."""
    sides: dict[str, int]
    lengths: Lengths | None
    """None where no tokenizer was given."""
    findings: tuple[Finding, ...]
    fingerprint: str
    looked_at: int = 0
    """Rows that lengths, near-duplicates and odd texts were looked for in."""
    near: NearDuplicates = field(default_factory=NearDuplicates)
    suspects: Suspects = field(default_factory=Suspects)
    languages: Languages | None = None
    unknown: Unknown | None = None
    """None where no tokenizer was given."""
    boilerplate: tuple[Boilerplate, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the tables as plain JSON values."""
        table = asdict(self)
        for shown, suspect in zip(table["suspects"]["found"], self.suspects.found, strict=True):
            shown["reason"] = suspect.reason
        return table

    def as_tables(self) -> list[Table]:
        """Return rows, classes, lengths, languages, suspects, near-duplicates and findings for people."""
        tables = [self._rows_table(), self._classes_table()]
        if self.lengths is not None:
            tables.append(self._lengths_table(self.lengths))
        if self.languages is not None:
            tables.append(_languages_table(self.languages))
        if self.near.groups:
            tables.append(near_table(self.near))
        if self.suspects.found:
            tables.append(suspects_table(self.suspects))
        if self.findings:
            tables.append(findings_table("Findings", self.findings))
        return tables

    def _rows_table(self) -> Table:
        gone = ("missing_text", "missing_label", "duplicates", "conflicts", "leakage")
        counts: list[tuple[object, ...]] = [("read", self.rows)]
        counts += [(name.replace("_", " "), getattr(self, name).count) for name in gone]
        counts += [(side, num) for side, num in self.sides.items()]
        title = "Rows" if self.looked_at == self.kept else f"Rows (looked at: a sample of {self.looked_at:,})"
        return Table(title, ("", "rows"), counts)

    def _classes_table(self) -> Table:
        classes: list[tuple[object, ...]] = [
            (name, found.rows, f"{found.share:.1%}", *found.sides.values())
            for name, found in self.classes.items()
        ]
        return Table("Classes", ("class", "rows", "share", *self.sides), classes)

    def _lengths_table(self, lengths: Lengths) -> Table:
        spread: list[tuple[object, ...]] = [("mean", lengths.mean), *lengths.percentiles.items()]
        spread.append((f"longer than {lengths.max_length}", f"{lengths.truncated_share:.2%}"))
        spread.append(("tokens lost by that", f"{lengths.lost_share:.2%}"))
        if self.unknown is not None:
            spread.append(("unknown to the tokenizer", f"{self.unknown.token_share:.2%}"))
        return Table("Length in tokens", ("", "tokens"), spread)


def audit(
    splits: Splits,
    count_tokens: CountTokens | None,
    max_length: int,
    *,
    count_unknown: CountUnknown | None = None,
    limits: AuditLimits | None = None,
    is_multilabel: bool | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Audit:
    """Return the tables and the findings of a data set.

    Args:
        splits: from `survey` (which lets through what cannot be trained on) or `prepare`.
        count_tokens: texts -> (N,) token counts without truncation; None leaves lengths out.
        max_length: tokens of a text that the model reads.
        count_unknown: texts -> UNK tokens (`encode/unknown.py`); None leaves them out.
        limits: the sizes of the samples; None for the default ones.
        is_multilabel: whether a row may have any number of labels; None: if some row has not exactly one.
        seed: of the samples and the teacher.
        progress: who watches.
    """
    limits = AuditLimits() if limits is None else limits
    examples, sides = _sample(splits, limits.rows, seed)
    if is_multilabel is None:
        is_multilabel = any(len(example.labels) != 1 for example in examples)
    counts = count_lengths(examples, count_tokens, progress) if count_tokens and examples else None
    lengths = None if counts is None else sum_up(counts, max_length)
    near = compare_rows(examples, sides, progress) if examples else NearDuplicates()
    boilerplate = list_boilerplate(examples)
    languages, unknown = _languages(_fewer(examples, limits.unknown_rows, seed), count_unknown, progress)
    suspects = suspect_labels(_fewer(examples, limits.suspect_rows, seed), is_multilabel, seed, progress)
    sizes: dict[Side, int] = {side: len(getattr(splits, side)) for side in SIDES}
    kept = sum(sizes.values())
    unlabelled = [example for example in examples if not example.labels]
    findings = [
        *find_in_classes(splits.report, kept, is_multilabel),
        *find_empty_sides(sizes),
        *find_unlabelled(len(unlabelled), max(1, len(examples)), ids_of(unlabelled)),
        *find_in_rows(splits.report),
        *find_near(near),
        *find_suspects(suspects),
        *find_in_texts(examples),
        *find_boilerplate(boilerplate),
    ]
    if counts is not None and lengths is not None:
        findings += find_in_lengths(examples, counts, lengths)
    if unknown is not None:
        findings += find_unknown(unknown)
    if languages is not None:
        findings += find_in_languages(languages)
    return Audit(
        **_accounts(splits, kept),
        sides={str(side): num for side, num in sizes.items()},
        lengths=lengths,
        findings=tuple(findings),
        looked_at=len(examples),
        near=near,
        suspects=suspects,
        languages=languages,
        unknown=unknown,
        boilerplate=boilerplate,
    )


def _accounts(splits: Splits, kept: int) -> dict[str, Any]:
    """Return what the data report already counted."""
    report = splits.report
    sources = report.sources.values()
    cleaned: dict[str, int] = {}
    for source in sources:
        for name, count in source.cleaned.items():
            cleaned[name] = cleaned.get(name, 0) + count
    return {
        "rows": sum(source.rows for source in sources),
        "kept": kept,
        "columns": next((source.columns for source in sources), ()),
        "classes": _classes(splits, kept),
        "missing_text": _total([source.missing_text for source in sources]),
        "missing_label": _total([source.missing_label for source in sources]),
        "duplicates": _total([source.duplicates for source in sources]),
        "conflicts": _total([source.conflicts for source in sources]),
        "leakage": _total(list(report.leakage.values())),
        "cleaned": cleaned,
        "fingerprint": splits.fingerprint,
    }


def _classes(splits: Splits, num: int) -> dict[str, ClassCount]:
    classes = {}
    for label in splits.labels:
        by_side: dict[str, int] = {side: splits.report.sides[side][label] for side in SIDES}
        rows = sum(by_side.values())
        classes[label] = ClassCount(rows, rows / max(1, num), by_side)
    return classes


def _sample(splits: Splits, limit: int, seed: int) -> tuple[list[Example], list[Side]]:
    """Return at most `limit` rows in their order with their sides; each side gives its share."""
    total = sum(len(getattr(splits, side)) for side in SIDES)
    examples: list[Example] = []
    sides: list[Side] = []
    for side in SIDES:
        rows: Sequence[Example] = getattr(splits, side)
        num = len(rows) if total <= limit else round(len(rows) * limit / total)
        chosen = _positions(len(rows), num, seed, side)
        examples += [rows[int(position)] for position in chosen]
        sides += [side] * len(chosen)
    return examples, sides


def _fewer(examples: Sequence[Example], limit: int, seed: int) -> list[Example]:
    chosen = _positions(len(examples), min(limit, len(examples)), seed, "part")
    return [examples[int(position)] for position in chosen]


def _positions(num_rows: int, num: int, seed: int, name: str) -> list[int]:
    if num >= num_rows:
        return list(range(num_rows))
    rng = numpy_generator(seed, "audit", name)
    return [int(position) for position in np.sort(rng.choice(num_rows, size=num, replace=False))]


def _languages(
    examples: Sequence[Example], count_unknown: CountUnknown | None, progress: Progress
) -> tuple[Languages | None, Unknown | None]:
    if not examples:
        return None, None
    count = count_unknown([example.text for example in examples]) if count_unknown else None
    languages = find_languages(examples, count, progress)
    return languages, None if count is None else sum_up_unknown(examples, count)


def _languages_table(languages: Languages) -> Table:
    rows: list[tuple[object, ...]] = [
        (name, f"{share:.1%}", ", ".join(languages.examples[name][:2]))
        for name, share in list(languages.languages.items())[:8]
    ]
    rows += [
        (f"{name} script", f"{script.share:.1%}", rows_of(script.rows))
        for name, script in list(languages.scripts.items())[:5]
    ]
    return Table(f"Languages ({languages.rows:,} rows looked at)", ("", "share", ""), rows)


def _total(parts: Sequence[Left]) -> Left:
    return Left(sum(part.count for part in parts), tuple(row for part in parts for row in part.rows))
