"""What people see: progress bars on a terminal, plain lines elsewhere, tables and errors.

Progress and messages go to standard error, results to standard output; with `--json` the last line
of standard output is one JSON object and nothing else is printed there.
What is not covered: what is shown (each verb in `cli.py` knows its own result).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from textmill.core.progress import Progress, Task

_LINE_EVERY_S = 10.0
"""Plain lines appear this often, so that a log file of an hour stays readable."""


def progress_for(stream: TextIO) -> Progress:
    """Return bars if `stream` is a terminal, plain lines otherwise."""
    return BarProgress(stream) if stream.isatty() else LineProgress(stream)


class LineProgress:
    """Plain lines: one at the start, one every ten seconds, one at the end of each task."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        """Begin a piece of work and write its first line."""
        task = _LineTask(self, title, total)
        self.say(f"{title} ..." if total is None else f"{title}: {total}")
        yield task
        self.say(task.closing_line())

    def say(self, message: str) -> None:
        """Write one line."""
        self._stream.write(message + "\n")
        self._stream.flush()


class _LineTask:
    def __init__(self, lines: LineProgress, title: str, total: int | None) -> None:
        self._lines, self._title, self._total = lines, title, total
        self._done = 0
        self._figures: dict[str, float] = {}
        self._start = self._last_line = time.monotonic()

    def advance(self, num: int = 1, **figures: float) -> None:
        """Count, and write a line if the last one is old."""
        self._done += num
        self._figures = figures or self._figures
        now = time.monotonic()
        if now - self._last_line >= _LINE_EVERY_S:
            self._last_line = now
            of = f" of {self._total}" if self._total is not None else ""
            self._lines.say(f"{self._title}: {self._done}{of}{_shown_figures(self._figures)}")

    def closing_line(self) -> str:
        """Return the line that ends the task."""
        seconds = time.monotonic() - self._start
        return f"{self._title}: {self._done} done in {seconds:.1f} s{_shown_figures(self._figures)}"


class BarProgress:
    """Progress bars of rich, with the newest figures beside the bar."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream)
        self._bars: Bars | None = None

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        """Begin a piece of work and show its bar until it ends."""
        outermost = self._bars is None
        if self._bars is None:
            self._bars = _new_bars(self._console)
            self._bars.start()
        bar = self._bars.add_task(title, total=total, figures="")
        try:
            yield _BarTask(self._bars, bar)
        finally:
            if outermost:
                self._bars.stop()
                self._bars = None

    def say(self, message: str) -> None:
        """Write one line above the bars."""
        self._console.print(message, markup=False, highlight=False)


class _BarTask:
    def __init__(self, bars: Bars, bar: TaskID) -> None:
        self._bars, self._bar = bars, bar

    def advance(self, num: int = 1, **figures: float) -> None:
        """Move the bar."""
        if figures:
            self._bars.update(self._bar, advance=num, figures=_shown_figures(figures))
        else:
            self._bars.update(self._bar, advance=num)


def _new_bars(console: Any) -> Bars:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figures]}"),
        console=console,
    )


def _shown_figures(figures: dict[str, float]) -> str:
    return "".join(f"  {name} {value:.4g}" for name, value in figures.items())


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table on standard output: ruled on a terminal, the same text elsewhere."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if number == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    width = None if sys.stdout.isatty() else 120
    Console(file=sys.stdout, width=width).print(table)


def show_lines(lines: Sequence[str]) -> None:
    """Print plain lines on standard output."""
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def show_json(value: dict[str, Any]) -> None:
    """Print one JSON object as one line on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
