from __future__ import annotations

from pathlib import Path

import datasets
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.toy import toy_examples
from tests.train.streams import as_line, write_stream
from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.stream.heads import Heads
from textmill.data.stream.source import Source, open_source

EXAMPLES = toy_examples(600)


def ids_of(source: Source) -> list[str]:
    heads = Heads(source, 0, BadRows())
    found: list[str] = []
    while (chunk := heads.next_chunk()) is not None:
        found += chunk.rows.columns["id"]
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
    heads, states, chunks = Heads(source, 1, BadRows(), 2), [], []
    while (chunk := heads.next_chunk()) is not None:
        chunks.append(chunk.rows.columns["id"])
        states.append(heads.state())
    for index in range(0, len(states), 3):
        again, rest = Heads(source, 1, BadRows(), state=states[index]), []
        while (chunk := again.next_chunk()) is not None:
            rest.append(chunk.rows.columns["id"])
        assert rest == chunks[index + 1 :]


def test_a_url_is_read_like_a_file(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    for number in range(3):
        content = "".join(map(as_line, EXAMPLES[number::3]))
        memory.pipe(f"/bucket/part-{number}.jsonl", content.encode())
    source = open_source("memory://bucket", tmp_path)
    assert source.num_parts == 3
    assert not source.can_move
    assert sorted(ids_of(source)) == sorted(e.id for e in EXAMPLES)
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
