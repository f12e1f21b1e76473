"""A bundle: one immutable version of a model, a folder whose manifest names and hashes every file.

Promises: `Bundle.verify` passes only if each file is there, is a plain file inside the folder, has its
size and its hash, and nothing else is there; each fault is a `StoreError` that names the file; a file that
may not be read is told as such, not as damaged.
What is not covered: whether the model answers well (`serve/gate.py`) or at all (`runtime/golden.py`).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from textmill.core.errors import StoreError
from textmill.core.files import sha256_file
from textmill.core.progress import SILENT, Progress
from textmill.store.manifest import MANIFEST, Manifest, parse_manifest

_AGAIN = "Publish the version again, or copy the whole bundle again."


@dataclass(frozen=True, slots=True)
class Bundle:
    """One version in a store, by its folder and its manifest."""

    path: Path
    """The folder."""
    manifest: Manifest
    """What the folder must hold."""

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.manifest.version

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """Read the manifest of the bundle at `path`; the other files are not looked at.

        Raises:
            StoreError: no bundle there, a manifest that may not be read, or a damaged one.
        """
        file = path / MANIFEST
        if not path.is_dir():
            raise StoreError(
                "A bundle must be a folder", got=str(path), fix="`textmill store list` shows all versions."
            )
        if file.is_symlink():
            raise StoreError("A bundle must hold no links", got=str(file), fix=_AGAIN)
        try:
            content = file.read_bytes()
        except FileNotFoundError as err:
            raise StoreError(
                f"A bundle must hold {MANIFEST}",
                got=f"{path} without it: a copy that has not ended, or another kind of folder",
                fix="Wait for the copy to end, or publish the version again.",
            ) from err
        except OSError as err:
            raise _unreadable(file, err) from err
        return cls(path, parse_manifest(content, str(file)))

    def file(self, name: str) -> Path:
        """Return the path of one file of the bundle.

        Raises:
            StoreError: the manifest knows no such file.
        """
        if name not in self.manifest.files:
            raise StoreError(
                f"Version {self.version} of {self.manifest.name} must hold {name}",
                got=f"a bundle of {', '.join(sorted(self.manifest.files))}",
                fix="Publish the version again with this file.",
            )
        return self.path / name

    def verify(self, progress: Progress = SILENT) -> None:
        """Check every file against the manifest; return only if the bundle is whole and unchanged.

        Raises:
            StoreError: a file that is missing, extra, a link, unreadable, or of another size or hash.
        """
        if Bundle.open(self.path).manifest != self.manifest:
            raise StoreError(
                f"{self.path / MANIFEST} must not change",
                got="another manifest than was read first",
                fix=_AGAIN,
            )
        found = _list_files(self.path)
        known = set(self.manifest.files) | {MANIFEST}
        for missing in sorted(known - found):
            raise StoreError(
                f"A bundle must hold all its files ({missing})", got=f"{self.path} without it", fix=_AGAIN
            )
        for extra in sorted(found - known):
            raise StoreError(
                f"A bundle must hold no file that its manifest does not name ({extra})",
                got=str(self.path / extra),
                fix="Remove the file, or publish the folder as a new version.",
            )
        with progress.task("verify", self.manifest.size_bytes) as task:
            for name in sorted(self.manifest.files):
                self._verify_file(name)
                task.advance(self.manifest.files[name].size)

    def _verify_file(self, name: str) -> None:
        path, entry = self.path / name, self.manifest.files[name]
        try:
            size = path.stat().st_size
            if size != entry.size:
                raise StoreError(f"{path} must have {entry.size:,} bytes", got=f"{size:,} bytes", fix=_AGAIN)
            digest = sha256_file(path)
        except OSError as err:
            raise _unreadable(path, err) from err
        if digest != entry.sha256:
            raise StoreError(f"{path} must have the SHA-256 {entry.sha256}", got=digest, fix=_AGAIN)


def _list_files(root: Path) -> set[str]:
    """Return the paths of all files below `root`; a link or a device is an error."""
    found = set()
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = [(entry, entry.stat(follow_symlinks=False).st_mode) for entry in os.scandir(folder)]
        except OSError as err:
            raise _unreadable(folder, err) from err
        for entry, mode in entries:
            if stat.S_ISDIR(mode):
                folders.append(Path(entry.path))
            elif stat.S_ISREG(mode):
                found.add(Path(entry.path).relative_to(root).as_posix())
            else:
                kind = "a link" if stat.S_ISLNK(mode) else "a special file"
                raise StoreError(
                    "A bundle must hold plain files only", got=f"{kind} at {entry.path}", fix=_AGAIN
                )
    return found


def _unreadable(path: Path, err: OSError) -> StoreError:
    if isinstance(err, PermissionError):
        return StoreError(
            f"{path} must be readable",
            got=f"no permission for user {os.geteuid()} (mode {_mode(path)})",
            fix="Give this user read permission, or publish under another umask.",
        )
    return StoreError(
        f"{path} must be readable", got=f"{err.strerror!r}", fix="Check the disk under the store."
    )


def _mode(path: Path) -> str:
    try:
        return f"{stat.S_IMODE(path.stat().st_mode):o}"
    except OSError:
        return "unknown"
