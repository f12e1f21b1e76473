"""Rows through the `datasets` library: names on a hub, and folders that it saved.

Promises: class numbers become class names; no library is imported until a project asks for it.
What is not covered: configurations of a dataset, streaming; values are as the library gives them
(its csv reader takes NA and null for missing; give the file's own path to keep them).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets

from textmill.core.errors import DataError, nearest

_DEFAULT_SPLIT = "train"


def read_hub(name: str, base: Path) -> tuple[str, dict[str, list[Any]], tuple[str, ...]]:
    """Return name, columns and notes of `<dataset>[:split]`; a local folder is taken before the hub.

    Raises:
        DataError: the dataset or the split is not there or cannot be reached.
    """
    path, _, split = name.partition(":")
    local = base / path
    if (local / "dataset_dict.json").exists() or (local / "dataset_info.json").exists():
        return read_saved(local, split or None)
    try:
        loaded = datasets.load_dataset(str(local) if local.is_dir() else path)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as err:
        raise DataError(
            f"The dataset hf:{path} must be reachable",
            got=f"{type(err).__name__}: {_first_line(err)}",
            fix="Check its name and the network, or download it and give its folder.",
        ) from err
    return _columns(loaded, path, split or None)


def read_saved(folder: Path, split: str | None = None) -> tuple[str, dict[str, list[Any]], tuple[str, ...]]:
    """Return name, columns and notes of a folder written by `save_to_disk`.

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
    return _columns(loaded, folder.name, split)


def _columns(loaded: Any, name: str, split: str | None) -> tuple[str, dict[str, list[Any]], tuple[str, ...]]:
    if isinstance(loaded, datasets.DatasetDict):
        wanted = split or (_DEFAULT_SPLIT if _DEFAULT_SPLIT in loaded else next(iter(loaded)))
        if wanted not in loaded:
            raise DataError(
                f"The dataset {name} must have the split {wanted!r}",
                got="one without it",
                fix=nearest(wanted, loaded),
            )
        name, loaded = f"{name}:{wanted}", loaded[wanted]
    columns: dict[str, list[Any]] = {}
    for column, feature in loaded.features.items():
        values = list(loaded[column])
        if isinstance(feature, datasets.ClassLabel):
            values = [None if value is None or value < 0 else feature.int2str(int(value)) for value in values]
        columns[column] = values
    return name, columns, ()


def _first_line(err: Exception) -> str:
    return (str(err).splitlines() or [repr(err)])[0][:200]
