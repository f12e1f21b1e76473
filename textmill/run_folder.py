"""Which folder a run writes into, and that only one process does.

Promises: a new run has a folder of its own; to go on means the newest run that has steps but no
report; a run on which another process works is refused, and a process that died holds nothing.
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

from textmill.core.errors import ProjectError
from textmill.core.files import disk_faults, write_atomic
from textmill.evaluate.report import REPORT_JSON
from textmill.project import Project
from textmill.train.hooks import EVENTS

PROJECT = "project.toml"
REPORT = REPORT_JSON


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
    """Return the newest run without a report; one that never made a step only if no other is there.

    Raises:
        ProjectError: there is none.
    """
    runs = sorted(project.runs.iterdir(), reverse=True) if project.runs.is_dir() else []
    unfinished = [folder for folder in runs if (folder / PROJECT).exists() and not (folder / REPORT).exists()]
    # A start that failed, for a misspelt setting say, must not hide the run that was cut off before it.
    begun = [folder for folder in unfinished if (folder / EVENTS).exists()]
    for folder in [*begun, *unfinished]:
        return folder
    raise ProjectError(
        "Resuming needs an unfinished run",
        got=f"none among the {len(runs)} in {project.runs}",
        fix="Start a new one without --resume.",
    )


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
