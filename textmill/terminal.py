"""What people see: progress bars on a terminal, plain lines elsewhere, tables and errors.

Progress and messages go to standard error, results to standard output; with `--json` the last line
of standard output is one JSON object and nothing else is printed there.
What is not covered: what is shown (each verb in `cli.py` knows its own result).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from textmill.core.errors import StoreError

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
    """Plain lines: one at the start, one every ten seconds, one at the end of each longer task."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        """Begin a piece of work and write its first line."""
        task = _LineTask(self, title, total)
        self.say(f"{title} ..." if total is None else f"{title}: {_count(total)} ...")
        yield task
        if task.is_worth_a_line():
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
            of = f" of {_count(self._total)}" if self._total is not None else ""
            self._lines.say(f"{self._title}: {_count(self._done)}{of}{_shown_figures(self._figures)}")

    def is_worth_a_line(self) -> bool:
        """Return whether the end says more than the beginning did."""
        return time.monotonic() - self._start >= 1 or bool(self._figures)

    def closing_line(self) -> str:
        """Return the line that ends the task."""
        seconds = time.monotonic() - self._start
        return f"{self._title}: {_count(self._done)} done in {seconds:.1f} s{_shown_figures(self._figures)}"


class BarProgress:
    """Progress bars of rich, with the newest figures below the bar."""

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
        of = "" if total is None else f"of {_count(total)}"
        bar = self._bars.add_task(title, total=total, figures="", count=f"0 {of}" if of else "")
        try:
            yield _BarTask(self._bars, bar, of)
        finally:
            if outermost:
                self._bars.stop()
                self._bars = None

    def say(self, message: str) -> None:
        """Write one line above the bars."""
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)


class _BarTask:
    def __init__(self, bars: Bars, bar: TaskID, of: str) -> None:
        self._bars, self._bar, self._of = bars, bar, of
        self._done = 0

    def advance(self, num: int = 1, **figures: float) -> None:
        """Move the bar."""
        self._done += num
        fields: dict[str, Any] = {"count": f"{_count(self._done)} {self._of}"}
        if figures:
            fields["figures"] = _shown_figures(figures)
        self._bars.update(self._bar, advance=num, **fields)


def _new_bars(console: Any) -> Bars:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    class Bars(Progress):
        """Bars with the newest figures on a line of their own: beside the bar they do not fit 80 columns."""

        def get_renderables(self) -> Iterator[Any]:
            yield self.make_tasks_table(self.tasks)
            for task in self.tasks:
                if task.fields["figures"]:
                    yield Text(task.fields["figures"], no_wrap=True, overflow="ellipsis")

    return Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def _count(num: int) -> str:
    return f"{num / 1e6:.1f} million" if num >= 10_000_000 else str(num)  # so many are bytes


def _shown_figures(figures: dict[str, float]) -> str:
    return "".join(f"  {name} {value:.4g}" for name, value in figures.items())


def fact_lines(facts: Mapping[str, Any], indent: str = "") -> list[str]:
    """Return facts as lines `name: value`; what is inside another fact stands below it, indented."""
    lines = []
    for name, value in facts.items():
        if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
            value = {str(place): each for place, each in enumerate(value, 1)}
        if isinstance(value, Mapping) and value:
            lines += [f"{indent}{name}:", *fact_lines(value, indent + "  ")]
            continue
        if isinstance(value, list | tuple):
            value = ", ".join(map(str, value)) or "none"
        lines.append(f"{indent}{name}: {'none' if value is None else value}")
    return lines


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table on standard output: ruled on a terminal, the same text elsewhere."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        is_text = number == 0 or all(_is_word(row[number]) for row in rows)
        table.add_column(Text(column), justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    width = None if sys.stdout.isatty() else 120
    Console(file=sys.stdout, width=width).print(table)


def show_lines(lines: Sequence[str]) -> None:
    """Print plain lines on standard output."""
    _write("".join(line + "\n" for line in lines))


def show_json(value: dict[str, Any]) -> None:
    """Print one JSON object as one line on standard output."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # an ASCII terminal, or a name of the file system that is no UTF-8
        text = json.dumps(value, ensure_ascii=True, default=str)
    _write(text + "\n")


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as err:
        # What is left in the buffer would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise StoreError(
            "Standard output must be writable",
            got=repr(err.strerror),
            fix="Free some space, or send the output elsewhere.",
        ) from err


def _is_word(value: object) -> bool:
    return isinstance(value, str) and not value.endswith("%")


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
