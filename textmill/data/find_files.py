"""The files behind a path of the project file: one file, a folder, or a URL that fsspec knows.

Promises: the files of a folder come sorted by name, links to folders are followed; hidden ones and those
of other kinds are left out, the latter not without a word; a link that leads nowhere and a folder that
cannot be entered are errors; a name that is not there is an error with its nearest neighbour.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
    found = [file for file in _seen(place) if kind_of(file)]
    for file in found:
        if not file.is_file():
            raise DataError(
                "A data folder must hold files that are there",
                got=f"the link {file}, which leads to {os.path.realpath(file)}",
                fix="Mend or remove the link.",
            )
    if not found:
        raise DataError(
            "A data folder must hold data files",
            got=f"none in {place}",
            fix=f"Put files there that end with {', '.join(SUFFIXES)}.",
        )
    return [_source_file(file, file.relative_to(place).as_posix()) for file in found]


def others_in(path: str, base: Path) -> str | None:
    """Return a sentence on the files of a data folder that are of no known kind; None if there are none.

    Args:
        path: as in the project file.
        base: the folder of the project file.
    """
    place = place_of(path, base)
    if not place.is_dir():
        return None
    return others_among(
        path, [file.relative_to(place).as_posix() for file in _seen(place) if not kind_of(file)]
    )


def others_among(path: str, others: Sequence[str]) -> str | None:
    """Return a sentence on files of no known kind; None if there are none.

    Args:
        path: of the folder, as in the project file.
        others: names of such files in it.
    """
    if not others:
        return None
    return f"{path}: {len(others)} files of other kinds are left out ({', '.join(others[:5])})"


def refuse_own_folder(path: str, base: Path) -> None:
    """Raise where the project's own files (cache, runs, store) would be read as data.

    Args:
        path: as in the project file.
        base: the folder of the project file.

    Raises:
        DataError: the path is that folder, or one above it.
    """
    place, own = place_of(path, base).resolve(), base.resolve()
    if place.is_dir() and (place == own or place in own.parents):
        raise DataError(
            "Data must lie in a folder of its own",
            got=f"{path!r}, the folder of the project itself, where textmill keeps its cache and runs"
            if place == own
            else f"{path!r}, which holds the folder of the project with its cache and runs",
            fix="Name the file, or move the data into a folder beside the project file.",
        )


def _seen(place: Path) -> Iterator[Path]:
    """Yield the files below a folder sorted by path, links to folders included, but no hidden ones.

    Raises:
        DataError: a folder that cannot be entered.
    """

    def stop(err: OSError) -> None:
        raise DataError(
            "A data folder must be readable",
            got=f"{err.strerror!r} for {err.filename}",
            fix="Check its rights.",
        ) from err

    found: list[Path] = []
    above: dict[str, frozenset[str]] = {}
    for folder, folders, files in os.walk(str(place), onerror=stop, followlinks=True):
        here = above.get(folder, frozenset()) | {os.path.realpath(folder)}
        # A link to a folder above would go on for ever.
        folders[:] = [
            name
            for name in folders
            if not name.startswith((".", "_")) and os.path.realpath(f"{folder}/{name}") not in here
        ]
        above.update({f"{folder}/{name}": here for name in folders})
        found += [Path(folder, name) for name in files if not name.startswith((".", "_"))]
    yield from sorted(found)


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
