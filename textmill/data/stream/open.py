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
from textmill.data.labels import survey_labels, tidy_label
from textmill.data.prepare import Splits
from textmill.data.read_chunks import read_chunks
from textmill.data.report import NUM_LISTED, DataReport, Left, SourceReport, listed
from textmill.data.rows import Rows
from textmill.data.split import SIDES, Side
from textmill.data.stream.gathered import Ids, settle
from textmill.data.stream.heads import SLICED_ROWS, Heads
from textmill.data.stream.parts import NUM_HEADS
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
    if source is None:
        source = open_source(config.train, base, separator=config.separator, encoding=config.encoding)
        if isinstance(source, FileSource) and source.others:
            progress.say(source.others)
    known = None if config.labels is None else tuple(sorted(set(map(tidy_label, config.labels))))
    given = _given_sides(config, base, Usable(config, task, known), side_file)
    held_out = {number for found in given.values() for number in found.hashes}
    usable = Usable(config, task, known, frozenset(held_out))
    counts: Counter[str] = Counter()
    spellings: Counter[str] = Counter()
    bad = BadRows(config.on_bad_row, side_file)
    counts.update(bad_before=bad.count, listed_before=len(bad.first))
    gathered = _gather(source, usable, seed, bad, counts, spellings)
    bad.flush()
    sides, left = _settled(gathered, config, seed)
    sides.update({side: found.rows for side, found in given.items()})
    leaks = _stop_leak(sides, progress)
    labels = _classes(known, task, sides, progress)
    names = survey_labels(spellings)
    names.say_merged(progress)
    _refuse_empty(sides, counts)
    count = source.count()
    num_seen = max(1, counts["rows"])
    share = len(gathered["train"]) / num_seen
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
    notes = ("a stream: all counts are those of its first rows",)
    sources: dict[str, SourceReport] = {
        "train": _source_report(config.train, config, counts, bad, left, notes),
        **{side: found.report for side, found in given.items()},
    }
    by_side = {
        side: {label: sum(label in row.labels for row in rows) for label in labels}
        for side, rows in {**sides, "train": sample}.items()
    }
    report = DataReport(sources, names, by_side, leaks)
    splits = Splits(sample, sides["valid"], sides["test"], labels, report, fingerprint, task)
    return Stream(
        source=source,
        usable=Usable(config, task, labels, usable.held_out),
        splits=splits,
        count=count,
        train_rows=max(1, round(rows * share)),
        is_endless=config.epoch_rows is not None,
    )


@dataclass(frozen=True)
class _Given:
    """A validation or test file."""

    rows: list[Example]
    hashes: list[int]
    """Of the texts of all its rows."""
    report: SourceReport


def _given_sides(
    config: DataConfig, base: Path, usable: Usable, side_file: Path | None
) -> dict[Side, _Given]:
    """Read the validation and test files."""
    found: dict[Side, _Given] = {}
    paths: dict[Side, str | None] = {"valid": config.valid, "test": config.test}
    for side, path in paths.items():
        if path is None:
            continue
        bad = BadRows(config.on_bad_row, side_file)
        counts: Counter[str] = Counter(bad_before=bad.count, listed_before=len(bad.first))
        ids = Ids(config.id)
        chunks = read_chunks(path, base, separator=config.separator, encoding=config.encoding, bad=bad)
        rows: list[Example] = []
        for chunk in chunks:
            ids.check(chunk.rows)
            rows += usable.sort_one_side(chunk.rows, bad, counts)
        bad.flush()
        stay, twice, torn = settle(rows, config)
        report = _source_report(path, config, counts, bad, (twice, torn))
        found[side] = _Given(stay, hash_texts([row.text for row in rows]).tolist(), report)
    return found


def _settled(
    gathered: dict[Side, list[Example]], config: DataConfig, seed: int
) -> tuple[dict[Side, list[Example]], tuple[Left, Left]]:
    """Return the gathered sides without what stands twice, as many rows as wanted, and what was left out."""
    sides: dict[Side, list[Example]] = {}
    twice, torn = Left(), Left()
    for side, rows in gathered.items():
        # Training goes on beyond these rows, where conflicts are not looked for.
        rule = config.model_copy(update={"on_conflict": "keep"}) if side == "train" else config
        sides[side], more_twice, more_torn = settle(rows, rule)
        twice = _both(twice, more_twice)
        if side != "train":
            torn = _both(torn, more_torn)
            order = numpy_generator(seed, "stream-side", side).permutation(len(sides[side]))
            sides[side] = [sides[side][index] for index in sorted(order[: config.head_rows].tolist())]
    return sides, (twice, torn)


def _both(first: Left, second: Left) -> Left:
    return Left(first.count + second.count, (first.rows + second.rows)[:NUM_LISTED])


def _stop_leak(sides: dict[Side, list[Example]], progress: Progress) -> dict[Side, Left]:
    """Drop rows from validation whose text is in the test; none of either trains in any case."""
    later = {row.text for row in sides["test"]}
    left = listed([row.id for row in sides["valid"] if row.text in later])
    sides["valid"] = [row for row in sides["valid"] if row.text not in later]
    if left.count:
        progress.say(
            f"{left.count} rows left valid: their text is also in test (the first is {left.rows[0]})"
        )
    return {"valid": left}


def _gather(
    source: Source, usable: Usable, seed: int, bad: BadRows, counts: Counter[str], spellings: Counter[str]
) -> dict[Side, list[Example]]:
    """Read the first pass of the stream until validation and test are full."""
    config = usable.config
    sides: dict[Side, list[Example]] = {side: [] for side in SIDES}
    wanted: list[Side] = [] if config.valid else ["valid"]
    if not config.test:
        wanted.append("test")
    heads = Heads(source, seed, bad, keep=lambda rows: usable.whole_tables(rows, bad))
    ids = Ids(config.id)
    limit = _SCANNED_PER_ROW * config.head_rows
    last: Rows | None = None
    # Files may hold one class each: a slice of each of the first parts is looked at.
    left = min(NUM_HEADS, source.num_parts)
    while counts["rows"] < limit or left > 0:
        left -= 1
        part = heads.next_rows(SLICED_ROWS)
        if part is None:
            break
        ids.check(part)
        for side, examples in usable.sort(part, bad, counts).items():
            sides[side] += examples
        if usable.task != "multilabel":
            values = part.columns.get(config.label, [])
            spellings.update(value for value in values if isinstance(value, str) and tidy_label(value))
        last = part
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


def with_bad_rows(splits: Splits, side_file: Path, progress: Progress = SILENT) -> Splits:
    """Return the splits with a note on the bad rows of the whole training in their report, and say how many.

    The counts beside it stay those of the first rows, all of them.
    """
    found = BadRows("skip", side_file)
    if not found.count:
        return splits
    bad = "bad row was" if found.count == 1 else "bad rows were"
    progress.say(f"{found.count} {bad} skipped: {side_file}")
    train = splits.report.sources["train"]
    note = f"in the whole training {found.count} {bad} skipped: {side_file.name}"
    sources = {**splits.report.sources, "train": replace(train, notes=(*train.notes, note))}
    return replace(splits, report=replace(splits.report, sources=sources))


def _source_report(
    path: str,
    config: DataConfig,
    counts: Counter[str],
    bad: BadRows,
    left: tuple[Left, Left],
    notes: tuple[str, ...] = (),
) -> SourceReport:
    before = counts["bad_before"]
    places = tuple(row.place for row in bad.first[counts["listed_before"] :])
    return SourceReport(
        path=path,
        # Rows that could not be read never came as rows.
        rows=counts["rows"] - counts["unfit"] + bad.count - before,
        columns=tuple(filter(None, (config.text, config.text_pair, config.label, config.id))),
        notes=notes,
        cleaned={},
        missing_text=Left(counts["missing_text"]),
        missing_label=Left(counts["missing_label"]),
        duplicates=left[0],
        conflicts=left[1],
        bad_rows=Left(bad.count - before, places),
    )
