"""Rows through the `datasets` library: names on a hub, and folders that it saved.

Promises: class numbers become class names; no library is imported until a project asks for it.
What is not covered: configurations of a dataset; values are as the library gives them
(its csv reader takes NA and null for missing; give the file's own path to keep them).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from textmill.core.errors import DataError, nearest
from textmill.data.rows import Chunk, Position, Rows

_DEFAULT_SPLIT = "train"


_CHUNK_ROWS = 4096


def hub_chunks(name: str, base: Path, start: Position | None) -> Iterator[Chunk]:
    """Yield the rows of `<dataset>[:split]`; a local folder is taken before the hub.

    Raises:
        DataError: the dataset or the split is not there or cannot be reached.
    """
    path, _, split = name.partition(":")
    local = base / path
    if (local / "dataset_dict.json").exists() or (local / "dataset_info.json").exists():
        yield from saved_chunks(local, start, split or None)
        return
    try:
        loaded = datasets.load_dataset(str(local) if local.is_dir() else path)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as err:
        raise DataError(
            f"The dataset hf:{path} must be reachable",
            got=f"{type(err).__name__}: {_first_line(err)}",
            fix="Check its name and the network, or download it and give its folder.",
        ) from err
    yield from _chunks(loaded, path, split or None, start)


def saved_chunks(folder: Path, start: Position | None, split: str | None = None) -> Iterator[Chunk]:
    """Yield the rows of a folder written by `save_to_disk`.

    Raises:
        DataError: the folder is damaged or has no such split.
    """
    try:
        loaded = datasets.load_from_disk(str(folder))
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise DataError(
            "A saved dataset must be whole",
            got=f"{folder}: {_first_line(err)}",
            fix="Save or copy it again.",
        ) from err
    yield from _chunks(loaded, folder.name, split, start)


def _chunks(loaded: Any, name: str, split: str | None, start: Position | None) -> Iterator[Chunk]:
    if isinstance(loaded, datasets.DatasetDict):
        wanted = split or (_DEFAULT_SPLIT if _DEFAULT_SPLIT in loaded else next(iter(loaded)))
        if wanted not in loaded:
            raise DataError(
                f"The dataset {name} must have the split {wanted!r}",
                got="one without it",
                fix=nearest(wanted, loaded),
            )
        name, loaded = f"{name}:{wanted}", loaded[wanted]
    begin = start.row if start else 0
    for first in range(begin, max(len(loaded), begin + 1), _CHUNK_ROWS):
        part = loaded[first : first + _CHUNK_ROWS]
        columns = {column: class_values(part[column], feature) for column, feature in loaded.features.items()}
        num = len(next(iter(columns.values()), []))
        rows = Rows(columns, [name] * num, list(range(first + 1, first + num + 1)))
        yield Chunk(rows, Position(name, first + num))


def class_values(values: list[Any], feature: Any) -> list[Any]:
    """Return the values of a column with class numbers as class names, None where there is none."""
    if not isinstance(feature, datasets.ClassLabel):
        return values
    return [None if value is None or value < 0 else feature.int2str(int(value)) for value in values]


def _first_line(err: Exception) -> str:
    return (str(err).splitlines() or [repr(err)])[0][:200]
