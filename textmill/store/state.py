"""Which versions are live, previous, named, pinned and banned: one small file, replaced atomically.

Promises: a reader sees the state before or after a change, never between; changes of several processes
follow one after the other; each change has its line in the journal.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from textmill.core.config import Config
from textmill.core.errors import StoreError
from textmill.core.files import disk_faults, write_json

STATE = "state.json"
_LOCK = ".lock"


class State(Config):
    """What a store says about its versions at one moment."""

    format: Literal[1] = 1
    """Version of this file format."""
    revision: int = Field(default=0, ge=0)
    """Number of changes so far."""
    live: int | None = None
    """The version that answers."""
    previous: int | None = None
    """The version that answered before: where a roll-back leads."""
    channels: dict[str, int] = Field(default_factory=dict)
    """Names for versions, such as `stable` and `canary`."""
    pins: tuple[int, ...] = ()
    """Versions that `prune` never removes."""
    bans: dict[int, str] = Field(default_factory=dict)
    """Versions that may not go live, each with the reason."""

    @property
    def kept(self) -> frozenset[int]:
        """Versions that `prune` never removes: live, previous, in a channel, pinned."""
        versions = {self.live, self.previous, *self.channels.values(), *self.pins}
        return frozenset(version for version in versions if version is not None)


def read_state(folder: Path) -> State:
    """Return the state of the store at `folder`; a store without a change yet has the empty state.

    Raises:
        StoreError: a state file that is damaged, of an unknown format, or may not be read.
    """
    path = folder / STATE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return State()
    except OSError as err:
        raise StoreError(
            f"{path} must be readable", got=f"{err.strerror!r}", fix="Change its permissions."
        ) from err
    try:
        return State.model_validate(json.loads(content))
    except (ValueError, ValidationError, RecursionError) as err:
        raise StoreError(
            f"{path} must hold the state of a store",
            got=f"{content[:40]!r} ({str(err).splitlines()[0]})",
            fix="Move it away and promote a version again; journal.jsonl beside it tells which one was live.",
        ) from err


def write_state(folder: Path, state: State) -> None:
    """Replace the state of the store at `folder`; the caller holds `locked(folder)`."""
    write_json(folder / STATE, state.model_dump(mode="json"))


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the store at `folder`: one change at a time over threads and processes.

    The kernel gives the lock back when its holder dies. Not covered: network file systems without locks.
    """
    path = folder / _LOCK
    with disk_faults(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
