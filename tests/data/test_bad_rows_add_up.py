"""Every row that is read is accounted for, whatever is wrong with some of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.toy import toy_examples
from textmill.core.errors import DataError
from textmill.core.types import Task
from textmill.data.bad_rows import BadRows
from textmill.data.config import DataConfig
from textmill.data.prepare import Splits, survey
from textmill.data.stream.heads import Heads
from textmill.data.stream.open import Stream, open_stream

ROWS: list[Any] = [{"id": e.id, "text": e.text, "label": e.labels[0]} for e in toy_examples(120)]


def write_lines(path: Path, rows: Sequence[Any]) -> None:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))


def is_accounted_for(splits: Splits) -> bool:
    source = splits.report.sources["train"]
    lefts = [source.missing_text, source.missing_label, source.duplicates, source.conflicts, source.bad_rows]
    kept = sum(map(len, (splits.train, splits.valid, splits.test)))
    gone = sum(left.count for left in [*lefts, *splits.report.leakage.values()])
    return source.rows == kept + gone


def read_all(stream: Stream) -> tuple[int, BadRows, Counter[str]]:
    """Read one pass; return the rows of all sides, the bad ones and the counts."""
    bad, counts, kept = BadRows(stream.usable.config.on_bad_row), Counter[str](), 0
    heads = Heads(stream.source, 0, bad, keep=lambda rows: stream.usable.whole_tables(rows, bad))
    while (rows := heads.next_rows(64)) is not None:
        kept += sum(map(len, stream.usable.sort(rows, bad, counts).values()))
    return kept, bad, counts


def stream_of(config: DataConfig, folder: Path, task: Task = "classification") -> Stream:
    return open_stream(config.model_copy(update={"streaming": True}), folder, seed=0, task=task)


def test_unreadable_unfit_missing_repeated_and_torn_rows_add_up(tmp_path: Path) -> None:
    odd = ["{broken", {"id": "u", "text": 5, "label": "class0"}, {"id": "m", "label": "class0"}]
    twice = {**ROWS[3], "id": "twice"}
    torn = {**ROWS[4], "id": "torn", "label": "class1"}
    write_lines(tmp_path / "t.jsonl", [*ROWS, *odd, {"id": "n", "text": "no label"}, twice, torn])
    splits = survey(DataConfig(train="t.jsonl", on_bad_row="skip"), tmp_path)
    assert splits.report.sources["train"].rows == 126
    assert splits.report.sources["train"].bad_rows.rows == ("t.jsonl:121", "t.jsonl:122")
    assert is_accounted_for(splits)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_rows_of_a_file_with_other_columns_are_counted_one_by_one(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for number in range(4):
        part = ROWS[number * 30 : number * 30 + 30]
        table = pa.Table.from_pylist(part)
        if number == 2:
            table = table.rename_columns(["id", "txet", "label"])
        if kind == "parquet":
            pq.write_table(table, folder / f"{number}.parquet", row_group_size=10)
        else:
            lines = [table.column_names, *(list(row.values()) for row in part)]
            (folder / f"{number}.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    config = DataConfig(train="d", on_bad_row="skip")
    splits = survey(config, tmp_path)
    assert splits.report.sources["train"].bad_rows.count == 30
    assert splits.report.sources["train"].rows == 120
    assert is_accounted_for(splits)
    kept, bad, _ = read_all(stream_of(config, tmp_path))
    assert (kept, bad.count) == (90, 30)


def test_a_row_without_an_id_is_a_bad_row(tmp_path: Path) -> None:
    write_lines(tmp_path / "t.jsonl", [*ROWS, {"id": None, "text": "a ship", "label": "class0"}])
    config = DataConfig(train="t.jsonl", id="id")
    for read in (survey, stream_of):
        with pytest.raises(DataError, match=r"must have an id, but got none in t\.jsonl:121"):
            read(config, tmp_path)
    config = DataConfig(train="t.jsonl", id="id", on_bad_row="skip")
    splits = survey(config, tmp_path)
    assert splits.report.sources["train"].bad_rows.rows == ("t.jsonl:121",)
    assert is_accounted_for(splits)
    kept, bad, _ = read_all(stream_of(config, tmp_path))
    assert (kept, bad.count) == (120, 1)


def test_two_rows_with_one_id_are_named_rightly_behind_bad_rows(tmp_path: Path) -> None:
    long = {"filler": "x" * 5_000_000}  # the second row with the id comes in another piece
    rows = [{"id": "u", "text": 5, "label": "class0"}, *ROWS[:50], {**ROWS[50], **long}, *ROWS[51:]]
    write_lines(tmp_path / "t.jsonl", [*rows, {**ROWS[0], "id": ROWS[119]["id"]}])
    with pytest.raises(DataError, match=rf"'{ROWS[119]['id']}' twice, in t\.jsonl:121 and t\.jsonl:122"):
        survey(DataConfig(train="t.jsonl", id="id", on_bad_row="skip"), tmp_path)


def test_a_key_that_a_stretch_of_json_lines_lacks_is_missing_there(tmp_path: Path) -> None:
    unlabelled = [{"id": f"u{n}", "text": f"{'nobody has labelled this one ' * 20}{n}"} for n in range(1500)]
    write_lines(tmp_path / "t.jsonl", [*unlabelled, *ROWS])
    for policy in ("fail", "skip"):
        kept, bad, counts = read_all(stream_of(DataConfig(train="t.jsonl", on_bad_row=policy), tmp_path))
        assert (kept, bad.count, counts["missing_label"]) == (120, 0, 1500)
    with pytest.raises(DataError, match=r"'lable' \(data\.label\).*Did you mean 'label'"):
        stream_of(DataConfig(train="t.jsonl", label="lable"), tmp_path)


def test_a_damaged_table_among_others_is_one_bad_entry_of_a_stream(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "d" / "0.parquet")
    (tmp_path / "d" / "1.parquet").write_bytes(b"")
    stream = stream_of(DataConfig(train="d", on_bad_row="skip"), tmp_path)
    kept, bad, _ = read_all(stream)
    assert (kept, [row.place for row in bad.first]) == (120, ["1.parquet, its rest"])
    assert not stream.count.is_exact


def test_classes_of_a_stream_are_tidied_and_each_stands_once(tmp_path: Path) -> None:
    write_lines(tmp_path / "t.jsonl", ROWS)
    config = DataConfig(train="t.jsonl", labels=("class1 ", "class0", "class0"))
    stream = stream_of(config, tmp_path)
    assert stream.splits.labels == ("class0", "class1")
    assert read_all(stream)[0] == 120


def test_a_stream_may_have_one_class_where_a_text_has_any_number(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "t.jsonl", [{**row, "label": ["a"] if n % 2 else []} for n, row in enumerate(ROWS)]
    )
    assert stream_of(DataConfig(train="t.jsonl"), tmp_path, "multilabel").splits.labels == ("a",)
