"""Folders that are built once and used many times: a cache that survives kills and two builders at once.

Promises: a folder is visible only when it is whole (its manifest is written last, the folder is
renamed into place after that, all synced); of two processes that want the same, one builds and the
other waits and uses it; what a killed builder left is removed by the next; a full disk leaves nothing
visible; a folder whose bytes are not those that were written is made anew, and that is said; only the
newest few folders of a kind are kept, and what is removed is said.
What is not covered: network file systems without locks; bytes that change while the folder is in use.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from textmill.core.files import disk_faults, fsync_folder, fsync_tree, remove_tree, write_json
from textmill.core.progress import SILENT, Progress

MANIFEST = "manifest.json"
KEEP = 4
"""Folders of a kind that stay: the data now in use, and a few others of the project's recent past."""

_BLOCK_BYTES = 1 << 20


def build_once(
    root: Path,
    kind: str,
    key: str,
    build: Callable[[Path], dict[str, Any]],
    *,
    keep: int = KEEP,
    progress: Progress = SILENT,
) -> tuple[Path, dict[str, Any]]:
    """Return a sound folder and its manifest; build it if there is none.

    Args:
        root: the folder of caches.
        kind: what is cached, the first part of the folder's name.
        key: what it was made from, the second part.
        build: fills an empty folder and returns JSON values for the manifest.
        keep: how many folders of this kind stay.
        progress: is told what is used again or removed.

    Raises:
        StoreError: the disk is full, read-only or forbidden.
    """
    folder = root / f"{kind}-{key}"
    with disk_faults(root):
        root.mkdir(parents=True, exist_ok=True)
    with _locked(root, folder.name):
        manifest = _sound_manifest(folder)
        if manifest is None and (folder / MANIFEST).exists():
            progress.say(f"{folder} is damaged and is made anew")
        if manifest is not None:
            now = time.time_ns()  # finer than the clock of the file system, which may not have moved yet
            os.utime(folder / MANIFEST, ns=(now, now))
            progress.say(f"prepared {kind}: used again, from {root.name}/")
            return folder, manifest
        manifest = _build(folder, build)
    _prune(root, kind, keep, progress)
    return folder, manifest


def _build(folder: Path, build: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    for leftover in folder.parent.glob(f"{_staging(folder)}*"):  # of a builder that was killed
        remove_tree(leftover)
    staging = folder.with_name(f"{_staging(folder)}{os.getpid()}")
    with disk_faults(folder):
        try:
            remove_tree(folder)
            staging.mkdir()
            manifest = build(staging)
            manifest["files"] = {
                str(file.relative_to(staging)): [file.stat().st_size, _checksum(file)]
                for file in sorted(staging.rglob("*"))
                if file.is_file()
            }
            fsync_tree(staging)
            write_json(staging / MANIFEST, manifest)
            staging.rename(folder)
            fsync_folder(folder.parent)
        except BaseException:
            remove_tree(staging)
            raise
    return manifest


def _staging(folder: Path) -> str:
    return f".{folder.name}-"


def _sound_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest if all files are there as they were written."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        known: dict[str, list[int]] = manifest["files"]
        is_sound = all((folder / name).stat().st_size == size for name, (size, _) in known.items()) and all(
            _checksum(folder / name) == checksum for name, (_, checksum) in known.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if is_sound else None


def _checksum(file: Path) -> int:
    """Return the CRC-32 of a file: it is about accidents, and costs less than the reading."""
    total = 0
    with open(file, "rb") as opened:
        while block := opened.read(_BLOCK_BYTES):
            total = zlib.crc32(block, total)
    return total


def _prune(root: Path, kind: str, keep: int, progress: Progress) -> None:
    """Remove the folders that were used longest ago, and what killed builders left, unless locked."""

    def used(folder: Path) -> float:
        with contextlib.suppress(OSError):
            return (folder / MANIFEST).stat().st_mtime
        return 0.0

    folders = sorted((f for f in root.glob(f"{kind}-*") if f.is_dir()), key=used, reverse=True)
    for folder in folders[keep:]:
        with _locked(root, folder.name, wait=False) as is_mine:
            if is_mine:
                remove_tree(folder)
                progress.say(f"{folder} was not used for long and is removed ({keep} stay)")
    for leftover in root.glob(f".{kind}-*-*"):
        name = leftover.name[1:].rpartition("-")[0]
        with _locked(root, name, wait=False) as is_mine:
            if is_mine:
                remove_tree(leftover)


@contextlib.contextmanager
def _locked(root: Path, name: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a folder's name; yield False if another process has it and `wait` is off.

    The lock file stays: to remove one that others may be opening would let two processes hold two locks.
    """
    locks = root / ".locks"
    with disk_faults(root):
        locks.mkdir(exist_ok=True)
        handle = os.open(locks / name, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_mine = True
        except BlockingIOError:
            is_mine = False
        yield is_mine
    finally:
        os.close(handle)
