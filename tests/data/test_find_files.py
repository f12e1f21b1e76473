"""Nothing of a data folder is passed over without a word, and nothing is read that is no data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.conftest import Listener
from tests.toy import toy_examples
from textmill.core.errors import DataError
from textmill.data.config import DataConfig
from textmill.data.find_files import find_files
from textmill.data.prepare import survey
from textmill.data.stream.open import open_stream

LINES = [f"{row.text},{row.labels[0]}" for row in toy_examples(200)]


def write(file: Path, lines: list[str]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(["text,label", *lines, ""]))


def test_a_link_to_a_folder_is_followed_once(tmp_path: Path) -> None:
    write(tmp_path / "d" / "a.csv", LINES[:100])
    write(tmp_path / "elsewhere" / "b.csv", LINES[100:])
    (tmp_path / "d" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "d")
    assert [file.name for file in find_files("d", tmp_path)] == ["a.csv", "link/b.csv"]
    assert survey(DataConfig(train="d"), tmp_path).report.sources["train"].rows == 200


def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "d" / "a.csv", LINES)
    (tmp_path / "d" / "b.csv").symlink_to(tmp_path / "moved.csv")
    with pytest.raises(DataError, match=r"link .*b\.csv, which leads to .*moved\.csv"):
        find_files("d", tmp_path)


def test_files_of_other_kinds_are_named(tmp_path: Path, listener: Listener) -> None:
    write(tmp_path / "d" / "a.csv", LINES)
    (tmp_path / "d" / "b.csv.zst").write_bytes(b"packed")
    said = "d: 1 files of other kinds are left out (b.csv.zst)"
    survey(DataConfig(train="d"), tmp_path, listener)
    assert listener.said == [said]
    open_stream(DataConfig(train="d", streaming=True), tmp_path, seed=0, progress=listener)
    assert listener.said.count(said) == 2


@pytest.mark.parametrize("path", [".", "..", "../inner"])
def test_the_cache_is_never_read_as_data(tmp_path: Path, path: str) -> None:
    base = tmp_path / "inner"
    write(base / "t.csv", LINES)
    with pytest.raises(DataError, match="folder of its own"):
        survey(DataConfig(train=path), base, cache=base / "cache")
    with pytest.raises(DataError, match="folder of its own"):
        open_stream(DataConfig(train=path, streaming=True), base, seed=0)
