from __future__ import annotations

import json
from pathlib import Path

import datasets
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from tests.toy import toy_examples
from tests.train.streams import as_line, write_stream
from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.stream.heads import Heads
from textmill.data.stream.source import FileSource, Source, open_source

EXAMPLES = toy_examples(600)


def ids_of(source: Source) -> list[str]:
    heads = Heads(source, 0, BadRows())
    found: list[str] = []
    while (rows := heads.next_rows(100)) is not None:
        found += rows.columns["id"]
    return found


def table() -> pa.Table:
    return pa.table(
        {
            "id": [e.id for e in EXAMPLES],
            "text": [str(e.text) for e in EXAMPLES],
            "label": [e.labels[0] for e in EXAMPLES],
        }
    )


def test_row_groups_are_parts_with_their_own_row_numbers(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "t.parquet", row_group_size=50)
    source = open_source("t.parquet", tmp_path)
    assert source.num_parts == 12
    assert source.count().rows == 600
    chunks = list(source.read(3, None, BadRows()))
    assert chunks[0].rows.row_number[0] == 151
    assert sum(len(chunk.rows) for chunk in chunks) == 50
    assert sorted(ids_of(source)) == sorted(e.id for e in EXAMPLES)


def test_going_on_from_any_state_gives_the_chunks_behind_it(tmp_path: Path) -> None:
    write_stream(tmp_path, num=14000, files=3)
    source = open_source("rows", tmp_path)
    heads, states, slices = Heads(source, 1, BadRows(), 2), [], []
    while (rows := heads.next_rows(700, 0.3)) is not None:
        slices.append(rows.columns["id"])
        states.append(heads.state())
    for index in range(0, len(states), 9):
        again, rest = Heads(source, 1, BadRows(), state=states[index]), []
        while (rows := again.next_rows(700, 0.3)) is not None:
            rest.append(rows.columns["id"])
        assert rest == slices[index + 1 :]


def write_sorted(folder: Path, kind: str, num: int = 12_000) -> list[str]:
    """Write one file whose first half is of one class, with long texts; return the ids."""
    ids = [str(number) for number in range(num)]
    labels = [f"class{2 * number // num}" for number in range(num)]
    texts = [f'no {number} says "so",\nand ' + "word " * 40 for number in range(num)]
    content = pa.table({"id": ids, "text": texts, "label": labels})
    if kind == "parquet":
        pq.write_table(content, folder / "t.parquet", row_group_size=num, compression="none")
    elif kind == "csv":
        csv.write_csv(content, folder / "t.csv")
    else:
        lines = [json.dumps(row) + "\n" for row in content.to_pylist()]
        (folder / "t.jsonl").write_text("".join(lines))
    return ids


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_one_file_is_read_at_several_places(tmp_path: Path, kind: str) -> None:
    ids = write_sorted(tmp_path, kind)
    source = open_source(f"t.{kind}", tmp_path)
    assert source.num_parts > 2
    assert sorted(ids_of(source), key=int) == ids
    for part in range(source.num_parts):
        first = next(iter(source.read(part, None, BadRows())))
        assert first.rows.columns["id"][0] == str(first.rows.row_number[0] - 1)
    heads = Heads(source, 0, BadRows())
    slices = [heads.next_rows(64) for _ in range(source.num_parts)]
    labels = [label for rows in slices for label in rows.columns["label"]]  # type: ignore[union-attr]
    assert 0.25 <= labels.count("class0") / len(labels) <= 0.75


def test_parts_are_drawn_from_in_proportion_to_their_sizes(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.jsonl").write_text("".join(map(as_line, EXAMPLES[:450])))
    (tmp_path / "d" / "b.jsonl").write_text("".join(map(as_line, EXAMPLES[450:])))
    heads = Heads(open_source("d", tmp_path), 0, BadRows())
    found = [len(heads.next_rows(100)) for _ in range(2)]  # type: ignore[arg-type]
    assert sorted(found) == pytest.approx([25, 75], abs=2)


def test_a_url_is_read_like_a_file(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    for number in range(3):
        content = "".join(map(as_line, EXAMPLES[number::3]))
        memory.pipe(f"/bucket/part-{number}.jsonl", content.encode())
    source = open_source("memory://bucket", tmp_path)
    assert source.num_parts == 3
    assert not source.can_move
    assert sorted(ids_of(source)) == sorted(e.id for e in EXAMPLES)
    for other in ("notes.txt", "_hidden/part.jsonl", ".part.jsonl"):
        memory.pipe(f"/bucket/{other}", b"{}")
    source = open_source("memory://bucket", tmp_path)
    assert source.num_parts == 3
    assert isinstance(source, FileSource)
    assert source.others == "memory://bucket: 1 files of other kinds are left out (notes.txt)"
    memory.pipe("/other/notes.txt", b"x")
    with pytest.raises(DataError, match="must hold data files, but got none at memory://other"):
        open_source("memory://other", tmp_path)
    with pytest.raises(DataError, match="nothing at memory://nowhere"):
        open_source("memory://nowhere/t.csv", tmp_path)


def test_a_protocol_without_its_package_names_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gcsfs"):
        open_source("gs://bucket/t.csv", tmp_path)


def test_data_sets_of_the_datasets_library_are_streamed(tmp_path: Path) -> None:
    rows = datasets.Dataset(table()).cast_column("label", datasets.ClassLabel(names=["class0", "class1"]))
    rows.save_to_disk(str(tmp_path / "saved"))
    (tmp_path / "hub").mkdir()
    for shard in range(2):
        rows.shard(2, shard).to_parquet(str(tmp_path / "hub" / f"train-{shard:05}-of-00002.parquet"))
    for name in ("saved", "hub"):
        source = open_source(f"hf:{name}", tmp_path)
        assert sorted(ids_of(source)) == sorted(e.id for e in EXAMPLES)
        (chunk, *_) = source.read(0, None, BadRows())
        assert set(chunk.rows.columns["label"]) == {"class0", "class1"}
        after = next(iter(source.read(0, None, BadRows()))).after
        assert after.row == len(chunk.rows)


def test_texts_are_estimated_by_their_bytes(tmp_path: Path) -> None:
    write_stream(tmp_path, num=3000, files=1)
    found = open_source("rows", tmp_path).count()
    assert not found.is_exact
    assert found.rows == pytest.approx(3000, rel=0.1)


@pytest.mark.parametrize("is_csv", [False, True])
def test_one_huge_cell_does_not_spoil_the_estimate(tmp_path: Path, is_csv: bool) -> None:
    huge = "x" * 10_000_000
    if is_csv:
        (tmp_path / "t.csv").write_text("text,label\n" + "a text,b\n" * 20_000 + f"{huge},b\n")
    else:
        row = json.dumps({"text": "a", "label": "b", "more": "x" * 60}) + "\n"
        (tmp_path / "t.jsonl").write_text(row * 20_000 + json.dumps({"text": huge, "label": "b"}) + "\n")
    found = open_source("t.csv" if is_csv else "t.jsonl", tmp_path).count()
    assert found.rows == pytest.approx(20_001, rel=0.01)
