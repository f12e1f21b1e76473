"""Debian packages through the user's own apt-get: downloaded, never installed, and read without dpkg.

Format of a .deb: an `ar` archive with one `data.tar` in it, by deb(5).
What is not covered: systems without apt-get; there the file must be brought by hand (the message
says which).
"""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

from textmill.core.errors import DataError
from textmill.data.get.tool import run_tool

_MAGIC = b"!<arch>\n"
_HEADER = 60
_MAX_BYTES = 50_000_000


def apt_download(name: str, version: str, folder: Path) -> Path:
    """Fetch one Debian package into an empty folder and return its .deb.

    Raises:
        DataError: no apt-get on this system, or it does not have this version.
    """
    apt = shutil.which("apt-get")
    if apt is None:
        raise DataError(
            "Fetching this data set needs apt-get (Debian, Ubuntu and their kin)",
            got="a system without it",
            fix=f"Fetch the package {name} {version} on such a system, or choose another data set.",
        )
    complaint = run_tool([apt, "download", f"{name}={version}"], folder)
    found = sorted(folder.glob("*.deb"))
    if complaint or not found:
        raise DataError(
            f"apt-get must be able to fetch {name} {version} (Debian 12 has it)",
            got=f"its failure: {complaint or 'no file came'}",
            fix="Run: apt-get update; and see what is offered: apt-cache policy " + name,
        )
    return found[0]


def read_deb(content: bytes, under: str) -> dict[str, bytes]:
    """Return the regular files of a .deb below a folder, by their path relative to it.

    Args:
        content: the package.
        under: for example `usr/share/games/fortunes/`.

    Raises:
        DataError: the file is no whole .deb, or packed in a way that Python cannot read.
    """
    name, packed = _data_member(content)
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:*") as tar:
            found = {}
            for entry in tar:
                path = entry.name.removeprefix("./")
                if entry.isfile() and path.startswith(under) and entry.size <= _MAX_BYTES:
                    file = tar.extractfile(entry)
                    assert file is not None, "a regular file can be read"
                    found[path.removeprefix(under)] = file.read()
            return found
    except (tarfile.TarError, EOFError, OSError) as err:
        raise DataError(
            "A Debian package's files must be readable (tar, gz, xz)",
            got=f"{name} ({err})",
            fix="Run the command again; where it is data.tar.zst, fetch the package from Debian 12.",
        ) from err


def _data_member(content: bytes) -> tuple[str, bytes]:
    place = len(_MAGIC)
    while content.startswith(_MAGIC) and place + _HEADER <= len(content):
        header = content[place : place + _HEADER]
        name = header[:16].decode("ascii", "replace").strip().rstrip("/")
        size = header[48:58].strip()
        if not size.isdigit():
            break
        begin = place + _HEADER
        if begin + int(size) > len(content):
            break
        if name.startswith("data.tar"):
            return name, content[begin : begin + int(size)]
        place = begin + int(size) + int(size) % 2
    raise DataError(
        "The downloaded package must be a whole .deb",
        got="a part of one, or another file",
        fix="Run it again.",
    )
