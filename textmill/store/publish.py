"""How a prepared folder becomes a version: staged inside the store, hashed, synced, renamed.

Promises: a version is visible whole or not at all, also after kill -9, a power cut or a full disk; two
publishers at once get two versions; the source may lie on any file system and is only read; all files of
a bundle have one mode, what the umask allows without write bits. The folder for temporary files is not used.
What is not covered: whether the content is a good model (the gate says that).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path

from textmill import __version__
from textmill.core.errors import StoreError
from textmill.core.files import disk_faults, fsync_folder, remove_tree
from textmill.core.progress import Progress, Task
from textmill.store.journal import now, write_entry
from textmill.store.manifest import MANIFEST, Facts, FileEntry, Manifest, check_path
from textmill.store.state import STATE, locked, read_state

logger = logging.getLogger(__name__)

STAGING = ".staging"
VERSIONS = "versions"
_PIECE_BYTES = 4 << 20
_CODE_SUFFIXES = frozenset({
    ".bin", ".ckpt", ".dill", ".dll", ".dylib", ".h5", ".joblib", ".keras", ".npy", ".npz", ".pickle", ".pkl",
    ".pt", ".pth", ".py", ".pyc", ".sh", ".so",
})  # fmt: skip
"""Files that hold code or pickles, or may: a bundle holds data only."""


def publish(folder: Path, name: str, source: Path, facts: Facts, progress: Progress) -> int:
    """Copy `source` into the store at `folder` as its next version and return the number.

    Args:
        folder: the store of one model; made if it is not there.
        name: name of the model.
        source: a prepared folder of plain files.
        facts: what the manifest says besides names, sizes and hashes.
        progress: who watches.

    Raises:
        StoreError: a source that may not become a bundle, or a disk that is full or read-only; then
            nothing new is visible and the staged part is removed.
    """
    names = _list_source(source)
    _make_store(folder)
    with _staging(folder) as staging, disk_faults(staging):
        total = sum((source / each).stat().st_size for each in names)
        with progress.task("publish", total) as task:
            files = {each: _copy(source / each, staging / each, task) for each in names}
        for parent, _, _ in os.walk(staging, topdown=False):
            fsync_folder(Path(parent))
            if Path(parent) != staging:
                _take_write_bits(Path(parent))
        with locked(folder):
            version = max(list_versions(folder), default=0) + 1
            _write_manifest(staging, _manifest(name, version, facts, files))
            live = read_state(folder).live
            write_entry(folder, "published", version=version, live=(live, live), reason=f"from {source.name}")
            _make_visible(folder, staging, version)
            return version


def sweep(folder: Path) -> None:
    """Remove what killed publishers and pruners left in the store; the caller holds its lock."""
    for lock in (folder / STAGING).glob("*.lock"):
        try:
            handle = os.open(lock, os.O_RDWR)
        except FileNotFoundError:
            continue  # its publisher has just ended
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # its publisher is at work
        else:
            logger.info("removing what a killed publish left: %s", lock.stem)
            remove_tree(lock.with_suffix(""))
            lock.unlink(missing_ok=True)
        finally:
            os.close(handle)
    for parent in (folder / VERSIONS, folder / STAGING):
        for doomed in parent.glob(".removed-*"):
            remove_tree(doomed)
    for temporary in folder.glob(f".{STATE}.*"):
        temporary.unlink()


@contextlib.contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """Give a new folder inside the store; it is removed unless it was renamed away."""
    staging = folder / STAGING / uuid.uuid4().hex
    lock = staging.with_name(staging.name + ".lock")
    with locked(folder):
        sweep(folder)
        with disk_faults(lock):
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        fcntl.flock(handle, fcntl.LOCK_EX)  # held while this process lives: how sweep knows
    try:
        with disk_faults(staging):
            staging.mkdir()
        yield staging
    finally:
        with locked(folder):
            remove_tree(staging)
            lock.unlink(missing_ok=True)
        os.close(handle)


def _make_store(folder: Path) -> None:
    with disk_faults(folder):
        try:
            for part in (folder, folder / VERSIONS, folder / STAGING):
                part.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as err:
            raise StoreError(
                "A store must be a folder", got=f"a file at {err.filename}", fix="Name another folder."
            ) from err


def _list_source(source: Path) -> list[str]:
    """Return the paths of all files below `source` after checking that each may be in a bundle."""
    if not source.is_dir():
        raise StoreError("What is published must be a folder", got=str(source), fix="Name a prepared folder.")
    names = []
    for parent, folders, files in os.walk(source):
        for each in [*folders, *files]:
            path = Path(parent) / each
            relative = path.relative_to(source).as_posix()
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                continue
            if not stat.S_ISREG(mode):
                kind = "a link" if stat.S_ISLNK(mode) else "a special file"
                raise StoreError(
                    "A bundle must hold plain files only",
                    got=f"{kind} at {path}",
                    fix="Copy the file itself there.",
                )
            _check_source_name(relative, path)
            names.append(relative)
    if not names:
        raise StoreError(
            "What is published must hold files", got=f"the empty folder {source}", fix="Fill it."
        )
    return sorted(names)


def _check_source_name(relative: str, path: Path) -> None:
    try:
        check_path(relative)
    except ValueError as err:
        raise StoreError(
            "Names in a bundle must be letters, digits, '_', '.' and '-' and not hidden",
            got=repr(str(path)),
            fix="Rename or remove the file.",
        ) from err
    if relative == MANIFEST:
        raise StoreError(
            f"What is published must not hold {MANIFEST} yet",
            got=str(path),
            fix="Publish the prepared folder.",
        )
    if path.suffix.lower() in _CODE_SUFFIXES:
        raise StoreError(
            "A bundle must hold data only (safetensors, ONNX, JSON, Parquet, text), no code or pickles",
            got=str(path),
            fix="Convert the file, or leave it out.",
        )


def _copy(source: Path, target: Path, task: Task) -> FileEntry:
    """Copy one file byte by byte (never a link), sync it, and return its size and hash."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with open(source, "rb") as reader, open(target, "xb") as writer:
        while piece := reader.read(_PIECE_BYTES):
            writer.write(piece)
            digest.update(piece)
            size += len(piece)
            task.advance(len(piece))
        writer.flush()
        _take_write_bits(writer.fileno())
        os.fsync(writer.fileno())
    return FileEntry(sha256=digest.hexdigest(), size=size)


def _take_write_bits(target: Path | int) -> None:
    """Leave of a mode that the umask made what is not a write bit."""
    mode = stat.S_IMODE(os.stat(target).st_mode)  # noqa: PTH116 (a descriptor, too)
    os.chmod(target, mode & ~0o222)  # noqa: PTH101


def _manifest(name: str, version: int, facts: Facts, files: dict[str, FileEntry]) -> Manifest:
    return Manifest(
        name=name, version=version, created=now(), textmill=__version__, files=files, **facts.model_dump()
    )


def _write_manifest(staging: Path, manifest: Manifest) -> None:
    with open(staging / MANIFEST, "xb") as writer:
        writer.write(manifest.to_bytes())
        writer.flush()
        _take_write_bits(writer.fileno())
        os.fsync(writer.fileno())
    fsync_folder(staging)


def _make_visible(folder: Path, staging: Path, version: int) -> None:
    """Rename the whole staged bundle: from then on the version is there."""
    final = folder / VERSIONS / str(version)
    staging.rename(final)
    _take_write_bits(final)  # only now: a folder without write permission cannot be moved
    fsync_folder(final.parent)
    fsync_folder(staging.parent)


def list_versions(folder: Path) -> list[int]:
    """Return the numbers of all versions in the store at `folder`, ascending."""
    try:
        entries = list(os.scandir(folder / VERSIONS))
    except FileNotFoundError:
        return []
    return sorted(
        int(each.name)
        for each in entries
        if each.name.isascii() and each.name.isdigit() and each.is_dir(follow_symlinks=False)
    )
