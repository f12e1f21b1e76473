"""Which folder a run writes into, and that only one process does.

Promises: a new run has a folder of its own; to go on means the newest run that has steps but no
report (a given-up one has none), or fewer epochs than are asked for now; a run on which another
process works is refused, and a process that died holds nothing.
What is not covered: what stands in the folder (`train/`, `evaluate/`); network file systems
without locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from textmill.core.errors import ProjectError, TextmillError
from textmill.core.files import disk_faults, write_atomic
from textmill.evaluate.given_up import GAVE_UP_JSON
from textmill.evaluate.report import REPORT_HTML, REPORT_JSON
from textmill.project import Project, load_project
from textmill.train.hooks import EVENTS
from textmill.train.result import load_result

PROJECT = "project.toml"
REPORT, PAGE = REPORT_JSON, REPORT_HTML
GAVE_UP = GAVE_UP_JSON
"""Of a run that was given up, in place of the report: it may go on, but is nothing to publish."""


def new_run(project: Project) -> Path:
    """Make the folder of a new run, with the resolved project file in it.

    Raises:
        StoreError: the disk is full or forbidden.
    """
    stamp = datetime.now().astimezone().strftime("%Y-%m-%dT%H-%M-%S")
    with disk_faults(project.runs):
        project.runs.mkdir(parents=True, exist_ok=True)
        for number in range(1, 1000):
            folder = project.runs / (stamp if number == 1 else f"{stamp}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                # Another run began in the same second.
                continue
            try:
                write_atomic(folder / PROJECT, project.as_toml())
            except BaseException:
                folder.rmdir()
                raise
            return folder
    raise AssertionError("a thousand runs in one second")


def newest_unfinished(project: Project) -> Path:
    """Return the newest run that has something left to do.

    That is a run without a report, or one that ended with fewer epochs than the project asks for now; one
    that never made a step only if no other is there.

    Raises:
        ProjectError: there is none.
    """
    runs = sorted(project.runs.iterdir(), reverse=True) if project.runs.is_dir() else []
    runs = [folder for folder in runs if (folder / PROJECT).exists()]
    unfinished = [
        folder for folder in runs if not (folder / REPORT).exists() or has_epochs_left(folder, project)
    ]
    # A start that failed, for a misspelt setting say, must not hide the run that was cut off before it.
    begun = [folder for folder in unfinished if (folder / EVENTS).exists()]
    for folder in [*begun, *unfinished]:
        return folder
    raise ProjectError(
        "Resuming needs an unfinished run",
        got=f"none among the {len(runs)} in {project.runs}",
        fix="Start a new one without --resume, or raise train.epochs to go on with the newest.",
    )


def has_epochs_left(folder: Path, project: Project) -> bool:
    """Return whether a run that has ended may go on, because more epochs or patience are asked for now."""
    try:
        result = load_result(folder)
        before = load_project(folder / PROJECT).config.train
    except (TextmillError, ValueError, TypeError):  # of another version of textmill, say
        return False
    if result is None:
        return True  # it went on, and was cut off before its new report
    now = project.config.train
    if result.stopped_early:
        return before.patience is not None and (now.patience is None or now.patience > before.patience)
    return result.epochs < now.epochs


@contextlib.contextmanager
def claimed(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a run folder for this process; the kernel gives it back when the process ends or dies.

    Args:
        folder: of the run.
        wait: until no other process holds it.

    Raises:
        ProjectError: another process holds it and `wait` is off.
    """
    with disk_faults(folder):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise ProjectError(
                "Only one process may work on a run",
                got=f"{folder}, on which another one works",
                fix="Wait for its end, or start a new run without --resume.",
            ) from err
        yield
    finally:
        os.close(handle)
