"""The `[data]` table of a project: where the text is and what is done to it before training."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from textmill.core.config import Config


class CleanConfig(Config):
    """What is repaired in every text, in training and in serving alike."""

    entities: bool = True
    """Turn HTML entities that end with a semicolon (`&amp;`, `&#39;`) into their characters."""
    mojibake: bool = True
    """Repair text that was decoded with the wrong encoding (`Ã©` becomes `é`), by ftfy's careful rules."""
    control: bool = True
    """Remove control characters, soft hyphens, direction marks, and joiners that no script or emoji needs."""
    unicode: bool = True
    """Bring characters to their composed form (Unicode NFC)."""
    blanks: bool = True
    """Make one blank (or one line break) of each run of white space, and none at the ends."""


class DataConfig(Config):
    """Where labelled text comes from and how it is split."""

    train: str
    """A csv, tsv, jsonl (all also .gz), parquet or arrow file, a folder of them, or hf:<dataset>[:split]."""
    valid: str | None = None
    """Rows to choose the best weights by, as for `train`; absent: a share of the training rows."""
    test: str | None = None
    """Rows for the final figures, as for `train`; absent: a share of the training rows."""
    text: str = "text"
    """The column with the text."""
    text_pair: str | None = None
    """The column with the second text of a pair (task = "pairs")."""
    label: str = "label"
    """The column with the class, or with the list of classes (task = "multilabel")."""
    label_separator: str = Field(default=",", min_length=1)
    """What stands between the classes of a row where they are written as one text (task = "multilabel")."""
    id: str | None = None
    """The column with the row's id; absent: file name and row number."""
    separator: str | None = Field(default=None, min_length=1, max_length=1)
    """The character between the columns of a csv or tsv; absent: found by the header line."""
    encoding: str | None = None
    """The encoding of csv, tsv and jsonl; absent: UTF-8, else guessed and said."""
    valid_share: float = Field(default=0.1, gt=0.0, lt=1.0)
    """The share of rows for validation where no `valid` is given."""
    test_share: float = Field(default=0.1, gt=0.0, lt=1.0)
    """The share of rows for the test where no `test` is given."""
    on_conflict: Literal["drop", "keep", "fail"] = "drop"
    """What to do with a text that has two labels: drop all its rows, keep them, or stop."""
    clean: CleanConfig = CleanConfig()
    """What is repaired in every text."""
    on_bad_row: Literal["fail", "skip"] = "fail"
    """What to do with a row that cannot be read or used: stop, or leave it out and keep its place in
    `bad-rows.jsonl`."""
    streaming: bool = False
    """Train on rows as they are read, for data larger than memory and disk, or behind a URL (`s3://...`)."""
    shuffle_rows: int = Field(default=16384, ge=1)
    """With `streaming`: rows that are held and shuffled together."""
    prefetch: int = Field(default=8, ge=0)
    """With `streaming`: steps that another process prepares ahead; 0: the training process does it."""
    labels: tuple[str, ...] | None = None
    """With `streaming`: all class names; absent: those of the first rows."""
    head_rows: int = Field(default=2000, ge=1)
    """With `streaming`: rows for each of validation and test, gathered from the beginning of the stream."""
    epoch_rows: int | None = Field(default=None, ge=1)
    """With `streaming`: rows that count as one epoch; needed where the source has no end or cannot be
    counted."""

    @model_validator(mode="after")
    def _leave_rows_to_train(self) -> DataConfig:
        taken = (0.0 if self.valid else self.valid_share) + (0.0 if self.test else self.test_share)
        if taken >= 1.0:
            raise ValueError(f"valid_share + test_share must stay below 1, not {taken:g}")
        return self
