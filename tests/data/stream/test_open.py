from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.data.conftest import Listener
from tests.toy import toy_examples
from tests.train.streams import all_ids, as_line, toy_feed, toy_stream, write_stream
from textmill.core.errors import DataError
from textmill.core.types import Example
from textmill.data.config import DataConfig
from textmill.data.stream.open import open_stream, with_bad_rows


def add(folder: Path, line: str) -> None:
    # The long row puts the line into the second piece of the file, behind those that are read at the opening.
    long = json.dumps({"id": "long", "text": "long", "label": "class0", "more": "x" * 300_000}) + "\n"
    rows = "".join(as_line(replace(row, id=f"more:{row.id}")) for row in toy_examples(599, seed=5))
    (folder / "rows" / "part-9.jsonl").write_text(rows + long + line)


def test_a_class_seen_later_is_a_bad_row(tmp_path: Path) -> None:
    write_stream(tmp_path)
    add(tmp_path, as_line(Example("late", "a new kind", ("class9",))))
    stream = toy_stream(tmp_path, labels=("class0", "class1"), head_rows=5)
    with pytest.raises(DataError, match=r"'class9' in part-9\.jsonl:601.*data\.labels"):
        all_ids(toy_feed(stream))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_tells_file_and_row_from_whichever_process(tmp_path: Path, prefetch: int) -> None:
    write_stream(tmp_path)
    add(tmp_path, json.dumps({"id": "odd", "text": 17, "label": "class0"}) + "\n")
    stream = toy_stream(tmp_path, head_rows=5)
    with pytest.raises(DataError, match=r"a number, 17, in part-9\.jsonl:601"):
        all_ids(toy_feed(stream, prefetch=prefetch))


def test_bad_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    write_stream(tmp_path)
    add(tmp_path, json.dumps({"id": "odd", "text": 17, "label": "class0"}) + "\n{broken\n")
    feed = toy_feed(toy_stream(tmp_path, on_bad_row="skip", head_rows=5))
    ids = {row for step in all_ids(feed) for row in step}
    assert "odd" not in ids
    assert len(ids) > 2300
    assert feed.counts["bad"] == 2


def test_the_rows_of_a_validation_file_never_train(tmp_path: Path) -> None:
    write_stream(tmp_path)
    held = toy_examples(3000)[10:40]
    (tmp_path / "valid.jsonl").write_text("".join(map(as_line, held)))
    stream = toy_stream(tmp_path, valid="valid.jsonl")
    assert len(stream.splits.valid) == 30
    assert {row.id for row in held}.isdisjoint(row for step in all_ids(toy_feed(stream)) for row in step)


def test_a_stream_of_one_class_is_refused(tmp_path: Path) -> None:
    write_stream(tmp_path, classes=1)
    with pytest.raises(DataError, match=r"at least two classes.*data\.labels"):
        toy_stream(tmp_path)


def test_labels_that_differ_by_blanks_are_said(tmp_path: Path, listener: Listener) -> None:
    lines = [as_line(row) for row in toy_examples(400)]
    lines[::4] = [line.replace('"class0"', '"class0 "') for line in lines[::4]]
    (tmp_path / "t.jsonl").write_text("".join(lines))
    stream = open_stream(DataConfig(train="t.jsonl", streaming=True), tmp_path, seed=0, progress=listener)
    assert stream.splits.labels == ("class0", "class1")
    assert stream.splits.report.labels.look_alikes == [{"class0": 100, "class0 ": 100}]
    assert any("one class 'class0'" in line for line in listener.said)


def test_files_of_one_class_each_give_all_classes_to_validation(tmp_path: Path) -> None:
    for label in (f"class{number}" for number in range(4)):
        lines = [as_line(row) for row in toy_examples(3000, 4) if row.labels == (label,)]
        (tmp_path / "d").mkdir(exist_ok=True)
        (tmp_path / "d" / f"{label}.jsonl").write_text("".join(lines))
    stream = toy_stream(tmp_path, "d", head_rows=40)
    assert len(stream.splits.labels) == 4
    for side in (stream.splits.valid, stream.splits.test):
        assert len(side) == 40
        assert len({row.labels for row in side}) == 4


def test_the_number_of_skipped_rows_is_said_at_the_end(tmp_path: Path, listener: Listener) -> None:
    write_stream(tmp_path)
    splits = toy_stream(tmp_path).splits
    side_file = tmp_path / "bad-rows.jsonl"
    with_bad_rows(splits, side_file, listener)
    assert listener.said == []
    bad = {"file": "t.jsonl", "row": 7, "reason": "no JSON", "raw": "{", "rows": 1}
    side_file.write_text(json.dumps(bad) + "\n")
    with_bad_rows(splits, side_file, listener)
    assert listener.said == [f"1 bad row was skipped: {side_file}"]


def write_rows(path: Path, rows: list[tuple[str, str, str]]) -> None:
    path.write_text("".join(as_line(Example(row_id, text, (label,))) for row_id, text, label in rows))


def test_given_files_lose_duplicates_conflicts_and_leaks(tmp_path: Path, listener: Listener) -> None:
    write_stream(tmp_path)
    valid = [("1", "one", "class0"), ("2", "one", "class0"), ("3", "two", "class0"), ("4", "two", "class1")]
    write_rows(tmp_path / "v.jsonl", [*valid, ("5", "three", "class0"), ("6", "four", "class1")])
    write_rows(tmp_path / "w.jsonl", [("7", "three", "class0"), ("8", "five", "class1")])
    values = {"train": "rows", "id": "id", "streaming": True, "valid": "v.jsonl", "test": "w.jsonl"}
    splits = open_stream(DataConfig(**values), tmp_path, seed=0, progress=listener).splits  # type: ignore[arg-type]
    assert [row.id for row in splits.valid] == ["1", "6"]
    assert [row.id for row in splits.test] == ["7", "8"]
    report = splits.report
    assert report.sources["valid"].rows == 6
    assert report.sources["valid"].duplicates.rows == ("2",)
    assert report.sources["valid"].conflicts.rows == ("3", "4")
    assert report.leakage["valid"].rows == ("5",)
    assert any("1 rows left valid" in line for line in listener.said)


def test_gathered_rows_hold_no_text_twice(tmp_path: Path) -> None:
    rows = [(str(number), f"text {number % 700}", f"class{number % 2}") for number in range(1400)]
    write_rows(tmp_path / "t.jsonl", rows)
    splits = toy_stream(tmp_path, "t.jsonl", head_rows=200).splits
    for side in (splits.valid, splits.test, splits.train):
        assert len({row.text for row in side}) == len(side) > 40
    assert splits.report.sources["train"].duplicates.count == 700


def test_an_id_that_stands_twice_in_the_first_rows_is_refused(tmp_path: Path) -> None:
    rows = [(str(number % 299), f"text {number}", f"class{number % 2}") for number in range(300)]
    write_rows(tmp_path / "t.jsonl", rows)
    with pytest.raises(DataError, match=r"'0' twice, in t\.jsonl:1 and t\.jsonl:300"):
        toy_stream(tmp_path, "t.jsonl", head_rows=20)


def test_all_counts_of_a_report_are_those_of_the_first_rows(tmp_path: Path) -> None:
    write_stream(tmp_path, num=300, files=1)
    with open(tmp_path / "rows" / "part-0.jsonl", "a") as file:
        file.write("{broken\n")
    splits = toy_stream(tmp_path, on_bad_row="skip", head_rows=20).splits
    source = splits.report.sources["train"]
    assert (source.rows, source.bad_rows.count) == (301, 1)
    side_file = tmp_path / "bad-rows.jsonl"
    bad = [{"file": "t.jsonl", "row": row, "reason": "no JSON", "raw": "{", "rows": 1} for row in range(9)]
    side_file.write_text("".join(json.dumps(row) + "\n" for row in bad))
    source = with_bad_rows(splits, side_file).report.sources["train"]
    assert (source.rows, source.bad_rows.count) == (301, 1)
    assert source.notes == (
        "a stream: all counts are those of its first rows",
        "in the whole training 9 bad rows were skipped: bad-rows.jsonl",
    )
