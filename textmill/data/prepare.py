"""From the project's `[data]` table to three lists of examples, with every row accounted for.

Promises: the order is read, clean, missing, duplicates, conflicts, split, leakage; each row that
does not come through is counted with its reason; the same files and settings give the same splits
and the same fingerprint everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textmill.core.errors import DataError
from textmill.core.progress import SILENT, Progress
from textmill.core.seeds import stream_seed
from textmill.core.types import Example
from textmill.data.clean import clean_texts
from textmill.data.columns import label_name, row_ids, texts_of
from textmill.data.config import DataConfig
from textmill.data.duplicates import drop_duplicates, drop_leaks, find_conflicts, settle_conflicts, shorten
from textmill.data.fingerprint import print_side, print_splits
from textmill.data.labels import survey_labels, tidy_label
from textmill.data.read import Rows, read_rows
from textmill.data.report import NUM_LISTED, DataReport, Left, SourceReport, listed
from textmill.data.split import SIDES, Side, split_sides


@dataclass(frozen=True)
class Splits:
    """Examples by side, the class names, and how they came to be."""

    train: list[Example]
    valid: list[Example]
    test: list[Example]
    labels: tuple[str, ...]
    """Class names, sorted."""
    report: DataReport
    fingerprint: str
    """SHA-256 over ids, texts and labels by side and in order."""


def prepare(config: DataConfig, base: Path, progress: Progress = SILENT) -> Splits:
    """Read, clean and split the data of a project.

    Args:
        config: the `[data]` table.
        base: the folder of the project file.
        progress: is told what was guessed, merged and dropped.

    Raises:
        DataError: a missing file, column or class, a value that is no text, a row that cannot be read.
    """
    splits = survey(config, base, progress)
    refuse_untrainable(splits)
    return splits


def survey(config: DataConfig, base: Path, progress: Progress = SILENT) -> Splits:
    """Do what `prepare` does, also for data that nothing can be trained on (one class only).

    Raises:
        DataError: a missing file or column, a value that is no text, a row that cannot be read.
    """
    paths: dict[Side, str | None] = {"train": config.train, "valid": config.valid, "test": config.test}
    loaded: dict[Side, _Source] = {}
    taken: set[str] = set()
    for side, path in paths.items():
        if path is None:
            continue
        rows = read_rows(path, base, separator=config.separator, encoding=config.encoding, progress=progress)
        # Files of one name in two folders must not give two rows one id.
        ids = row_ids(rows, config.id, prefix="" if taken.isdisjoint(rows.files) else f"{side}/")
        taken.update(rows.files)
        loaded[side] = _account(path, rows, ids, config)
        _say_dropped(side, loaded[side].report, config, progress)
    names = survey_labels([spelling for source in loaded.values() for spelling in source.spellings])
    sides = _split(loaded["train"].examples, config)
    sides.update({side: source.examples for side, source in loaded.items() if side != "train"})
    leakage = _stop_leaks(sides, progress)
    labels = tuple(sorted({example.labels[0] for rows in sides.values() for example in rows}))
    fingerprints = {side: print_side(rows) for side, rows in sides.items()}
    report = DataReport(
        sources={side: source.report for side, source in loaded.items()},
        labels=names,
        sides={side: _count(rows, labels) for side, rows in sides.items()},
        leakage=leakage,
        fingerprints=fingerprints,
    )
    for name, found in names.merged.items():
        if len(found) > 1:
            progress.say(f"labels that differ only by blanks are one class {name!r}: {found!r}")
    return Splits(sides["train"], sides["valid"], sides["test"], labels, report, print_splits(fingerprints))


def refuse_untrainable(splits: Splits) -> None:
    """Raise where no classifier can be trained or measured.

    Raises:
        DataError: fewer than two classes, a class without training rows, or a side without rows.
    """
    if len(splits.labels) < 2:
        only = f"only {splits.labels[0]!r}" if splits.labels else "none"
        raise DataError(
            "There must be at least two classes",
            got=f"{only} in {len(splits.train)} rows",
            fix="Check data.label; `textmill check` shows the classes.",
        )
    _refuse_empty_side("train", splits)
    empty = [label for label, count in splits.report.sides["train"].items() if not count]
    if empty:
        raise DataError(
            "Each class must have training rows",
            got=f"none of {', '.join(map(repr, empty[:5]))}, which stands only in valid or test",
            fix="Add training rows of that class, or correct the label's spelling.",
        )
    num = len(splits.train) + len(splits.valid) + len(splits.test)
    if num > NUM_LISTED and len(splits.labels) > num / 2:
        raise DataError(
            "A class must stand for more than one row",
            got=f"{len(splits.labels)} classes in {num} rows, such as {shorten(splits.labels[0])}",
            fix="Check data.label: that column holds ids, numbers or text rather than classes.",
        )
    for side in SIDES:
        _refuse_empty_side(side, splits)


def _refuse_empty_side(side: Side, splits: Splits) -> None:
    if not getattr(splits, side):
        num = len(splits.train) + len(splits.valid) + len(splits.test)
        raise DataError(
            "Training, validation and test must have rows",
            got=f"none for {side} of {num} rows",
            fix="Training texts that are also in valid or test are left out: give others as data.train."
            if side == "train"
            else f"Give more rows, a larger data.{side}_share, or a file as data.{side}.",
        )


def subsample(examples: Sequence[Example], share: float, seed: int) -> list[Example]:
    """Return a share of the rows of each class, in their order.

    A smaller share is a subset of a larger one under the same seed; each class keeps at least one row.

    Args:
        examples: N rows.
        share: above 0, up to 1.
        seed: of the project.
    """
    assert 0 < share <= 1, "a share lies above 0 and up to 1"
    ranks = {example.id: stream_seed(seed, "subsample", example.id) for example in examples}
    by_class: dict[tuple[str, ...], list[Example]] = {}
    for example in examples:
        by_class.setdefault(example.labels, []).append(example)
    chosen: set[str] = set()
    for rows in by_class.values():
        rows.sort(key=lambda example: ranks[example.id])
        chosen.update(example.id for example in rows[: max(1, round(share * len(rows)))])
    return [example for example in examples if example.id in chosen]


@dataclass(frozen=True)
class _Source:
    examples: list[Example]
    spellings: list[str]
    report: SourceReport


def _account(path: str, rows: Rows, ids: Sequence[str], config: DataConfig) -> _Source:
    """Clean the rows of one source, drop those that cannot be used, and count each reason."""
    texts = texts_of(rows, config.text)
    spellings = [
        label_name(value, rows, index) for index, value in enumerate(rows.column(config.label, "data.label"))
    ]
    counts: Counter[str] = Counter()
    cleaned = list(clean_texts((text or "" for text in texts), config.clean, counts))
    no_text = [ids[i] for i, text in enumerate(cleaned) if not text.strip()]
    labels = [None if spelling is None else tidy_label(spelling) or None for spelling in spellings]
    no_label = [ids[i] for i, label in enumerate(labels) if label is None]
    examples = [
        Example(row_id, text, (label,))
        for row_id, text, label in zip(ids, cleaned, labels, strict=True)
        if text.strip() and label is not None
    ]
    unique = drop_duplicates(examples)
    torn = [row.id for group in find_conflicts(unique.examples) for row in group]
    settled = settle_conflicts(unique.examples, config.on_conflict)
    report = SourceReport(
        path=path,
        rows=len(rows),
        columns=tuple(rows.columns),
        notes=rows.notes,
        cleaned=dict(counts),
        missing_text=listed(no_text),
        missing_label=listed(no_label),
        duplicates=listed([row.id for row in unique.dropped]),
        conflicts=listed(torn),
    )
    return _Source(settled.examples, [s for s in spellings if s is not None and tidy_label(s)], report)


def _split(examples: Sequence[Example], config: DataConfig) -> dict[Side, list[Example]]:
    sides = split_sides(
        [str(example.text) for example in examples],
        [example.labels[0] for example in examples],
        0.0 if config.valid else config.valid_share,
        0.0 if config.test else config.test_share,
    )
    result: dict[Side, list[Example]] = {side: [] for side in SIDES}
    for example, side in zip(examples, sides, strict=True):
        result[side].append(example)
    return result


def _stop_leaks(sides: dict[Side, list[Example]], progress: Progress) -> dict[Side, Left]:
    """Drop rows from training and validation whose text stands on a later side."""
    leakage = {}
    order: tuple[tuple[Side, tuple[Side, ...]], ...] = (("valid", ("test",)), ("train", ("valid", "test")))
    for side, others in order:
        later = [example for other in others for example in sides[other]]
        kept = drop_leaks(sides[side], later)
        sides[side] = kept.examples
        leakage[side] = listed([example.id for example in kept.dropped])
        if kept.dropped:
            progress.say(
                f"{len(kept.dropped)} rows left {side}: their text is also in {' or '.join(others)} "
                f"(the first is {kept.dropped[0].id})"
            )
    return leakage


def _say_dropped(side: str, report: SourceReport, config: DataConfig, progress: Progress) -> None:
    conflicts = {"drop": "dropped", "keep": "kept", "fail": "refused"}[config.on_conflict]
    for left, what in (
        (report.missing_text, "rows without text dropped"),
        (report.missing_label, "rows without label dropped"),
        (report.duplicates, "exact duplicates dropped"),
        (report.conflicts, f"rows of texts with two labels {conflicts}"),
    ):
        if left.count:
            progress.say(f"{side}: {left.count} {what} (the first is {left.rows[0]})")


def _count(examples: Sequence[Example], labels: Sequence[str]) -> dict[str, int]:
    counts = Counter(example.labels[0] for example in examples)
    return {label: counts[label] for label in labels}
