"""What one should know about a data set before training on it: the table behind `textmill check`.

Promises: every finding says what was found, where, and what to do; the numbers are those of
`prepare`, so that what is checked is what is trained on.

What is not covered: near duplicates, suspect labels, languages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from textmill.core.types import Example, Text
from textmill.data.duplicates import shorten
from textmill.data.prepare import Splits
from textmill.data.report import Left
from textmill.data.split import SIDES

CountTokens = Callable[[Sequence[Text]], npt.NDArray[np.int64]]

_TINY_CLASS = 10
_HUGE_TEXT = 100_000
_PERCENTILES = (5, 25, 50, 75, 90, 95, 99)
_LOPSIDED_SHARE = 0.9
_NUMBERS_SHARE = 0.9
_MUCH_TRUNCATED = 0.05

Level = Literal["error", "warning", "note"]
Kind = Literal[
    "one_class",
    "empty_class",
    "empty_side",
    "class_per_row",
    "tiny_class",
    "lopsided",
    "look_alike_labels",
    "missing_text",
    "missing_label",
    "duplicates",
    "conflicts",
    "leakage",
    "truncated",
    "huge_text",
    "numbers",
    "guessed",
]


@dataclass(frozen=True)
class Finding:
    """One thing to know: an `error` stops training, a `warning` may spoil it, a `note` was dealt with."""

    kind: Kind
    level: Level
    message: str
    fix: str


@dataclass(frozen=True)
class Lengths:
    """Lengths of the texts in tokens, special tokens included, before truncation."""

    mean: float
    percentiles: dict[str, int]
    """`p5` to `p99`, and `max`."""
    max_length: int
    """What the model reads of a text."""
    num_truncated: int
    truncated_share: float


@dataclass(frozen=True)
class ClassCount:
    """Rows of one class that came through, and their share."""

    rows: int
    share: float
    sides: dict[str, int]
    """Side -> rows."""


@dataclass(frozen=True)
class Audit:
    """The table of a data set."""

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

    def as_json(self) -> dict[str, Any]:
        """Return the table as plain JSON values."""
        return asdict(self)

    def as_tables(self) -> list[Table]:
        """Return rows, classes, lengths and findings for people."""
        gone = ("missing_text", "missing_label", "duplicates", "conflicts", "leakage")
        counts: list[tuple[object, ...]] = [("read", self.rows)]
        counts += [(name.replace("_", " "), getattr(self, name).count) for name in gone]
        counts += [(side, num) for side, num in self.sides.items()]
        tables = [Table("Rows", ("", "rows"), counts)]
        classes: list[tuple[object, ...]] = [
            (name, found.rows, f"{found.share:.1%}", *found.sides.values())
            for name, found in self.classes.items()
        ]
        tables.append(Table("Classes", ("class", "rows", "share", *self.sides), classes))
        if self.lengths is not None:
            spread: list[tuple[object, ...]] = [
                ("mean", self.lengths.mean),
                *self.lengths.percentiles.items(),
            ]
            spread.append((f"longer than {self.lengths.max_length}", f"{self.lengths.truncated_share:.2%}"))
            tables.append(Table("Length in tokens", ("", "tokens"), spread))
        if self.findings:
            found_rows: list[tuple[object, ...]] = [(f.level, f.message, f.fix) for f in self.findings]
            tables.append(Table("Findings", ("level", "what", "next step"), found_rows))
        return tables


@dataclass(frozen=True)
class Table:
    """One table for people."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


def audit(splits: Splits, count_tokens: CountTokens | None, max_length: int) -> Audit:
    """Return the table and the findings of a data set.

    Args:
        splits: from `survey` (which lets through what cannot be trained on) or `prepare`.
        count_tokens: texts -> (N,) token counts without truncation; None leaves lengths out.
        max_length: tokens of a text that the model reads.
    """
    report = splits.report
    examples = [*splits.train, *splits.valid, *splits.test]
    sources = report.sources.values()
    cleaned: dict[str, int] = {}
    for source in sources:
        for name, count in source.cleaned.items():
            cleaned[name] = cleaned.get(name, 0) + count
    lengths = _measure(examples, count_tokens, max_length) if count_tokens and examples else None
    return Audit(
        rows=sum(source.rows for source in sources),
        kept=len(examples),
        columns=report.sources["train"].columns,
        classes=_classes(splits, len(examples)),
        missing_text=_total([source.missing_text for source in sources]),
        missing_label=_total([source.missing_label for source in sources]),
        duplicates=_total([source.duplicates for source in sources]),
        conflicts=_total([source.conflicts for source in sources]),
        leakage=_total(list(report.leakage.values())),
        cleaned=cleaned,
        sides={side: len(getattr(splits, side)) for side in SIDES},
        lengths=lengths,
        findings=(
            *_about_classes(splits),
            *_about_rows(splits),
            *_about_texts(examples, lengths),
        ),
        fingerprint=splits.fingerprint,
    )


def _classes(splits: Splits, num: int) -> dict[str, ClassCount]:
    classes = {}
    for label in splits.labels:
        by_side: dict[str, int] = {side: splits.report.sides[side][label] for side in SIDES}
        rows = sum(by_side.values())
        classes[label] = ClassCount(rows, rows / num, by_side)
    return classes


def _measure(examples: Sequence[Example], count_tokens: CountTokens, max_length: int) -> Lengths:
    lengths = count_tokens([example.text for example in examples])
    assert lengths.shape == (len(examples),), "one count for each text"
    percentiles = {f"p{p}": int(np.percentile(lengths, p, method="higher")) for p in _PERCENTILES}
    num_truncated = int((lengths > max_length).sum())
    return Lengths(
        mean=round(float(lengths.mean()), 2),
        percentiles={**percentiles, "max": int(lengths.max())},
        max_length=max_length,
        num_truncated=num_truncated,
        truncated_share=num_truncated / len(examples),
    )


def _about_classes(splits: Splits) -> Iterator[Finding]:
    sides = splits.report.sides
    counts = {label: sum(sides[side][label] for side in SIDES) for label in splits.labels}
    num = sum(counts.values())
    if len(counts) < 2:
        only = f"only the class {next(iter(counts))!r}" if counts else "no class at all"
        yield Finding("one_class", "error", f"there is {only}", "Check data.label.")
    for side in SIDES:
        if not sum(sides[side].values()):
            fix = f"Give more rows as data.{side} (training leaves out texts that are in valid or test)."
            yield Finding("empty_side", "error", f"no rows for {side}", fix)
    if num > 20 and len(counts) > num / 2:
        message = f"{len(counts)} classes in {num} rows, such as {shorten(next(iter(counts)))}"
        yield Finding("class_per_row", "error", message, "data.label names a column of ids, numbers or text.")
        return
    for label, count in counts.items():
        where = ", ".join(f"{sides[side][label]} {side}" for side in SIDES)
        if not sides["train"][label]:
            message = f"class {label!r} has no training rows ({where})"
            yield Finding(
                "empty_class", "error", message, "Add training rows of that class, or leave it out."
            )
        elif count < _TINY_CLASS or not sides["valid"][label] or not sides["test"][label]:
            message = f"class {label!r} has {count} rows ({where}): too few to learn or to measure"
            yield Finding("tiny_class", "warning", message, "Add rows, or merge it with another class.")
    if len(counts) > 1 and max(counts.values()) > _LOPSIDED_SHARE * num:
        label = max(counts, key=lambda name: counts[name])
        message = (
            f"class {label!r} is {counts[label] / num:.1%} of the rows: always answering it is that accurate"
        )
        fix = "Look at macro-F1 rather than accuracy, and consider train.class_weights = 'balanced'."
        yield Finding("lopsided", "warning", message, fix)


def _about_rows(splits: Splits) -> Iterator[Finding]:
    report = splits.report
    for group in report.labels.look_alikes:
        spelled = ", ".join(f"{spelling!r} ({count})" for spelling, count in group.items())
        message = f"labels that look alike: {spelled}; those that differ only by blanks are one class"
        yield Finding("look_alike_labels", "warning", message, "Give each class one spelling.")
    for side, source in report.sources.items():
        for note in source.notes:
            yield Finding("guessed", "note", note, "Set data.encoding or data.separator if that is wrong.")
        if source.missing_text.count:
            message = f"{side}: {_rows(source.missing_text)} without text, dropped"
            yield Finding("missing_text", "warning", message, "Fill or remove these rows.")
        if source.missing_label.count:
            message = f"{side}: {_rows(source.missing_label)} without label, dropped"
            yield Finding("missing_label", "warning", message, "Label or remove these rows.")
        if source.duplicates.count:
            message = f"{side}: {_rows(source.duplicates)} repeating an earlier row, dropped"
            yield Finding("duplicates", "note", message, "Nothing to do; the first of each is kept.")
        if source.conflicts.count:
            message = f"{side}: {_rows(source.conflicts)} whose text has two labels"
            fix = "Correct the labels, or choose with data.on_conflict: drop, keep, fail."
            yield Finding("conflicts", "warning", message, fix)
    for side, left in report.leakage.items():
        if left.count:
            message = f"{_rows(left)} left {side}: their text is also on a later side"
            yield Finding("leakage", "warning", message, f"Remove them from data.{side}.")


def _about_texts(examples: Sequence[Example], lengths: Lengths | None) -> Iterator[Finding]:
    huge = [example for example in examples if _size(example.text) > _HUGE_TEXT]
    if huge:
        message = (
            f"{len(huge)} texts above {_HUGE_TEXT:,} characters, the first in {huge[0].id} "
            f"({_size(huge[0].text):,} characters)"
        )
        yield Finding("huge_text", "warning", message, "Check that no file was put into one cell.")
    numbers = sum(_is_number(example.text) for example in examples)
    if examples and numbers > _NUMBERS_SHARE * len(examples):
        message = f"{numbers} of {len(examples)} texts are plain numbers"
        yield Finding("numbers", "warning", message, "Check data.text: it seems to name a column of numbers.")
    if lengths is not None and lengths.num_truncated:
        level: Level = "warning" if lengths.truncated_share > _MUCH_TRUNCATED else "note"
        message = (
            f"{lengths.num_truncated} texts ({lengths.truncated_share:.1%}) are longer than "
            f"{lengths.max_length} tokens; the model does not see their ends"
        )
        yield Finding("truncated", level, message, "Raise encode.max_length where the model allows it.")


def _total(parts: Sequence[Left]) -> Left:
    return Left(sum(part.count for part in parts), tuple(row for part in parts for row in part.rows))


def _rows(left: Left) -> str:
    return f"{left.count} {'row' if left.count == 1 else 'rows'} (the first is {left.rows[0]})"


def _size(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _is_number(text: Text) -> bool:
    try:
        float(str(text).replace(",", "."))
    except ValueError:
        return False
    return True
