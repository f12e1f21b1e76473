"""From the project's `[data]` table to three sequences of examples, with every row accounted for.

Promises: the order is read, clean, missing, duplicates, conflicts, split, leakage; each row that
does not come through is counted with its reason; the same files and settings give the same splits
and the same fingerprint everywhere. Texts go straight to Arrow, in the project's cache or in memory;
what is kept of a row while the splits are made is 20 bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from textmill.core.errors import DataError
from textmill.core.progress import SILENT, Progress
from textmill.core.seeds import stream_seed
from textmill.core.types import Example, Task
from textmill.data.bad_rows import SIDE_FILE, BadRows
from textmill.data.build_once import build_once
from textmill.data.config import DataConfig
from textmill.data.duplicates import repeated, sharing_a_text, shorten, torn
from textmill.data.find_files import SourceFile, find_files, others_in, place_of, refuse_own_folder
from textmill.data.fingerprint import print_rows, print_splits
from textmill.data.labels import survey_labels
from textmill.data.mapped import MappedExamples
from textmill.data.mapped_cache import data_key, keep_sides, open_sides
from textmill.data.mapped_scan import LabelCodes, Scan, scan_source
from textmill.data.mapped_write import ShardWriter
from textmill.data.read_chunks import HUB, read_chunks
from textmill.data.report import NUM_LISTED, DataReport, Left, SourceReport
from textmill.data.rows import Rows
from textmill.data.split import SIDES, Side, split_sides
from textmill.data.text_hash import hash_label_sets, is_among


@dataclass(frozen=True)
class Splits:
    """Examples by side, the class names, and how they came to be."""

    train: Sequence[Example]
    valid: Sequence[Example]
    test: Sequence[Example]
    labels: tuple[str, ...]
    """Class names, sorted."""
    report: DataReport
    fingerprint: str
    """SHA-256 over ids, texts and labels by side and in order."""
    task: Task = "classification"
    """What the rows are for: `Example.labels` and `Example.text` follow from it."""


def prepare(
    config: DataConfig,
    base: Path,
    progress: Progress = SILENT,
    *,
    cache: Path | None = None,
    task: Task = "classification",
) -> Splits:
    """Read, clean and split the data of a project.

    Args:
        config: the `[data]` table.
        base: the folder of the project file.
        progress: is told what was guessed, merged and dropped.
        cache: where the rows are kept for the next time, memory-mapped; None keeps them in memory.
        task: says how the label column is read, and whether there are two texts.

    Raises:
        DataError: a missing file, column or class, a value that is no text, a row that cannot be read.
        StoreError: the cache's disk is full or forbidden.
    """
    splits = survey(config, base, progress, cache=cache, task=task)
    refuse_untrainable(splits)
    return splits


def survey(
    config: DataConfig,
    base: Path,
    progress: Progress = SILENT,
    *,
    cache: Path | None = None,
    task: Task = "classification",
) -> Splits:
    """Do what `prepare` does, also for data that nothing can be trained on (one class only).

    Raises:
        DataError: a missing file or column, a value that is no text, a row that cannot be read.
        StoreError: the cache's disk is full or forbidden.
    """
    sources: dict[Side, _Source] = {}
    for side, path in _paths(config).items():
        sources[side] = _open_source(path, base, config)
        others = None if sources[side].files is None else others_in(path, base)
        if others:
            progress.say(others)
    if cache is None or any(source.files is None for source in sources.values()):
        return _as_splits(*_split_sources(config, sources, progress, None, task), task)

    files = {side: source.files or [] for side, source in sources.items()}
    before = _states(files)

    def build(folder: Path) -> dict[str, Any]:
        facts = keep_sides(folder, *_split_sources(config, sources, progress, folder, task))
        _refuse_changed(before, _states(files))
        return facts

    folder, manifest = build_once(cache, "data", data_key(files, config, task), build, progress=progress)
    return _as_splits(*open_sides(folder, manifest, config), task)


def _states(files: Mapping[Side, Sequence[SourceFile]]) -> dict[str, tuple[int, ...] | None]:
    """Return what tells that a file was written to; None for a file that is gone."""
    found: dict[str, tuple[int, ...] | None] = {}
    for file in (file for each in files.values() for file in each):
        try:
            state = Path(file.path).stat()
        except OSError:
            found[file.path] = None
        else:
            found[file.path] = (state.st_size, state.st_mtime_ns, state.st_ino)
    return found


def _refuse_changed(before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Raise where a file changed while it was read: its rows would be kept under the key of others."""
    for path, state in before.items():
        if after[path] != state:
            raise DataError(
                "A data file must stay as it is while it is read",
                got=f"{path}, which {'is gone' if after[path] is None else 'was written to'} meanwhile",
                fix="Wait until it is complete and run again.",
            )


def _split_sources(
    config: DataConfig, sources: Mapping[Side, _Source], progress: Progress, folder: Path | None, task: Task
) -> tuple[dict[Side, MappedExamples], DataReport]:
    """Read, clean and split; the rows go to Arrow files in `folder`, or stay in memory."""
    codes = LabelCodes(is_multilabel=task == "multilabel")
    scans: dict[Side, Scan] = {}
    reports: dict[str, SourceReport] = {}
    usable: dict[Side, npt.NDArray[np.int64]] = {}
    taken: set[str] = set()
    for side, source in sources.items():
        # Files of one name in two folders must not give two rows one id.
        prefix = "" if taken.isdisjoint(source.names) else f"{side}/"
        taken |= source.names
        bad = BadRows(config.on_bad_row, None if folder is None else folder / f"{side}.{SIDE_FILE}")
        writer = ShardWriter(folder, side, has_pairs=config.text_pair is not None)
        try:
            scan = scan_source(
                source.path, partial(source.pieces, bad), config, codes, writer, prefix, bad, progress
            )
        finally:
            writer.abandon()
        bad.flush()
        scans[side] = scan
        usable[side], reports[side] = _settle(scan, config, codes)
        _say_dropped(side, reports[side], config, progress)
    names = survey_labels(sum((scan.spellings for scan in scans.values()), Counter[str]()))
    rows = _split(scans["train"], usable["train"], codes, config)
    rows.update({side: found for side, found in usable.items() if side != "train"})
    leakage = _stop_leaks(scans, rows, progress)
    sides = _as_sides(scans, rows, codes)
    names.say_merged(progress)
    prints = {side: examples.print for side, examples in sides.items()}
    return sides, DataReport(reports, names, _count(sides), leakage, prints)


def refuse_untrainable(splits: Splits) -> None:
    """Raise where no classifier can be trained or measured.

    Raises:
        DataError: fewer than two classes, a class without training rows, or a side without rows.
    """
    if len(splits.labels) < (1 if splits.task == "multilabel" else 2):
        only = f"only {splits.labels[0]!r}" if splits.labels else "none"
        raise DataError(
            "There must be a class" if splits.task == "multilabel" else "There must be at least two classes",
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
    path: str
    """As in the project file."""
    files: list[SourceFile] | None
    """None for what comes through the `datasets` library."""
    pieces: Callable[[BadRows, Progress], Iterator[Rows]]
    """Begins to read the rows; bad ones are accounted for, the progress is told what is guessed."""

    @property
    def names(self) -> frozenset[str]:
        """What the ids of its rows may begin with."""
        return frozenset([self.path] if self.files is None else [file.name for file in self.files])


def _paths(config: DataConfig) -> dict[Side, str]:
    paths: dict[Side, str | None] = {"train": config.train, "valid": config.valid, "test": config.test}
    return {side: path for side, path in paths.items() if path is not None}


def _open_source(path: str, base: Path, config: DataConfig) -> _Source:
    def pieces(bad: BadRows, listener: Progress) -> Iterator[Rows]:
        found = read_chunks(
            path, base, separator=config.separator, encoding=config.encoding, bad=bad, progress=listener
        )
        return (chunk.rows for chunk in found)

    is_plain = not path.startswith(HUB) and not (place_of(path, base) / "dataset_info.json").exists()
    if is_plain:
        refuse_own_folder(path, base)
    return _Source(path, find_files(path, base) if is_plain else None, pieces)


def _settle(scan: Scan, config: DataConfig, codes: LabelCodes) -> tuple[npt.NDArray[np.int64], SourceReport]:
    """Return the rows of a source without duplicates and conflicts, and the account of all its rows."""
    # All that follows is about rows that share a text, mostly few.
    shared = sharing_a_text(scan.hashes)
    twice = shared[repeated(scan.hashes[shared], scan.codes[shared])]
    is_kept = np.ones(len(scan.hashes), bool)
    is_kept[twice] = False
    rows = shared[is_kept[shared]]
    groups = [rows[group] for group in torn(scan.hashes[rows], scan.codes[rows])]
    if groups and config.on_conflict == "fail":
        _refuse_conflict(scan, groups, codes)
    in_conflict = np.concatenate([np.zeros(0, np.int64), *groups])
    if config.on_conflict == "drop":
        is_kept[in_conflict] = False
    report = SourceReport(
        path=scan.path,
        rows=scan.rows,
        columns=scan.columns,
        notes=scan.notes,
        cleaned=scan.cleaned,
        missing_text=scan.missing_text,
        missing_label=scan.missing_label,
        duplicates=_listed(scan, twice),
        conflicts=_listed(scan, in_conflict),
        bad_rows=scan.bad_rows,
    )
    return np.flatnonzero(is_kept), report


def _refuse_conflict(scan: Scan, groups: Sequence[npt.NDArray[np.int64]], codes: LabelCodes) -> None:
    first = groups[0][:3]
    ids = scan.shards.take("id", first)
    names = [codes.label_sets[code] for code in scan.codes[first].tolist()]
    rows = " and ".join(
        f"{', '.join(labels)!r} in {row_id}" for labels, row_id in zip(names, ids, strict=True)
    )
    text = shorten(scan.shards.text(int(first[0])))
    raise DataError(
        "One text must have one label (data.on_conflict is 'fail')",
        got=f"{len(groups)} texts with several, the first being {text} as {rows}",
        fix="Correct the rows, or set data.on_conflict to 'drop' or 'keep'.",
    )


def _listed(scan: Scan, rows: npt.NDArray[np.int64]) -> Left:
    return Left(len(rows), tuple(scan.shards.take("id", rows[:NUM_LISTED])))


def _split(
    scan: Scan, rows: npt.NDArray[np.int64], codes: LabelCodes, config: DataConfig
) -> dict[Side, npt.NDArray[np.int64]]:
    places = split_sides(
        scan.hashes[rows],
        scan.codes[rows],
        codes.label_sets,
        0.0 if config.valid else config.valid_share,
        0.0 if config.test else config.test_share,
    )
    return {side: rows[places == place] for place, side in enumerate(SIDES)}


def _source_of(side: Side, scans: Mapping[Side, Scan]) -> Scan:
    return scans.get(side, scans["train"])


def _stop_leaks(
    scans: Mapping[Side, Scan], rows: dict[Side, npt.NDArray[np.int64]], progress: Progress
) -> dict[Side, Left]:
    """Drop rows from training and validation whose text stands on a later side."""
    leakage: dict[Side, Left] = {}
    order: tuple[tuple[Side, tuple[Side, ...]], ...] = (("valid", ("test",)), ("train", ("valid", "test")))
    for side, others in order:
        scan = _source_of(side, scans)
        later = np.concatenate([_source_of(other, scans).hashes[rows[other]] for other in others])
        is_leak = is_among(scan.hashes[rows[side]], later)
        left = _listed(scan, rows[side][is_leak])
        rows[side] = rows[side][~is_leak]
        leakage[side] = left
        if left.count:
            progress.say(
                f"{left.count} rows left {side}: their text is also in {' or '.join(others)} "
                f"(the first is {left.rows[0]})"
            )
    return leakage


def _as_sides(
    scans: Mapping[Side, Scan], rows: Mapping[Side, npt.NDArray[np.int64]], codes: LabelCodes
) -> dict[Side, MappedExamples]:
    """Return the sides as sequences that know their fingerprints."""
    label_hashes = hash_label_sets(codes.label_sets)
    sides: dict[Side, MappedExamples] = {}
    for side in SIDES:
        scan, chosen = _source_of(side, scans), rows[side]
        found = print_rows(scan.ids[chosen], scan.hashes[chosen], label_hashes[scan.codes[chosen]])
        sides[side] = MappedExamples(scan.shards, chosen, codes.label_sets, found)
    return sides


def _count(sides: Mapping[Side, MappedExamples]) -> dict[Side, dict[str, int]]:
    """Return side -> class -> rows, zero where a class has none there."""
    counts = {side: examples.count_labels() for side, examples in sides.items()}
    labels = sorted(set().union(*counts.values()))
    return {side: {label: found[label] for label in labels} for side, found in counts.items()}


def _as_splits(sides: Mapping[Side, MappedExamples], report: DataReport, task: Task) -> Splits:
    labels, whole = tuple(report.sides["train"]), print_splits(report.fingerprints)
    return Splits(sides["train"], sides["valid"], sides["test"], labels, report, whole, task)


def _say_dropped(side: str, report: SourceReport, config: DataConfig, progress: Progress) -> None:
    conflicts = {"drop": "dropped", "keep": "kept", "fail": "refused"}[config.on_conflict]
    for left, what in (
        (report.bad_rows, "bad rows skipped"),
        (report.missing_text, "rows without text dropped"),
        (report.missing_label, "rows without label dropped"),
        (report.duplicates, "exact duplicates dropped"),
        (report.conflicts, f"rows of texts with two labels {conflicts}"),
    ):
        if left.count:
            progress.say(f"{side}: {left.count} {what} (the first is {left.rows[0]})")
