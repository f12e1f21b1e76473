"""The files behind a path of the project file: one file, a folder, or a URL that fsspec knows.

Promises: the files of a folder come sorted by name, hidden ones and those of other kinds are left
out; a name that is not there is an error with its nearest neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, BinaryIO, cast

from textmill.core.errors import DataError, nearest
from textmill.data.duplicates import shorten

SUFFIXES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather")
TEXT_KINDS = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class SourceFile:
    """One file of a source."""

    name: str
    """As in messages and ids: the file's own name, or the path inside its folder."""
    path: str
    kind: str
    """The suffix that tells how to read it, without `.gz`."""
    is_packed: bool
    """Whether it ends with `.gz`."""
    file_system: Any = None
    """The fsspec file system of a URL; None: a local file."""

    @property
    def size(self) -> int:
        """Bytes on the disk or at the URL."""
        if self.file_system is None:
            return Path(self.path).stat().st_size
        return int(self.file_system.size(self.path) or 0)

    def open(self) -> BinaryIO:
        """Open for reading bytes."""
        if self.file_system is None:
            return open(self.path, "rb")
        return cast("BinaryIO", self.file_system.open(self.path, "rb"))


def find_files(path: str, base: Path) -> list[SourceFile]:
    """Return the files behind a path, in the order in which they are read.

    Args:
        path: as in the project file; a relative path is taken from `base`.
        base: the folder of the project file.

    Raises:
        DataError: nothing is there, or nothing of a known kind.
    """
    place = place_of(path, base)
    if place.is_file():
        return [_source_file(place, place.name)]
    if not place.exists():
        siblings = sorted(file.name for file in place.parent.iterdir()) if place.parent.is_dir() else []
        raise DataError(
            "The data must be there",
            got=f"no file or folder {path!r} (looked for {place})",
            fix=nearest(place.name, siblings[:20])
            if siblings
            else f"The folder {place.parent} is missing too.",
        )
    found = sorted(
        file
        for file in place.rglob("*")
        if file.is_file()
        and kind_of(file)
        and not any(p.startswith((".", "_")) for p in file.relative_to(place).parts)
    )
    if not found:
        raise DataError(
            "A data folder must hold data files",
            got=f"none in {place}",
            fix=f"Put files there that end with {', '.join(SUFFIXES)}.",
        )
    return [_source_file(file, file.relative_to(place).as_posix()) for file in found]


def place_of(path: str, base: Path) -> Path:
    """Return where a path of the project file leads.

    Raises:
        DataError: the system refuses such a path.
    """
    try:
        place = Path(path).expanduser() if path.startswith("~") else base / path
        place.exists()
    except (OSError, RuntimeError, ValueError) as err:
        raise DataError(
            "The data must be there",
            got=f"{shorten(path)}, which is no path here ({getattr(err, 'strerror', None) or err})",
            fix="Check the path in the project file.",
        ) from err
    return place


def kind_of(file: PurePath) -> str | None:
    """Return the suffix that tells how to read a file, without `.gz`; None if none fits."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in SUFFIXES else None


def as_source_file(path: str, name: str, file_system: Any = None) -> SourceFile:
    """Return a file with its kind.

    Raises:
        DataError: it is of no known kind.
    """
    kind = kind_of(PurePosixPath(path) if file_system is not None else Path(path))
    if kind is None:
        raise DataError(
            "A data file must be of a known kind",
            got=f"{name}",
            fix=f"Known endings: {', '.join(SUFFIXES)}, and .gz after the text kinds.",
        )
    return SourceFile(name, path, kind, path.lower().endswith(".gz"), file_system)


def _source_file(file: Path, name: str) -> SourceFile:
    return as_source_file(str(file), name)
