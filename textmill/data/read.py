"""Rows from files: csv, tsv, jsonl, parquet, arrow, and folders of these.

Promises: in csv and tsv every value is a string and only the empty cell is missing (NA, null and
None are values); a tsv has no quoting; rows keep the order of the file, and of the sorted file
names in a folder; what had to be guessed (encoding, separator) is said and kept in `notes`; a row
that does not fit is an error with file and row.

What is not covered: data larger than memory (files are read whole).
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from textmill.core.errors import DataError, nearest
from textmill.core.progress import SILENT, Progress
from textmill.data.encoding import decode
from textmill.data.read_csv import read_csv, refuse_repeated_names

SUFFIXES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather")
_HUB = "hf:"


@dataclass(frozen=True)
class Rows:
    """Columns as they stand in the files; values are strings, numbers, None or nested values."""

    columns: dict[str, list[Any]]
    """Column name -> N values."""
    files: list[str]
    """N file names (inside a folder: relative to it)."""
    row_number: list[int]
    """N numbers, counted from 1 in each file without the header."""
    notes: tuple[str, ...] = ()
    """What had to be guessed."""

    def __len__(self) -> int:
        return len(self.row_number)

    def origin(self, index: int) -> str:
        """Return `<file>:<row number>` of the row at `index`."""
        return f"{self.files[index]}:{self.row_number[index]}"

    def column(self, name: str, key: str) -> list[Any]:
        """Return the N values of a column.

        Args:
            name: the column.
            key: the setting that named it (`data.text`), for the message.

        Raises:
            DataError: there is no such column; the nearest is named.
        """
        if name not in self.columns:
            where = ", ".join(sorted(set(self.files))[:3])
            raise DataError(
                f"The column {name!r} ({key}) must be in the data",
                got=f"other columns in {where}" if where else "other columns",
                fix=nearest(name, self.columns) + _one_column_hint(self.columns),
            )
        return self.columns[name]


def read_rows(
    path: str,
    base: Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    progress: Progress = SILENT,
) -> Rows:
    """Read all rows behind a path, a folder or an `hf:` name.

    Args:
        path: as in the project file; a relative path is taken from `base`.
        base: the folder of the project file.
        separator: between the columns of csv and tsv; None finds it by the header line.
        encoding: of csv, tsv and jsonl; None finds it.
        progress: is told what had to be guessed.

    Raises:
        DataError: nothing there, not readable, or no rows.
    """
    if path.startswith(_HUB):
        from textmill.data.read_hub import read_hub

        return _as_rows([read_hub(path.removeprefix(_HUB), base)])
    place = _place_of(path, base)
    if place.is_dir() and (place / "dataset_info.json").exists():
        from textmill.data.read_hub import read_saved

        return _as_rows([read_saved(place)])
    parts = [_read_file(file, name, separator, encoding) for file, name in _files_at(place, path)]
    rows = _as_rows(parts)
    for note in rows.notes:
        progress.say(note)
    if not len(rows):
        raise DataError(
            "There must be at least one row of data",
            got=f"{path} with a header only" if rows.columns else f"the empty file {path}",
            fix="Check that the file was written completely.",
        )
    return rows


def _place_of(path: str, base: Path) -> Path:
    """Return where a path of the project file leads; one that the system refuses is not there."""
    try:
        place = Path(path).expanduser() if path.startswith("~") else base / path
        place.exists()
    except (OSError, RuntimeError, ValueError) as err:
        raise DataError(
            "The data must be there",
            got=f"{_shown(path)}, which is no path here ({getattr(err, 'strerror', None) or err})",
            fix="Check the path in the project file.",
        ) from err
    return place


Part = tuple[str, dict[str, list[Any]], tuple[str, ...]]
"""Name of a file, its columns, its notes."""


def _as_rows(parts: Sequence[Part]) -> Rows:
    names = list(dict.fromkeys(name for _, columns, _ in parts for name in columns))
    merged: dict[str, list[Any]] = {name: [] for name in names}
    files: list[str] = []
    numbers: list[int] = []
    notes: list[str] = []
    first_file, first = next(((file, columns) for file, columns, _ in parts if columns), ("", {}))
    for file, columns, said in parts:
        num = len(next(iter(columns.values()), []))
        if columns and set(columns) != set(first):
            odd = sorted(set(columns) ^ set(first))
            raise DataError(
                "All files of a folder must have the same columns",
                got=f"{', '.join(map(repr, odd))} in only one of {first_file} and {file}",
                fix="Rename or add the columns, or move one of the files away.",
            )
        for name in names:
            merged[name].extend(columns.get(name, []))
        files.extend([file] * num)
        numbers.extend(range(1, num + 1))
        notes.extend(said)
    return Rows(merged, files, numbers, tuple(notes))


def _files_at(place: Path, shown: str) -> Iterator[tuple[Path, str]]:
    if place.is_file():
        yield place, place.name
        return
    if not place.exists():
        siblings = sorted(file.name for file in place.parent.iterdir()) if place.parent.is_dir() else []
        raise DataError(
            "The data must be there",
            got=f"no file or folder {shown!r} (looked for {place})",
            fix=nearest(place.name, siblings[:20])
            if siblings
            else f"The folder {place.parent} is missing too.",
        )
    found = sorted(
        file
        for file in place.rglob("*")
        if file.is_file()
        and _kind(file)
        and not any(p.startswith((".", "_")) for p in file.relative_to(place).parts)
    )
    if not found:
        raise DataError(
            "A data folder must hold data files",
            got=f"none in {place}",
            fix=f"Put files there that end with {', '.join(SUFFIXES)}.",
        )
    for file in found:
        yield file, file.relative_to(place).as_posix()


def _kind(file: PurePath) -> str | None:
    """Return the suffix that tells how to read a file, without `.gz`; None if none fits."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in SUFFIXES else None


def _read_file(file: Path, name: str, separator: str | None, encoding: str | None) -> Part:
    kind = _kind(file)
    if kind is None:
        raise DataError(
            "A data file must be of a known kind",
            got=f"{name}",
            fix=f"Known endings: {', '.join(SUFFIXES)}, and .gz after the text kinds.",
        )
    try:
        if kind in (".parquet", ".arrow", ".feather"):
            return name, _read_table(file, kind), ()
        raw = file.read_bytes()
        if file.suffix.lower() == ".gz":
            raw = gzip.decompress(raw)
    except (pa.ArrowException, EOFError, zlib.error, gzip.BadGzipFile) as err:
        raise DataError(
            f"{name} must be a whole {file.suffix} file",
            got=f"a file that cannot be read ({err})",
            fix="It may be half-copied; copy or write it again.",
        ) from err
    except OSError as err:
        raise DataError(
            "The data file must be readable", got=f"{err.strerror!r} for {file}", fix="Check its permissions."
        ) from err
    decoded = decode(raw, name, encoding)
    notes = () if decoded.note is None else (decoded.note,)
    if kind in (".jsonl", ".ndjson"):
        return name, _read_jsonl(decoded.text, name), notes
    columns, said = read_csv(decoded.text, name, separator=separator, is_tsv=kind in (".tsv", ".tab"))
    return name, columns, notes + said


def _read_table(file: Path, kind: str) -> dict[str, list[Any]]:
    if kind == ".parquet":
        table = pq.ParquetFile(file).read()
    else:
        with pa.memory_map(str(file)) as source:
            try:
                table = pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                table = pa.ipc.open_stream(source).read_all()
    refuse_repeated_names(table.column_names, file.name)
    columns: dict[str, list[Any]] = {}
    for column, values in zip(table.column_names, table.columns, strict=True):
        try:
            columns[column] = values.to_pylist()
        except (OverflowError, ValueError):
            # A time that Python cannot hold: as Arrow shows it; another column may be what counts.
            columns[column] = values.cast(pa.string()).to_pylist()
    for column, names in _class_names(table.schema).items():
        if column in columns:
            columns[column] = [names.get(value, value) for value in columns[column]]
    return columns


def _class_names(schema: pa.Schema) -> dict[str, dict[Any, str]]:
    """Return number -> class name for the columns that the `datasets` library stored as class numbers."""
    stored = (schema.metadata or {}).get(b"huggingface")
    if stored is None:
        return {}
    features = json.loads(stored).get("info", {}).get("features", {})
    return {
        column: dict(enumerate(feature["names"]))
        for column, feature in features.items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and feature.get("names")
    }


def _read_jsonl(text: str, name: str) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    num = 0
    for line_number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as err:  # also an integer too long for Python
            raise DataError(
                f"Each line of {name} must be one JSON object",
                got=f"{_shown(line)} in line {line_number} ({err})",
                fix="Repair or remove that line.",
            ) from err
        if not isinstance(row, dict):
            raise DataError(
                f"Each line of {name} must be one JSON object",
                got=f"{_shown(line)} in line {line_number}",
                fix='Write each row as {"text": ..., "label": ...}.',
            )
        for key in row:
            if key not in columns:
                columns[key] = [None] * num
        num += 1
        for key, values in columns.items():
            values.append(row.get(key))
    return columns


def _one_column_hint(columns: dict[str, list[Any]]) -> str:
    if len(columns) != 1:
        return ""
    only = next(iter(columns))
    guess = next((mark for mark in ";\t|," if mark in only), None)
    return f" The file has one column; looks like {guess!r}, set data.separator." if guess else ""


def _shown(line: str, limit: int = 60) -> str:
    shown = repr(line)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
