from __future__ import annotations

from pathlib import Path

import pytest

from textmill.core.errors import DataError
from textmill.data.config import DataConfig
from textmill.data.unlabelled import read_unlabelled

CONFIG = DataConfig(train="train.csv", id="id")


def test_rows_keep_their_place_with_duplicates_and_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,text\n7,a  long text\n3,\n7,a  long text\n,b &amp; c\n")
    found = read_unlabelled("in.csv", CONFIG, tmp_path)
    assert found.ids == ["7", "3", "7", ""]
    assert found.texts == ["a long text", None, "a long text", "b & c"]
    assert found.rows.columns["text"][0] == "a  long text"


def test_without_an_id_column_file_and_row_are_the_id(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"text": null}\n')
    found = read_unlabelled("in.jsonl", DataConfig(train="t.csv"), tmp_path)
    assert (found.ids, found.texts) == (["in.jsonl:1", "in.jsonl:2"], ["a", None])


def test_a_file_without_the_text_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,texts\n1,a\n")
    with pytest.raises(DataError, match=r"'text' \(data\.text\).*'texts'"):
        read_unlabelled("in.csv", CONFIG, tmp_path)
