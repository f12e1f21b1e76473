from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.conftest import Listener
from textmill.core.errors import DataError
from textmill.data.config import DataConfig
from textmill.data.load import load_labelled, load_unlabelled

CONFIG = DataConfig(train="train.csv", id="id")


def test_rows_keep_their_place_with_duplicates_and_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,text\n7,a  long text\n3,\n7,a  long text\n,b &amp; c\n")
    found = load_unlabelled("in.csv", CONFIG, tmp_path)
    assert found.ids == ["7", "3", "7", ""]
    assert found.texts == ["a long text", None, "a long text", "b & c"]
    assert found.rows.columns["text"][0] == "a  long text"


def test_without_an_id_column_file_and_row_are_the_id(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"text": null}\n')
    found = load_unlabelled("in.jsonl", DataConfig(train="t.csv"), tmp_path)
    assert (found.ids, found.texts) == (["in.jsonl:1", "in.jsonl:2"], ["a", None])


def test_a_file_without_the_text_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,texts\n1,a\n")
    with pytest.raises(DataError, match=r"'text' \(data\.text\).*'texts'"):
        load_unlabelled("in.csv", CONFIG, tmp_path)


def test_without_the_id_column_in_this_file_file_and_row_are_the_id(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text,label\nx,a\n")
    assert load_unlabelled("in.csv", CONFIG, tmp_path).ids == ["in.csv:1"]
    assert [example.id for example in load_labelled("in.csv", CONFIG, tmp_path)] == ["in.csv:1"]


def test_labelled_rows_stay_whole_with_tidy_labels(tmp_path: Path, listener: Listener) -> None:
    (tmp_path / "in.csv").write_text("id,text,label\n1,x &amp; y,a \n2,x &amp; y,a\n3,,a\n4,z,\n5,z,NA\n")
    examples = load_labelled("in.csv", CONFIG, tmp_path, listener)
    assert [(example.id, example.text, example.labels) for example in examples] == [
        ("1", "x & y", ("a",)),
        ("2", "x & y", ("a",)),
        ("5", "z", ("NA",)),
    ]
    assert listener.said == ["in.csv: 2 rows without text or label are left out"]


def test_a_file_without_one_labelled_row_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text,label\nx,\n,a\n")
    with pytest.raises(DataError, match=r"none among 2 rows of in\.csv"):
        load_labelled("in.csv", CONFIG, tmp_path)
