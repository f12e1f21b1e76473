"""Rows of a file as they stand, for a finished model: texts to predict, labelled rows to measure by.

Promises: nothing is split, reordered or dropped as a duplicate; texts are cleaned and labels tidied
exactly as in training; a file without the project's id column gets `<file>:<row number>` as ids.
To predict on, only a missing text is none: null, or the empty cell of a csv or tsv. A text that is empty
or blank is a text, which a model answers in a file as it does behind a server. Among labelled rows it is left
out, as in training.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from textmill.core.errors import DataError
from textmill.core.progress import SILENT, Progress
from textmill.core.types import Example, Task, Text
from textmill.data.clean import clean_text, join_surrogates
from textmill.data.columns import label_name, row_ids, texts_of
from textmill.data.config import CleanConfig, DataConfig
from textmill.data.label_sets import label_set, label_spellings
from textmill.data.labels import tidy_label
from textmill.data.read import Rows, read_rows


@dataclass(frozen=True)
class Unlabelled:
    """N rows of a file to predict on."""

    rows: Rows
    """All columns as given, to be written beside the predictions."""
    ids: list[str]
    """N ids, repeated ones too: the user's as they stand in the file, or `<file>:<row number>`."""
    texts: list[Text | None]
    """N cleaned texts or pairs of texts, None where it is missing (or one of a pair is)."""


def load_unlabelled(path: str, config: DataConfig, base: Path, progress: Progress = SILENT) -> Unlabelled:
    """Return the texts of a file in its order, one entry for each row; no label column is needed.

    Args:
        path: as `data.train` in the project file.
        config: the `[data]` table that the model was trained with.
        base: the folder that a relative path starts from.
        progress: is told what had to be guessed.

    Raises:
        DataError: a missing file or text column, a value that is no text, a row that cannot be read.
    """
    rows = read_rows(path, base, separator=config.separator, encoding=config.encoding, progress=progress)
    if config.id is not None and config.id in rows.columns:
        ids = ["" if value is None else join_surrogates(str(value)) for value in rows.columns[config.id]]
    else:
        ids = row_ids(rows, None)
    return Unlabelled(rows, ids, _cleaned(rows, config, keep_empty=True))


def load_labelled(
    path: str,
    config: DataConfig,
    base: Path,
    progress: Progress = SILENT,
    *,
    task: Task = "classification",
) -> list[Example]:
    """Return the labelled rows of a file in its order; rows without text or label are left out and said.

    Args:
        path: as `data.train` in the project file.
        config: the `[data]` table that the model was trained with.
        base: the folder that a relative path starts from.
        progress: is told what had to be guessed and what was left out.
        task: says how the label column is read.

    Raises:
        DataError: a missing file or column, a value that does not fit, an id twice, or no labelled row.
    """
    rows = read_rows(path, base, separator=config.separator, encoding=config.encoding, progress=progress)
    ids = row_ids(rows, config.id if config.id in rows.columns else None)
    texts = _cleaned(rows, config, keep_empty=False)
    names = _label_sets(rows, config) if task == "multilabel" else _single_labels(rows, config)
    examples = [
        Example(row_id, text, labels)
        for row_id, text, labels in zip(ids, texts, names, strict=True)
        if text is not None and labels is not None
    ]
    if not examples:
        raise DataError(
            "There must be at least one row with text and label",
            got=f"none among {len(rows)} rows of {path}",
            fix="Check data.text and data.label.",
        )
    if len(examples) < len(rows):
        progress.say(f"{path}: {len(rows) - len(examples)} rows without text or label are left out")
    return examples


def _single_labels(rows: Rows, config: DataConfig) -> list[tuple[str, ...] | None]:
    spellings = [
        label_name(value, rows, index) for index, value in enumerate(rows.column(config.label, "data.label"))
    ]
    return [(tidy_label(each),) if each is not None and tidy_label(each) else None for each in spellings]


def _label_sets(rows: Rows, config: DataConfig) -> list[tuple[str, ...] | None]:
    values = enumerate(rows.column(config.label, "data.label"))
    found = [label_spellings(value, config.label_separator, rows, index) for index, value in values]
    return [None if spellings is None else label_set(spellings) for spellings in found]


def _cleaned(rows: Rows, config: DataConfig, *, keep_empty: bool) -> list[Text | None]:
    first = _cleaned_column(rows, config.text, "data.text", config.clean, keep_empty)
    if config.text_pair is None:
        return list(first)
    second = _cleaned_column(rows, config.text_pair, "data.text_pair", config.clean, keep_empty)
    pairs = zip(first, second, strict=True)
    return [None if one is None or other is None else (one, other) for one, other in pairs]


def _cleaned_column(
    rows: Rows, column: str, key: str, config: CleanConfig, keep_empty: bool
) -> list[str | None]:
    texts = texts_of(rows, column, key)
    if keep_empty:
        return [
            None if text is None or (not text and _is_cell(file)) else clean_text(text, config)
            for text, file in zip(texts, rows.files, strict=True)
        ]
    cleaned = [None if text is None else clean_text(text, config) for text in texts]
    return [text if text and text.strip() else None for text in cleaned]


def _is_cell(file: str) -> bool:
    """Return whether a file has cells, which cannot tell an empty text from none."""
    return file.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".tab"))
