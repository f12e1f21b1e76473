"""One tree of errors, each with the exit code of the command line.

    TextmillError              1  our fault when raised as such
    +-- UserError              2  the user's input
    |   +-- ProjectError          the project file or a `--set`
    |   +-- DataError             a data file, column, label
    |   +-- ModelError            a backbone, tokenizer, architecture
    |   +-- StoreError            a bundle, a version, the disk under it
    |   +-- ServeError            a port, a server that is not there
    |   +-- RequestError          a request to the server (carries the HTTP status)
    |   +-- MissingExtra          an optional library that is not installed
    +-- GateRefused            3  a model that may not go live
    +-- TrainingGaveUp         4  a training that cannot be saved

A message always has three parts: the rule, the value got, the next step.
Faults of our own making are assertions.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TextmillError(Exception):
    """Base of all errors that textmill raises on purpose."""

    exit_code = 1

    def __init__(self, rule: str, *, got: str, fix: str) -> None:
        """Build the message from its three parts.

        Args:
            rule: what must hold, without a final full stop.
            got: the value that broke it, as the reader would recognise it (file and row, key, number).
            fix: the next step, one sentence.
        """
        super().__init__(f"{rule}, but got {got}. {fix}")
        self.rule = rule
        self.got = got
        self.fix = fix

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the three parts when an error crosses a process border."""
        return (_rebuild, (type(self), self.rule, self.got, self.fix), self.__dict__)

    def as_json(self) -> dict[str, str]:
        """Return the parts for `--json` output."""
        return {
            "kind": type(self).__name__,
            "message": str(self),
            "rule": self.rule,
            "got": self.got,
            "fix": self.fix,
        }


def _rebuild(kind: type[TextmillError], rule: str, got: str, fix: str) -> TextmillError:
    return kind(rule, got=got, fix=fix)


class UserError(TextmillError):
    """The user's input broke a rule."""

    exit_code = 2


class ProjectError(UserError):
    """The project file or an override of it is wrong."""


class DataError(UserError):
    """A data file, a column, a text or a label is wrong."""


class ModelError(UserError):
    """A backbone, tokenizer or architecture is not there or does not fit."""


class StoreError(UserError):
    """A bundle is missing, damaged or cannot be written."""


class ServeError(UserError):
    """A server cannot start or cannot be reached."""


class RequestError(UserError):
    """A request to the server is refused; `status` is the HTTP status of the answer."""

    status = 400

    def __init__(self, rule: str, *, got: str, fix: str, status: int = 400) -> None:
        """Build the message; `status` is a 4xx or 503."""
        super().__init__(rule, got=got, fix=fix)
        self.status = status


class MissingExtra(UserError):
    """An optional library is needed; the message names the extra that installs it."""

    def __init__(self, rule: str, *, got: str, fix: str) -> None:
        """Build the message; prefer `missing_extra` below."""
        super().__init__(rule, got=got, fix=fix)


class GateRefused(TextmillError):
    """A candidate may not go live; the live version stays."""

    exit_code = 3


class TrainingGaveUp(TextmillError):
    """Training ended without a usable model; the message is the diagnosis."""

    exit_code = 4


def missing_extra(library: str, extra: str, purpose: str) -> MissingExtra:
    """Return the error for an optional library that is not installed."""
    return MissingExtra(
        f"{purpose} needs the library {library}",
        got="an environment without it",
        fix=f"Install it with: pip install 'textmill[{extra}]'",
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that lists the known names, the nearest first.

    Args:
        name: what the user wrote.
        known: all names that would have been accepted.
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    listed = ", ".join(names) if names else "none"
    return (f"Did you mean {close[0]!r}? " if close else "") + f"Known: {listed}."
