from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from tests.data.conftest import Listener
from textmill.core.errors import DataError
from textmill.data.read import Rows, read_rows

COLUMNS = {"text": ["one", "zwei, drei", "四\n五"], "label": ["a", "b", "a"]}
CSV = 'text,label\none,a\n"zwei, drei",b\n"四\n五",a\n'


def read_bytes(folder: Path, name: str, content: bytes, **settings: str) -> Rows:
    (folder / name).write_bytes(content)
    return read_rows(name, folder, **settings)  # type: ignore[arg-type]


def jsonl(columns: dict[str, list[str]]) -> bytes:
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return "\n".join(json.dumps(row) for row in rows).encode()


def test_every_kind_of_file_gives_the_same_columns(tmp_path: Path) -> None:
    table = pa.table(COLUMNS)
    (tmp_path / "t.csv").write_text(CSV, encoding="utf-8")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    (tmp_path / "t.jsonl").write_bytes(jsonl(COLUMNS))
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(jsonl(COLUMNS)))
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, str(tmp_path / "t.feather"))
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    for file in sorted(tmp_path.iterdir()):
        rows = read_rows(file.name, tmp_path)
        assert rows.columns == COLUMNS, file.name
        assert [rows.origin(index) for index in range(3)] == [f"{file.name}:{n}" for n in (1, 2, 3)]


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "d" / "sub").mkdir(parents=True)
    (tmp_path / "d" / "b.csv").write_text("text,label\nb1,x\nb2,y\n")
    (tmp_path / "d" / "a.jsonl").write_text('{"label": "x", "text": "a1"}\n')
    (tmp_path / "d" / "sub" / "c.tsv").write_text("text\tlabel\nc1\ty\n")
    (tmp_path / "d" / "README.md").write_text("no data")
    (tmp_path / "d" / ".hidden.csv").write_text("no,data\n")
    rows = read_rows("d", tmp_path)
    assert rows.column("text", "data.text") == ["a1", "b1", "b2", "c1"]
    assert [rows.origin(index) for index in range(4)] == ["a.jsonl:1", "b.csv:1", "b.csv:2", "sub/c.tsv:1"]


def test_a_folder_with_other_columns_names_file_and_column(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.csv").write_text("text,label\na1,x\n")
    (tmp_path / "d" / "b.csv").write_text("text,labels\nb1,x\n")
    with pytest.raises(DataError, match=r"'label', 'labels' in only one of a\.csv and b\.csv"):
        read_rows("d", tmp_path)


def test_words_for_missing_stay_words(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, "t.csv", b"text,label\nnull,NA\nn/a,None\nNaN,\n1.50,007\n")
    assert rows.columns == {"text": ["null", "n/a", "NaN", "1.50"], "label": ["NA", "None", "", "007"]}


def test_a_tsv_has_no_quoting(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, "t.tsv", b'text\tlabel\nFirst\ta\n"Second\tb\nThird "x"\tc\nFourth\td\n')
    assert rows.columns == {
        "text": ["First", '"Second', 'Third "x"', "Fourth"],
        "label": ["a", "b", "c", "d"],
    }


def test_what_a_european_spreadsheet_writes_is_read_and_said(tmp_path: Path, listener: Listener) -> None:
    (tmp_path / "a.csv").write_bytes(b"sep=;\r\ntext;label\r\none, two;a\r\nthree;b\r\n")
    (tmp_path / "b.csv").write_bytes("text\tlabel\r\none, two\ta\r\nthree\tb\r\n".encode("utf-16"))
    (tmp_path / "c.csv").write_bytes(b"text;label\r\none, two;a\r\nthree;b\r\n")
    for name, said in (("a.csv", "';'"), ("b.csv", "UTF-16"), ("c.csv", "';'")):
        rows = read_rows(name, tmp_path, progress=listener)
        assert rows.columns == {"text": ["one, two", "three"], "label": ["a", "b"]}
        assert any(name in line and said in line for line in listener.said)
        assert any(said in note for note in rows.notes)


def test_a_set_separator_is_used(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, "t.csv", b"text|label\na,b;c|x\n", separator="|")
    assert rows.columns == {"text": ["a,b;c"], "label": ["x"]}


def test_one_column_may_hold_empty_lines(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, "t.csv", b"text\none\n\nthree\n").columns == {"text": ["one", "", "three"]}


def test_blank_lines_between_columns_are_no_rows(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, "t.csv", b"text,label\n\none,a\n\n\n")
    assert rows.columns == {"text": ["one"], "label": ["a"]}


def test_a_large_value_fits(tmp_path: Path) -> None:
    text = "word\n" * 400_000
    rows = read_bytes(tmp_path, "t.csv", f'text,label\n"{text}",a\nshort,b\n'.encode())
    assert rows.columns["text"] == [text, "short"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_unicode_encodings_are_found(tmp_path: Path, encoding: str) -> None:
    content = "text,label\nschöner Film,a\n好看,b\n".encode(encoding)
    assert read_bytes(tmp_path, "t.csv", content).columns["text"] == ["schöner Film", "好看"]


@pytest.mark.parametrize(
    ("encoding", "texts"),
    [
        ("cp1252", ["Ein schöner Film für die ganze Familie", "Größe und Stärke", "naïve déjà vu"] * 5),
        ("gb18030", ["这部电影真的很好看，我非常喜欢", "太难看了，完全浪费时间"] * 5),
    ],
)
def test_other_encodings_are_guessed_and_said(
    tmp_path: Path, listener: Listener, encoding: str, texts: list[str]
) -> None:
    lines = "".join(f"{text},a\n" for text in texts)
    (tmp_path / "t.csv").write_bytes(f"text,label\n{lines}".encode(encoding))
    rows = read_rows("t.csv", tmp_path, progress=listener)
    assert rows.columns["text"] == texts
    assert any("not UTF-8" in line and "data.encoding" in line for line in listener.said)


def test_a_set_encoding_is_used_or_refused(tmp_path: Path) -> None:
    content = "text,label\nça,a\n".encode("cp1252")
    assert read_bytes(tmp_path, "t.csv", content, encoding="cp1252").columns["text"] == ["ça"]
    with pytest.raises(DataError, match="line 2"):
        read_bytes(tmp_path, "t.csv", content, encoding="utf-8")
    with pytest.raises(DataError, match="latin-wrong"):
        read_bytes(tmp_path, "t.csv", content, encoding="latin-wrong")


def test_a_broken_byte_in_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    good = "".join(f"schöner Film {number},a\n" for number in range(50)).encode()
    with pytest.raises(DataError, match="line 52"):
        read_bytes(tmp_path, "t.csv", b"text,label\n" + good + b"ca\xe9,b\n")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"text,label\none,a\ntwo,b,c\n", r"2 values.*3 in row 2 below.*two,b,c"),
        ("t.tsv", b"text\tlabel\none\n", r"2 values separated by tab.*1 in row 1 below"),
        ("t.csv", b"text,text\na,b\n", "'text' twice"),
        ("t.csv", b"", "the empty file"),
        ("t.csv", b"text,label\n", "header only"),
        ("t.jsonl", b'{"text": "a"}\n{"text": \n', "line 2"),
        ("t.jsonl", b'["a", "b"]\n', "line 1"),
        ("t.parquet", b"PAR1 no", "cannot be read"),
        ("t.arrow", b"ARROW1 no", "cannot be read"),
        ("t.csv.gz", gzip.compress(b"text,label\na,b\n" * 99)[:-20], "half-copied"),
        ("t.xlsx", b"PK", "t.xlsx.*Known endings"),
    ],
)
def test_what_cannot_be_read_is_a_clear_error(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_bytes(tmp_path, name, content)


def test_what_is_not_there_is_named_with_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_text("text\n")
    with pytest.raises(DataError, match=r"'review\.csv'.*Did you mean 'reviews\.csv'"):
        read_rows("review.csv", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="none in"):
        read_rows("empty", tmp_path)


def test_a_missing_column_names_the_nearest(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, "t.csv", b"texts,label\na,b\n")
    with pytest.raises(DataError, match=r"'text' \(data\.text\).*Did you mean 'texts'"):
        rows.column("text", "data.text")


def test_a_file_of_one_column_gets_a_hint_at_the_separator(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, "t.csv", b"text;label\na;b\n", separator=",")
    with pytest.raises(DataError, match=r"looks like ';', set data\.separator"):
        rows.column("text", "data.text")


def test_an_unclosed_quotation_mark_swallows_no_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="lines 3 to 4"):
        read_bytes(tmp_path, "t.csv", b'text,label\nzero,a\n"one,a\n"two",b\nthree,c\n')
    with pytest.raises(DataError, match="line 2 that is not closed"):
        read_bytes(tmp_path, "t.csv", b'text,label\n"one,a\ntwo,b\n')


def test_marks_inside_a_value_are_read_as_people_meant(tmp_path: Path) -> None:
    content = b'text,label\n5" tv,a\na "b" c,a\n"two\nlines, ""quoted""",b\n"","c"\n'
    assert read_bytes(tmp_path, "t.csv", content).columns == {
        "text": ['5" tv', 'a "b" c', 'two\nlines, "quoted"', ""],
        "label": ["a", "a", "b", "c"],
    }


def test_blanks_around_column_names_go(tmp_path: Path) -> None:
    assert list(read_bytes(tmp_path, "t.csv", b"text , label\na,b\n").columns) == ["text", "label"]


def test_old_line_ends_are_read(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, "t.csv", b"text,label\rone,a\rtwo,b\r").columns["text"] == ["one", "two"]


def test_a_number_too_long_for_python_is_an_error_with_its_line(tmp_path: Path) -> None:
    content = b'{"text": "one", "label": 1}\n{"text": "two", "label": ' + b"1" * 5000 + b"}\n"
    with pytest.raises(DataError, match="in line 2"):
        read_bytes(tmp_path, "t.jsonl", content)


def test_a_table_with_two_columns_of_one_name_is_refused_like_a_csv(tmp_path: Path) -> None:
    columns = [pa.array(["one"]), pa.array(["a"]), pa.array(["b"])]
    pq.write_table(pa.Table.from_arrays(columns, ["text", "label", "label"]), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet must have its own name, but got 'label' twice"):
        read_rows("t.parquet", tmp_path)


def test_a_time_beyond_python_does_not_spoil_the_columns_beside_it(tmp_path: Path) -> None:
    table = pa.table({**COLUMNS, "when": pa.array([0, 10**12, None], pa.timestamp("s"))})
    pq.write_table(table, tmp_path / "t.parquet")
    rows = read_rows("t.parquet", tmp_path)
    assert rows.columns["text"] == COLUMNS["text"]
    assert isinstance(rows.columns["when"][1], str)
    assert rows.columns["when"][2] is None


@pytest.mark.parametrize("mark", ["；", "\0", "\n", '"'])
def test_a_separator_that_no_table_can_have_is_refused_by_name(tmp_path: Path, mark: str) -> None:
    with pytest.raises(DataError, match="one plain ASCII character") as caught:
        read_bytes(tmp_path, "t.csv", CSV.encode(), separator=mark)
    assert repr(mark) in str(caught.value)


@pytest.mark.parametrize("path", ["a" * 5000 + ".csv", "~nobody-of-this-name/t.csv", "a\0b.csv"])
def test_a_path_that_the_system_refuses_is_data_that_is_not_there(tmp_path: Path, path: str) -> None:
    with pytest.raises(DataError, match="The data must be there"):
        read_rows(path, tmp_path)
