"""The journal of a store: who changed what, when and why; lines are added and never changed.

Promises: a line is there before its change takes effect; a change that then failed (a full disk, a kill)
is not told as done, since its revision never became the state's or was given again to a later line (for
a published version: since its number is not in the store, or was given again).
"""

from __future__ import annotations

import datetime
import getpass
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from textmill.core.config import Config
from textmill.core.errors import StoreError
from textmill.core.files import append_line, disk_faults

JOURNAL = "journal.jsonl"

What = Literal[
    "published", "live", "rollback", "gate", "refused", "channel", "pin", "unpin", "ban", "unban", "prune"
]


class Entry(Config):
    """One line of the journal."""

    when: str
    """UTC, ISO 8601."""
    user: str
    """Login name, or the number of a user without one."""
    pid: int
    """The process."""
    what: What
    """Kind of event."""
    version: int | None = None
    """The version it is about."""
    live_before: int | None = None
    """The live version before."""
    live_after: int | None = None
    """The live version after."""
    revision: int | None = None
    """The state's revision that this change made; none for events that change no state."""
    reason: str = ""
    """Why, in the words of whoever did it."""
    report: dict[str, Any] | None = None
    """The report of the gate, where there is one."""


def now() -> str:
    """Return the present time in UTC, ISO 8601, to the millisecond."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def write_entry(
    folder: Path,
    what: What,
    *,
    version: int | None,
    live: tuple[int | None, int | None],
    revision: int | None = None,
    reason: str = "",
    report: dict[str, Any] | None = None,
) -> None:
    """Add one line; the caller holds the store's lock.

    Args:
        folder: the store.
        what: kind of event.
        version: the version it is about.
        live: the live version before and after.
        revision: the state's revision that the change makes.
        reason: why.
        report: the report of the gate.
    """
    entry = Entry(
        when=now(),
        user=_user(),
        pid=os.getpid(),
        what=what,
        version=version,
        live_before=live[0],
        live_after=live[1],
        revision=revision,
        reason=reason,
        report=report,
    )
    path = folder / JOURNAL
    _drop_torn_line(path)
    append_line(path, entry.model_dump_json())


def read_journal(folder: Path, revision: int, newest: int) -> list[Entry]:
    """Return all lines that took effect, the oldest first.

    Args:
        folder: the store.
        revision: the revision of its state; lines beyond it did not take effect.
        newest: the newest version in it; one beyond it was never published.

    Raises:
        StoreError: a line that is no journal line; the message names it.
    """
    path = folder / JOURNAL
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last line break was torn by a power cut
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(Entry.model_validate_json(line))
        except ValidationError as err:
            raise StoreError(
                f"Line {number} of {path} must be a journal line",
                got=repr(line[:80]),
                fix="The journal was edited; take the line out by hand.",
            ) from err
    last = {_claim(entry): index for index, entry in enumerate(entries)}
    limits = {"revision": revision, "version": newest}
    return [
        entry
        for index, entry in enumerate(entries)
        if (claim := _claim(entry)) is None or (claim[1] <= limits[claim[0]] and last[claim] == index)
    ]


def _claim(entry: Entry) -> tuple[str, int] | None:
    """Return the number that only one event can have for itself: a revision or a new version."""
    if entry.what == "published" and entry.version is not None:
        return ("version", entry.version)
    return None if entry.revision is None else ("revision", entry.revision)


def _drop_torn_line(path: Path) -> None:
    if not path.exists():
        return
    with disk_faults(path), open(path, "r+b") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # a container's user without a name
