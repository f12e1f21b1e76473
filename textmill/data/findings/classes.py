"""Classes: too few, too small, too unequal.

Counts are those of the whole data set, never of a sample. A row with several labels counts for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textmill.data.duplicates import shorten
from textmill.data.findings.finding import Finding
from textmill.data.report import DataReport
from textmill.data.split import SIDES, Side

_TINY_CLASS = 10
_LOPSIDED_SHARE = 0.9
_UNEQUAL = 10.0
"""From this ratio of the largest to the smallest class on, plain cross-entropy visibly neglects the small
ones (He and Garcia 2009 call 10:1 and more imbalanced)."""


def find_in_classes(report: DataReport, num_rows: int, is_multilabel: bool) -> Iterator[Finding]:
    """Yield what is wrong with the classes.

    Args:
        report: of the data.
        num_rows: rows on all sides.
        is_multilabel: whether a row may have any number of labels.
    """
    sides = report.sides
    names = next(iter(sides.values()), {})
    counts = {label: sum(sides[side][label] for side in sides) for label in names}
    if len(counts) < (1 if is_multilabel else 2):
        only = f"only the class {next(iter(counts))!r}" if counts else "no class at all"
        yield Finding("one_class", "error", f"there is {only}", "Check data.label.")
    if num_rows > 20 and len(counts) > num_rows / 2:
        message = f"{len(counts)} classes in {num_rows} rows, such as {shorten(next(iter(counts)))}"
        yield Finding("class_per_row", "error", message, "data.label names a column of ids, numbers or text.")
        return
    yield from _small_classes(sides, counts)
    yield from _unequal_classes(counts, num_rows, is_multilabel)


def find_empty_sides(sizes: Mapping[Side, int]) -> Iterator[Finding]:
    """Yield the sides without rows."""
    for side in SIDES:
        if not sizes[side]:
            fix = f"Give more rows as data.{side} (training leaves out texts that are in valid or test)."
            yield Finding("empty_side", "error", f"no rows for {side}", fix)


def find_unlabelled(num_unlabelled: int, num_rows: int, rows: tuple[str, ...]) -> Iterator[Finding]:
    """Yield how many rows of a multi-label set have no label at all (which is allowed)."""
    if num_unlabelled:
        share = num_unlabelled / num_rows
        message = f"{num_unlabelled:,} rows ({share:.1%}) have no label: the first is {rows[0]}"
        fix = "Nothing to do where that is meant: they teach the model to answer nothing."
        yield Finding("no_labels", "note" if share < 0.5 else "warning", message, fix, rows)


def _small_classes(sides: Mapping[Side, Mapping[str, int]], counts: dict[str, int]) -> Iterator[Finding]:
    for label, count in counts.items():
        where = ", ".join(f"{sides[side][label]} {side}" for side in SIDES)
        if not sides["train"][label]:
            message = f"class {label!r} has no training rows ({where})"
            fix = "Add training rows of that class, or leave it out."
            yield Finding("empty_class", "error", message, fix)
        elif count < _TINY_CLASS or not sides["valid"][label] or not sides["test"][label]:
            message = f"class {label!r} has {count} rows ({where}): too few to learn or to measure"
            yield Finding("tiny_class", "warning", message, "Add rows, or merge it with another class.")


def _unequal_classes(counts: dict[str, int], num_rows: int, is_multilabel: bool) -> Iterator[Finding]:
    if len(counts) < 2:
        return
    most = max(counts, key=lambda name: counts[name])
    least = min((name for name in counts if counts[name]), key=lambda name: counts[name], default=most)
    ratio = counts[most] / max(1, counts[least])
    if counts[most] > _LOPSIDED_SHARE * num_rows and not is_multilabel:
        share = counts[most] / num_rows
        message = f"class {most!r} is {share:.1%} of the rows: always answering it is that accurate"
        fix = "Look at macro-F1 rather than accuracy, and consider train.class_weights = 'balanced'."
        yield Finding("lopsided", "warning", message, fix)
    elif ratio >= _UNEQUAL and counts[least] >= _TINY_CLASS:
        message = (
            f"the largest class {most!r} ({counts[most]:,} rows) is {ratio:.0f} times the smallest, "
            f"{least!r} ({counts[least]:,} rows)"
        )
        fix = "Look at macro-F1, and consider train.class_weights = 'balanced'."
        yield Finding("imbalance", "warning", message, fix)
