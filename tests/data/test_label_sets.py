"""The label column of multi-label data."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textmill.core.errors import DataError
from textmill.data.config import DataConfig
from textmill.data.label_sets import looks_like_sets
from textmill.data.prepare import prepare, survey

CONFIG = {"valid_share": 0.2, "test_share": 0.2}


def by_text(splits):
    rows = [*splits.train, *splits.valid, *splits.test]
    return {row.text: row.labels for row in rows}


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_lists_and_empty_lists_are_sets_and_null_is_a_missing_label(tmp_path):
    rows = [
        {"text": "one", "label": ["b", "a", "b "]},
        {"text": "two", "label": []},
        {"text": "three", "label": None},
        {"text": "four"},
        {"text": "five", "label": "a"},
    ]
    write_jsonl(tmp_path / "t.jsonl", rows)
    splits = survey(DataConfig(train="t.jsonl"), tmp_path, task="multilabel")
    assert by_text(splits) == {"one": ("a", "b"), "two": (), "five": ("a",)}
    assert splits.labels == ("a", "b")
    assert splits.report.sources["train"].missing_label.count == 2


def test_text_is_cut_at_the_separator_and_an_empty_cell_of_a_csv_is_no_class(tmp_path):
    (tmp_path / "t.csv").write_text('text,label\none,"a, b"\ntwo,\nthree,"NA,,b"\nfour,"[""x, y"", ""b""]"\n')
    splits = survey(DataConfig(train="t.csv"), tmp_path, task="multilabel")
    found = by_text(splits)
    assert found == {"one": ("a", "b"), "two": (), "three": ("NA", "b"), "four": ("b", "x, y")}
    assert splits.report.sources["train"].missing_label.count == 0


def test_another_separator_and_lists_as_pandas_writes_them(tmp_path):
    (tmp_path / "t.csv").write_text("text;label\none;a|b c\ntwo;\"['d', 'e']\"\n")
    config = DataConfig(train="t.csv", label_separator="|")
    assert by_text(survey(config, tmp_path, task="multilabel")) == {"one": ("a", "b c"), "two": ("d", "e")}


def test_a_printed_array_is_refused_with_its_row(tmp_path):
    (tmp_path / "t.csv").write_text("text,label\none,\"['a' 'b']\"\n")
    with pytest.raises(DataError, match=r"must have commas.*t\.csv:1"):
        survey(DataConfig(train="t.csv"), tmp_path, task="multilabel")


def test_a_list_is_refused_where_one_class_is_expected(tmp_path):
    write_jsonl(tmp_path / "t.jsonl", [{"text": "one", "label": ["a"]}])
    with pytest.raises(DataError, match=r'task = "multilabel"'):
        survey(DataConfig(train="t.jsonl"), tmp_path)


def test_lists_of_a_parquet_file_give_the_same_splits_as_text(tmp_path):
    sets = [["a"], ["b"], ["a", "b"], []] * 20
    texts = [f"text {number}" for number in range(len(sets))]
    pq.write_table(pa.table({"text": texts, "label": sets}), tmp_path / "t.parquet")
    lines = [f'{text},"{",".join(each)}"' for text, each in zip(texts, sets, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    lists = prepare(DataConfig(train="t.parquet", **CONFIG), tmp_path, task="multilabel")
    strings = prepare(DataConfig(train="t.csv", **CONFIG), tmp_path, task="multilabel")
    for side in ("train", "valid", "test"):
        ours, theirs = getattr(lists, side), getattr(strings, side)
        assert [(row.text, row.labels) for row in ours] == [(row.text, row.labels) for row in theirs]


def test_one_text_with_two_sets_is_a_conflict_and_with_one_a_duplicate(tmp_path):
    rows = [
        {"text": "torn", "label": ["a"]},
        {"text": "torn", "label": ["a", "b"]},
        {"text": "twice", "label": ["a", "b"]},
        {"text": "twice", "label": ["b", "a"]},
    ]
    write_jsonl(tmp_path / "t.jsonl", rows)
    source = survey(DataConfig(train="t.jsonl"), tmp_path, task="multilabel").report.sources["train"]
    assert (source.conflicts.count, source.duplicates.count) == (2, 1)


def test_one_class_is_enough_and_every_class_trains(tmp_path):
    rows = [{"text": f"text {number}", "label": ["rare"] if number == 7 else []} for number in range(40)]
    write_jsonl(tmp_path / "t.jsonl", rows)
    splits = prepare(DataConfig(train="t.jsonl", **CONFIG), tmp_path, task="multilabel")
    assert splits.labels == ("rare",)
    assert any(row.labels for row in splits.train)


def test_pairs_are_read_cleaned_and_compared_in_their_order(tmp_path):
    (tmp_path / "t.csv").write_text(
        "a,b,label\none &amp; two,x,1\nx,one & two,1\none & two,x,1\nalone,,0\nlast,y,0\n"
    )
    config = DataConfig(train="t.csv", text="a", text_pair="b")
    splits = survey(config, tmp_path, task="pairs")
    assert by_text(splits) == {("one & two", "x"): ("1",), ("x", "one & two"): ("1",), ("last", "y"): ("0",)}
    source = splits.report.sources["train"]
    assert (source.duplicates.count, source.missing_text.count) == (1, 1)


@pytest.mark.parametrize(
    ("values", "is_sets"),
    [
        ([["a"], None], True),
        (["a", "b", "a,b", "b, a"], True),
        (["a", "b", "c"], False),
        (["yes, of course", "no, never", "maybe"], False),
        ([1, 0, None], False),
        ([], False),
    ],
)
def test_a_column_of_sets_is_told_from_one_of_classes(values, is_sets):
    assert looks_like_sets(values) == is_sets
