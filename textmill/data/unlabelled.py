"""Texts to predict, in the order of their file.

Promises: one entry for each row, none dropped, none reordered, repeated texts and ids kept; the
texts are cleaned exactly as in training; a row without text has None and keeps its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from textmill.core.progress import SILENT, Progress
from textmill.data.clean import clean_text
from textmill.data.columns import texts_of
from textmill.data.config import DataConfig
from textmill.data.read import Rows, read_rows


@dataclass(frozen=True)
class Unlabelled:
    """N rows of a file to predict on."""

    rows: Rows
    """All columns as given, to be written beside the predictions."""
    ids: list[str]
    """N ids: the user's as they stand in the file, or `<file>:<row number>`."""
    texts: list[str | None]
    """N cleaned texts, None where there is none."""


def read_unlabelled(path: str, config: DataConfig, base: Path, progress: Progress = SILENT) -> Unlabelled:
    """Read the texts of a file; it needs the project's text column (and id column, if set), no labels.

    Args:
        path: as `data.train` in the project file.
        config: the `[data]` table that the model was trained with.
        base: the folder that a relative path starts from.
        progress: is told what had to be guessed.

    Raises:
        DataError: a missing file or column, a value that is no text, a row that cannot be read.
    """
    rows = read_rows(path, base, separator=config.separator, encoding=config.encoding, progress=progress)
    if config.id is None:
        ids = [rows.origin(index) for index in range(len(rows))]
    else:
        ids = ["" if value is None else str(value) for value in rows.column(config.id, "data.id")]
    given = texts_of(rows, config.text)
    cleaned = [None if text is None else clean_text(text, config.clean) for text in given]
    return Unlabelled(rows, ids, [text if text and text.strip() else None for text in cleaned])
