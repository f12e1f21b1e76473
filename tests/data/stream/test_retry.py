from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.toy import toy_examples
from tests.train.streams import as_line
from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.find_files import as_source_file
from textmill.data.read_file import read_file
from textmill.data.stream.retry import RetryingFile


class Flaky(io.BytesIO):
    """Bytes whose source breaks off at some of the reads."""

    def __init__(self, content: bytes, fails: list[bool]) -> None:
        super().__init__(content)
        self._fails = fails

    def read(self, size: int | None = -1, /) -> bytes:
        if self._fails and self._fails.pop(0):
            raise OSError("connection reset")
        return super().read(size)


def test_a_source_that_breaks_off_and_comes_back_loses_no_row(tmp_path: Path) -> None:
    examples = toy_examples(800)
    content = "".join(map(as_line, examples)).encode()
    fails = [False, True, True, False, True, False, False, True]

    def open_flaky(_: object) -> BinaryIO:
        raw = RetryingFile("t.jsonl", lambda: Flaky(content, fails), waits_s=(0, 0, 0))
        return io.BufferedReader(raw, 4096)  # type: ignore[return-value]

    file = as_source_file(str(tmp_path / "t.jsonl"), "t.jsonl")
    chunks = read_file(file, bad=BadRows(), open_file=open_flaky, block_bytes=8192)
    assert [row for chunk in chunks for row in chunk.rows.columns["id"]] == [row.id for row in examples]
    assert not fails


def test_a_source_that_stays_away_is_an_error_with_its_place() -> None:
    content = b"x" * 100
    fails = [False, *[True] * 9]
    file = RetryingFile("far.jsonl", lambda: Flaky(content, fails), waits_s=(0, 0))
    assert file.readinto(bytearray(40)) == 40
    with pytest.raises(DataError, match=r"far\.jsonl.*connection reset at byte 40 after 3 tries"):
        file.readinto(bytearray(40))
