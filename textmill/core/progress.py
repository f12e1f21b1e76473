"""How long work tells what it is doing, without knowing who watches.

Library code reports to a `Progress`; `terminal.py` shows it as bars or plain lines; the default
is silence. Nothing below the command line prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Task(Protocol):
    """One piece of work with a known or unknown end."""

    def advance(self, num: int = 1, **figures: float) -> None:
        """Move on by `num` units; `figures` (loss, lr, ...) are shown beside the bar."""
        ...


class Progress(Protocol):
    """Who watches long work."""

    def task(self, title: str, total: int | None) -> AbstractContextManager[Task]:
        """Begin a piece of work of `total` units (None: unknown)."""
        ...

    def say(self, message: str) -> None:
        """Tell one thing the user should know (an encoding guessed, weights dropped)."""
        ...


class _SilentTask:
    def advance(self, num: int = 1, **figures: float) -> None:
        """Do nothing."""


class SilentProgress:
    """Nobody watches."""

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        """Begin a piece of work that nobody watches."""
        yield _SilentTask()

    def say(self, message: str) -> None:
        """Tell nobody."""


SILENT: Progress = SilentProgress()
