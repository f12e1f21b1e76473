"""Files that others read: written to a temporary name, synced, renamed.

Promises: a reader sees the old file or the whole new one, never a part, also after a power cut;
file modes are those the umask allows; a full or read-only disk is a `StoreError` that names the
path, and what was there before is still there.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from textmill.core.errors import StoreError

_DISK_FAULTS = {
    errno.ENOSPC: ("There must be room on the disk", "Free some space and run the same command again."),
    errno.EDQUOT: ("The disk quota must not be used up", "Free some space and run the same command again."),
    errno.EROFS: ("The file system must be writable", "Choose another folder or remount it."),
    errno.EACCES: ("The folder must be accessible", "Change its permissions or choose another folder."),
    errno.EPERM: ("The folder must be accessible", "Change its permissions or choose another folder."),
    errno.ENOTDIR: ("A folder must stand there", "Move the file away or choose another folder."),
    errno.EEXIST: ("A folder must stand there", "Move the file away or choose another folder."),
    errno.EISDIR: ("A file must stand there", "Move the folder away or choose another name."),
    errno.ENAMETOOLONG: ("A path must not be too long", "Choose a shorter name."),
    errno.EFBIG: ("A file must stay below the size limit", "Raise the limit (ulimit -f) and run again."),
}


@contextlib.contextmanager
def disk_faults(path: Path) -> Iterator[None]:
    """Turn a full, read-only or forbidden disk under `path` into a `StoreError`."""
    try:
        yield
    except Exception as err:
        number = _os_error_number(err)
        if number not in _DISK_FAULTS:
            raise
        rule, fix = _DISK_FAULTS[number]
        where = getattr(err, "filename2", None) or getattr(err, "filename", None) or path
        raise StoreError(rule, got=f"{os.strerror(number)!r} at {where}", fix=fix) from err


def _os_error_number(err: Exception) -> int:
    if isinstance(err, OSError) and err.errno:
        return err.errno
    # NumPy tells a short write in words only; a disk that took a part has no room for the rest.
    if isinstance(err, OSError) and re.search(r"\d+ requested and \d+ written", str(err)):
        return errno.ENOSPC
    # Libraries in Rust (safetensors) raise errors of their own that end with "(os error 28)".
    found = re.search(r"\(os error (\d+)\)", str(err))
    return int(found[1]) if found else 0


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write a whole file so that readers see the old one or the new one.

    Raises:
        StoreError: the disk is full, read-only or forbidden; the old file is untouched.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    with disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        fsync_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON, atomically; NaN is refused (it is no JSON)."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_atomic(path, text + "\n")


def append_line(path: Path, line: str) -> None:
    """Append one line and sync it.

    After a power cut or on a full disk the file may end in a part of the line; readers drop a tail
    without a line break.

    Raises:
        StoreError: the disk is full, read-only or forbidden.
    """
    assert "\n" not in line, "a journal line must not contain a line break"
    with disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            data = memoryview((line + "\n").encode())
            while data:  # a write is short when the disk is nearly full; the next one then says so
                data = data[os.write(handle, data) :]
            os.fsync(handle)
        finally:
            os.close(handle)


def fsync_folder(path: Path) -> None:
    """Sync a folder's entries, so that a rename inside it survives a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def fsync_tree(root: Path) -> None:
    """Sync every file and folder below `root`."""
    for folder, _, names in os.walk(root):
        for name in names:
            handle = os.open(Path(folder) / name, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        fsync_folder(Path(folder))


def sha256_file(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_tree(path: Path) -> None:
    """Remove a folder, also one made read-only; it is renamed first, so that no reader sees a part."""
    if not path.exists():
        return
    doomed = path.with_name(f".removed-{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    path.chmod(path.stat().st_mode | 0o700)
    path.rename(doomed)
    for folder, _, _ in os.walk(doomed):
        Path(folder).chmod(Path(folder).stat().st_mode | 0o700)
    shutil.rmtree(doomed)
