from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.read_chunks import read_chunks
from textmill.data.rows import Chunk, Position

NUM = 3000
TEXTS = [f'text {n}, "quoted"\nsecond line {"é" * (n % 7)}' if n % 3 else f"plain {n}" for n in range(NUM)]
LABELS = ["NA" if n % 2 else "null" for n in range(NUM)]


def quote(value: str) -> str:
    return '"' + value.replace('"', '""') + '"' if set(value) & set(',"\n') else value


def write(folder: Path, kind: str) -> Path:
    csv = "text,label\n" + "".join(f"{quote(t)},{q}\n" for t, q in zip(TEXTS, LABELS, strict=True))
    rows = "".join(json.dumps({"text": t, "label": q}) + "\n" for t, q in zip(TEXTS, LABELS, strict=True))
    path = folder / f"t.{kind}"
    table = pa.table({"text": TEXTS, "label": LABELS})
    if kind == "csv":
        path.write_text(csv, encoding="utf-8")
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(csv.encode()[:50_000]) + gzip.compress(csv.encode()[50_000:]))
    elif kind == "utf16.csv":
        path.write_bytes(csv.encode("utf-16"))
    elif kind == "latin.csv":
        path.write_bytes(csv.encode("cp1252"))
    elif kind == "jsonl":
        path.write_text(rows)
    elif kind == "parquet":
        pq.write_table(table, path, row_group_size=700)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=500)
    return path


def rows_of(chunks: list[Chunk]) -> list[tuple[str, str, int]]:
    return [
        row
        for chunk in chunks
        for row in zip(
            chunk.rows.column("text", ""), chunk.rows.column("label", ""), chunk.rows.row_number, strict=True
        )
    ]


def chunks_of(folder: Path, name: str, start: Position | None = None, **settings: object) -> list[Chunk]:
    return list(read_chunks(name, folder, start=start, block_bytes=9_000, **settings))  # type: ignore[arg-type]


KINDS = ["csv", "csv.gz", "utf16.csv", "latin.csv", "jsonl", "parquet", "arrow"]


@pytest.mark.parametrize("kind", KINDS)
def test_reading_on_from_any_chunk_gives_the_rows_behind_it(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    settings = {"encoding": "cp1252"} if kind == "latin.csv" else {}
    chunks = chunks_of(tmp_path, path.name, None, **settings)
    rows = rows_of(chunks)
    assert rows == [(t, q, n) for n, (t, q) in enumerate(zip(TEXTS, LABELS, strict=True), start=1)]
    assert len(chunks) > 3
    for index in range(0, len(chunks), 5):
        after = Position.from_json(json.loads(json.dumps(chunks[index].after.as_json())))
        begun = sum(len(chunk.rows) for chunk in chunks[: index + 1])
        again = chunks_of(tmp_path, path.name, after, **settings)
        assert rows_of(again) == rows[begun:]
        # A pool of a stream is a number of chunks: their ends must not depend on where reading began.
        assert [chunk.after.row for chunk in again] == [chunk.after.row for chunk in chunks[index + 1 :]]


def test_a_folder_is_gone_on_with_in_the_middle(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for kind in ("csv", "jsonl", "parquet"):
        write(tmp_path / "d", kind)
    chunks = chunks_of(tmp_path, "d")
    at = next(i for i, chunk in enumerate(chunks) if chunk.after.file == "t.jsonl") + 1
    assert rows_of(chunks_of(tmp_path, "d", chunks[at].after)) == rows_of(chunks[at + 1 :])


def test_a_stray_mark_costs_one_row_and_is_named(tmp_path: Path) -> None:
    lines = [f'"one {n}, two",a' if n % 2 else f"three {n},b" for n in range(2000)]
    lines[1500] = '"stray,b'
    (tmp_path / "t.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    with pytest.raises(DataError, match="lines 1502 to 1503"):
        chunks_of(tmp_path, "t.csv")
    bad = BadRows("skip", tmp_path / "bad-rows.jsonl")
    rows = rows_of(chunks_of(tmp_path, "t.csv", bad=bad))
    assert [number for _, _, number in rows] == [n for n in range(1, 2001) if n != 1501]
    (found,) = map(json.loads, (tmp_path / "bad-rows.jsonl").read_text().splitlines())
    assert (found["file"], found["row"], found["raw"].strip()) == ("t.csv", 1501, '"stray,b')


def test_a_mark_that_is_never_closed_swallows_no_row(tmp_path: Path) -> None:
    lines = [f"text {n},a" for n in range(2000)]
    lines[700] = '"stray,b'
    (tmp_path / "t.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    with pytest.raises(DataError, match="line 702 that is not closed"):
        chunks_of(tmp_path, "t.csv")
    bad = BadRows("skip")
    assert len(rows_of(chunks_of(tmp_path, "t.csv", bad=bad))) == 1999
    assert bad.count == 1


@pytest.mark.parametrize(
    ("line", "raw"),
    [("one,two,a", "one,two,a"), ("caf\udce9,a", "caf\ufffd,a"), ("only", "only")],
)
def test_a_bad_line_is_left_out_with_its_number(tmp_path: Path, line: str, raw: str) -> None:
    lines = [f"schön {n},a" for n in range(2000)]
    lines[1234] = line
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *lines, ""]), "utf-8", "surrogateescape")
    with pytest.raises(DataError, match=r"row 1235|line 1236"):
        chunks_of(tmp_path, "t.csv")
    bad = BadRows("skip")
    rows = rows_of(chunks_of(tmp_path, "t.csv", bad=bad))
    assert [number for _, _, number in rows] == [n for n in range(1, 2001) if n != 1235]
    assert [(row.row, row.raw.strip()) for row in bad.first] == [(1235, raw)]


def test_what_lies_before_the_break_of_a_packed_file_is_kept(tmp_path: Path) -> None:
    whole = gzip.compress(("text,label\n" + "".join(f"{n} {n * 7919},a\n" for n in range(9000))).encode())
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"breaks off in line \d{4}.*half-copied"):
        chunks_of(tmp_path, "t.csv.gz")
    bad = BadRows("skip")
    rows = rows_of(chunks_of(tmp_path, "t.csv.gz", bad=bad))
    assert 1000 < len(rows) < 8000
    assert [number for _, _, number in rows] == list(range(1, len(rows) + 1))
    assert bad.first[0].row == len(rows) + 1


def test_a_shard_with_other_columns_is_named(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for shard in range(1, 9):
        text = "body" if shard == 7 else "text"
        rows = [json.dumps({text: f"{shard} {n}", "label": "a"}) for n in range(50)]
        (tmp_path / "d" / f"shard-{shard}.jsonl").write_text("\n".join(rows) + "\n")
    with pytest.raises(DataError, match=r"'body', 'text' in only one of shard-1\.jsonl and shard-7\.jsonl"):
        chunks_of(tmp_path, "d")
    bad = BadRows("skip")
    rows = rows_of(chunks_of(tmp_path, "d", bad=bad))
    assert len(rows) == 350
    assert [(row.file, row.row, row.rows) for row in bad.first] == [("shard-7.jsonl", 1, 50)]


def test_a_bad_row_is_counted_once_however_often_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "a", "label": "b"}\n[1]\n')
    for _ in range(2):
        bad = BadRows("skip", tmp_path / "bad-rows.jsonl")
        chunks_of(tmp_path, "t.jsonl", bad=bad)
        chunks_of(tmp_path, "t.jsonl", bad=bad)
        assert bad.count == 1
    assert len((tmp_path / "bad-rows.jsonl").read_text().splitlines()) == 1
