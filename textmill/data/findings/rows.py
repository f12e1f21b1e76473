"""Rows that were lost, merged or guessed on the way from the files to the splits."""

from __future__ import annotations

from collections.abc import Iterator

from textmill.data.findings.finding import NUM_NAMED, Finding
from textmill.data.report import DataReport, Left


def find_in_rows(report: DataReport) -> Iterator[Finding]:
    """Yield what became of rows that did not come through, and what had to be guessed."""
    for group in report.labels.look_alikes:
        spelled = ", ".join(f"{spelling!r} ({count})" for spelling, count in group.items())
        message = f"labels that look alike: {spelled}; those that differ only by blanks are one class"
        yield Finding("look_alike_labels", "warning", message, "Give each class one spelling.")
    for side, source in report.sources.items():
        for note in source.notes:
            yield Finding("guessed", "note", note, "Set data.encoding or data.separator if that is wrong.")
        if source.missing_text.count:
            message = f"{side}: {_rows(source.missing_text)} without text, dropped"
            yield _found(
                "missing_text", "warning", message, "Fill or remove these rows.", source.missing_text
            )
        if source.missing_label.count:
            message = f"{side}: {_rows(source.missing_label)} without label, dropped"
            yield _found(
                "missing_label", "warning", message, "Label or remove these rows.", source.missing_label
            )
        if source.duplicates.count:
            message = f"{side}: {_rows(source.duplicates)} repeating an earlier row, dropped"
            fix = "Nothing to do; the first of each is kept."
            yield _found("duplicates", "note", message, fix, source.duplicates)
        if source.conflicts.count:
            message = f"{side}: {_rows(source.conflicts)} whose text has two labels"
            fix = "Correct the labels, or choose with data.on_conflict: drop, keep, fail."
            yield _found("conflicts", "warning", message, fix, source.conflicts)
    for side, left in report.leakage.items():
        if left.count:
            message = f"{_rows(left)} left {side}: their text is also on a later side"
            yield _found("leakage", "warning", message, f"Remove them from data.{side}.", left)


def _found(kind: str, level: str, message: str, fix: str, left: Left) -> Finding:
    return Finding(kind, "note" if level == "note" else "warning", message, fix, left.rows[:NUM_NAMED])


def _rows(left: Left) -> str:
    return f"{left.count} {'row' if left.count == 1 else 'rows'} (the first is {left.rows[0]})"
