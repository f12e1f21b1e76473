"""Rows whose values cannot be meant as text or as a class, left out where the project says so.

Promises: what the readers of columns would refuse (`columns.py`, `label_sets.py`) is refused here row by
row with the same words; with `on_bad_row = "fail"` nothing is done here, so that they do it.
"""

from __future__ import annotations

from typing import Any

from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.columns import given_id, label_name, texts_of
from textmill.data.config import DataConfig
from textmill.data.duplicates import shorten
from textmill.data.label_sets import label_spellings
from textmill.data.rows import Rows


def drop_unfit(rows: Rows, config: DataConfig, is_multilabel: bool, bad: BadRows) -> Rows:
    """Return the rows that can be used, or that are only missing something.

    Args:
        rows: N rows.
        config: names the columns.
        is_multilabel: whether a label may be a list of classes.
        bad: is told of the others.
    """
    if bad.policy == "fail" or not len(rows):
        return rows
    unfit: dict[int, DataError] = {}
    for column in filter(None, (config.text, config.text_pair)):
        for index, value in enumerate(rows.columns.get(column, [])):
            if value is not None and not isinstance(value, str):
                _judge(unfit, index, lambda one, name=column: texts_of(one, name), rows)
    for index, value in enumerate(rows.columns.get(config.label, [])):
        if value is not None and not isinstance(value, str | int):
            _judge(
                unfit, index, lambda one, found=value: _read_label(one, found, config, is_multilabel), rows
            )
    if config.id is not None:
        for index, value in enumerate(rows.columns.get(config.id, [])):
            if not isinstance(value, str | int) or value == "":
                _judge(unfit, index, lambda one, found=value: _read_id(one, found, config), rows)
    for index, error in sorted(unfit.items()):
        raw = shorten({name: values[index] for name, values in rows.columns.items()}, 200)
        bad.refuse(error, rows.files[index], rows.row_number[index], raw)
    return rows.take([index for index in range(len(rows)) if index not in unfit]) if unfit else rows


def _judge(unfit: dict[int, DataError], index: int, read: Any, rows: Rows) -> None:
    try:
        read(rows.take([index]))
    except DataError as error:
        unfit.setdefault(index, error)


def _read_id(one: Rows, value: object, config: DataConfig) -> None:
    assert config.id is not None
    given_id(value, config.id, one.origin(0))


def _read_label(one: Rows, value: object, config: DataConfig, is_multilabel: bool) -> None:
    if is_multilabel:
        label_spellings(value, config.label_separator, one, 0)
    else:
        label_name(value, one, 0)
