"""Begin a stream: its classes, its validation and test rows, a sample of training rows, its size.

Promises: only the beginning of the source is read (or what its metadata say); the rows gathered are a
function of source, seed and settings; validation and test rows train nowhere in the stream.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from textmill.core.errors import DataError
from textmill.core.progress import SILENT, Progress
from textmill.core.seeds import numpy_generator
from textmill.core.types import Example, Task
from textmill.data.bad_rows import BadRows
from textmill.data.config import DataConfig
from textmill.data.find_files import others_in
from textmill.data.labels import LabelNames, survey_labels, tidy_label
from textmill.data.prepare import Splits
from textmill.data.read_chunks import read_chunks
from textmill.data.report import DataReport, Left, SourceReport
from textmill.data.rows import Rows
from textmill.data.split import SIDES, Side
from textmill.data.stream.heads import NUM_HEADS, Heads
from textmill.data.stream.source import Count, FileSource, Source, open_source
from textmill.data.stream.usable import Usable
from textmill.data.text_hash import hash_texts

_SCANNED_PER_ROW = 25
"""Rows looked at for each row wanted, at most: enough for a share of 5 % each."""
_SAMPLE_ROWS = 20_000
"""Training rows kept for the token budget, class weights, the baseline and the report."""


@dataclass(frozen=True)
class Stream:
    """A source with all that a training needs to know of it beforehand."""

    source: Source
    usable: Usable
    splits: Splits
    """Validation and test rows, and the first training rows as a sample of all."""
    count: Count
    """Rows of the source, all sides."""
    train_rows: int
    """Training rows of an epoch, counted or estimated."""
    is_endless: bool
    """Whether an epoch is `data.epoch_rows` rows rather than one pass."""


def open_stream(
    config: DataConfig,
    base: Path,
    *,
    seed: int,
    task: Task = "classification",
    source: Source | None = None,
    side_file: Path | None = None,
    progress: Progress = SILENT,
) -> Stream:
    """Look at the beginning of a stream.

    Args:
        config: the `[data]` table.
        base: the folder of the project file.
        seed: of the training.
        task: how labels are read.
        source: rows from elsewhere; None: those of `data.train`.
        side_file: where bad rows are written.
        progress: is told of classes found and of estimates.

    Raises:
        DataError: nothing there, no rows, fewer than two classes, or a source that cannot be counted.
    """
    bad = BadRows(config.on_bad_row, side_file)
    if source is None:
        source = open_source(config.train, base, separator=config.separator, encoding=config.encoding)
        others = others_in(config.train, base) if isinstance(source, FileSource) else None
        if others:
            progress.say(others)
    known = None if config.labels is None else tuple(sorted(set(map(tidy_label, config.labels))))
    given, held_out = _given_sides(config, base, Usable(config, task, known), bad)
    usable = Usable(config, task, known, frozenset(held_out))
    counts: Counter[str] = Counter(bad_elsewhere=bad.count)
    spellings: Counter[str] = Counter()
    sides = _gather(source, usable, seed, bad, counts, spellings)
    bad.flush()
    sides.update(given)
    labels = _classes(known, task, sides, progress)
    names = survey_labels(spellings)
    names.say_merged(progress)
    _refuse_empty(sides, counts)
    count = source.count()
    num_seen = max(1, counts["rows"])
    share = len(sides["train"]) / num_seen
    rows = config.epoch_rows or count.rows
    if rows is None:
        raise DataError(
            "An epoch must have an end",
            got="a source that cannot be counted",
            fix="Set data.epoch_rows to the rows that shall count as one epoch.",
        )
    if not count.is_exact and not config.epoch_rows:
        progress.say(f"The source holds about {rows:,} rows (an estimate, corrected after the first epoch).")
    sample = sides["train"][:_SAMPLE_ROWS]
    fingerprint = _fingerprint(source, usable, labels)
    report = _report(config, counts, bad, {**sides, "train": sample}, labels, names)
    splits = Splits(sample, sides["valid"], sides["test"], labels, report, fingerprint, task)
    return Stream(
        source=source,
        usable=Usable(config, task, labels, usable.held_out),
        splits=splits,
        count=count,
        train_rows=max(1, round(rows * share)),
        is_endless=config.epoch_rows is not None,
    )


def _given_sides(
    config: DataConfig, base: Path, usable: Usable, bad: BadRows
) -> tuple[dict[Side, list[Example]], set[int]]:
    """Return the rows of validation and test files, and the hashes of their texts."""
    found: dict[Side, list[Example]] = {}
    held_out: set[int] = set()
    paths: dict[Side, str | None] = {"valid": config.valid, "test": config.test}
    for side, path in paths.items():
        if path is None:
            continue
        chunks = read_chunks(path, base, separator=config.separator, encoding=config.encoding, bad=bad)
        rows = [
            example
            for chunk in chunks
            for examples in usable.sort(chunk.rows, bad, Counter()).values()
            for example in examples
        ]
        found[side] = rows
        held_out.update(hash_texts([example.text for example in rows]).tolist())
    return found, held_out


def _gather(
    source: Source, usable: Usable, seed: int, bad: BadRows, counts: Counter[str], spellings: Counter[str]
) -> dict[Side, list[Example]]:
    """Read the first pass of the stream until validation and test are full."""
    config = usable.config
    sides: dict[Side, list[Example]] = {side: [] for side in SIDES}
    wanted: list[Side] = [] if config.valid else ["valid"]
    if not config.test:
        wanted.append("test")
    heads = Heads(source, seed, bad)
    limit = _SCANNED_PER_ROW * config.head_rows
    last: Rows | None = None
    # Files may hold one class each: a chunk of each of the first parts is looked at.
    left = min(NUM_HEADS, source.num_parts)
    while counts["rows"] < limit or left > 0:
        left -= 1
        chunk = heads.next_chunk()
        if chunk is None:
            break
        for side, examples in usable.sort(chunk.rows, bad, counts).items():
            sides[side] += examples
        if usable.task != "multilabel":
            values = chunk.rows.columns.get(config.label, [])
            spellings.update(value for value in values if isinstance(value, str) and tidy_label(value))
        last = chunk.rows if len(chunk.rows) else last
        has_sides = all(len(sides[side]) >= config.head_rows for side in wanted)
        if left <= 0 and has_sides and len(sides["train"]) >= config.head_rows:
            break
    heads.close()
    for key, column in (
        ("data.text", config.text),
        ("data.text_pair", config.text_pair),
        ("data.label", config.label),
    ):
        if last is not None and column is not None and counts[f"lacking {column}"] == counts["rows"]:
            last.column(column, key)
    for side in wanted:
        chosen = numpy_generator(seed, "stream-side", side).permutation(len(sides[side]))[: config.head_rows]
        sides[side] = [sides[side][index] for index in sorted(chosen.tolist())]
    return sides


def _classes(
    known: tuple[str, ...] | None, task: Task, sides: dict[Side, list[Example]], progress: Progress
) -> tuple[str, ...]:
    found = {name for rows in sides.values() for row in rows for name in row.labels}
    labels = tuple(sorted(found)) if known is None else known
    unseen = [name for name in labels if name not in found]
    if unseen:
        progress.say(f"None of the first rows has the class {', '.join(map(repr, unseen[:20]))}.")
    if known is None:
        shown = ", ".join(map(repr, labels[:20])) + (", ..." if len(labels) > 20 else "")
        progress.say(f"{len(labels)} classes in the first rows: {shown} (data.labels sets them)")
    if len(labels) < (1 if task == "multilabel" else 2):
        raise DataError(
            "There must be a class" if task == "multilabel" else "There must be at least two classes",
            got=f"{list(labels)} in the first rows of the stream",
            fix="Check data.label, or list the classes in data.labels.",
        )
    return labels


def _refuse_empty(sides: dict[Side, list[Example]], counts: Counter[str]) -> None:
    for side in SIDES:
        if not sides[side]:
            raise DataError(
                "Training, validation and test must have rows",
                got=f"none for {side} in the first {counts['rows']} rows of the stream",
                fix=f"Give a file as data.{side}, or raise data.head_rows."
                if side != "train"
                else "Check data.text and data.label.",
            )


def _fingerprint(source: Source, usable: Usable, labels: tuple[str, ...]) -> str:
    """Of the source and of all settings that the sequence of examples depends on."""
    settings = usable.config.model_dump(mode="json", exclude={"train", "prefetch"})
    facts = json.dumps([source.fingerprint(), settings, labels, sorted(usable.held_out)])
    return hashlib.sha256(facts.encode()).hexdigest()


def listed_bad(bad: BadRows) -> Left:
    """Return the count and the first places of bad rows."""
    return Left(bad.count, tuple(row.place for row in bad.first))


def with_bad_rows(splits: Splits, side_file: Path, progress: Progress = SILENT) -> Splits:
    """Return the splits with the bad rows of the whole training in their report, and say how many."""
    found = listed_bad(BadRows("skip", side_file))
    if found.count:
        bad = "bad row was" if found.count == 1 else "bad rows were"
        progress.say(f"{found.count} {bad} skipped: {side_file}")
    sources = {name: replace(source, bad_rows=found) for name, source in splits.report.sources.items()}
    return replace(splits, report=replace(splits.report, sources=sources))


def _report(
    config: DataConfig,
    counts: Counter[str],
    bad: BadRows,
    sides: dict[Side, list[Example]],
    labels: tuple[str, ...],
    names: LabelNames,
) -> DataReport:
    notes = ["a stream: counts are those of its first rows"]
    source = SourceReport(
        path=config.train,
        # Rows that could not be read never came as rows.
        rows=counts["rows"] - counts["unfit"] + bad.count - counts["bad_elsewhere"],
        columns=tuple(filter(None, (config.text, config.text_pair, config.label, config.id))),
        notes=tuple(notes),
        cleaned={},
        missing_text=Left(counts["missing_text"]),
        missing_label=Left(counts["missing_label"]),
        duplicates=Left(),
        conflicts=Left(),
        bad_rows=listed_bad(bad),
    )
    by_side = {
        side: {label: sum(label in row.labels for row in rows) for label in labels}
        for side, rows in sides.items()
    }
    return DataReport({"train": source}, names, by_side)
