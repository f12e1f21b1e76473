from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import BinaryIO

import pytest

from tests.toy import toy_examples
from tests.train.streams import as_line
from textmill.core.errors import DataError
from textmill.data.bad_rows import BadRows
from textmill.data.find_files import as_source_file
from textmill.data.read_file import read_file
from textmill.data.stream.remote import remote_files
from textmill.data.stream.retry import RetryingFile
from textmill.data.stream.source import FileSource, open_source


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


def test_an_end_before_the_told_size_is_no_end() -> None:
    contents = [b"x" * 60, b"x" * 100]
    file = RetryingFile("t.csv", lambda: io.BytesIO(contents.pop(0)), waits_s=(0,), size=100)
    assert len(io.BufferedReader(file).read()) == 100  # type: ignore[arg-type]
    short = RetryingFile("t.csv", lambda: io.BytesIO(b"x" * 60), waits_s=(0,), size=100)
    with pytest.raises(DataError, match="it ends at byte 60 of 100"):
        io.BufferedReader(short).read()  # type: ignore[arg-type]


@contextmanager
def breaking_server(content: bytes, breaks: set[int]) -> Iterator[str]:
    """Serve one file over HTTP; the answers with the numbers in `breaks` stop half-way."""
    numbers = iter(range(1000))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(is_head=True)

        def do_GET(self) -> None:
            self.answer(is_head=False)

        def answer(self, is_head: bool) -> None:
            begin, _, end = (self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")
            part = content[int(begin) : int(end) + 1 if end else None]
            self.send_response(206 if self.headers.get("Range") else 200)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(part)))
            self.send_header("Content-Range", f"bytes {begin}-{int(begin) + len(part) - 1}/{len(content)}")
            self.end_headers()
            if is_head:
                return
            is_broken = next(numbers) in breaks
            self.wfile.write(part[: len(part) // 2] if is_broken else part)
            self.close_connection = self.close_connection or is_broken

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(ConnectionError):  # the other side may leave in the middle of an answer
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_url_is_asked_again_while_its_server_is_away(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/t.jsonl"
        with pytest.raises(DataError, match=r"must come back.* after 3 tries"):
            remote_files(url, waits_s=(0, 0))


@pytest.mark.parametrize("breaks", [set(), {0, 1}, {1, 3, 5}])
def test_answers_over_http_that_stop_half_way_lose_no_row(tmp_path: Path, breaks: set[int]) -> None:
    examples = toy_examples(800)
    with breaking_server("".join(map(as_line, examples)).encode(), breaks) as url:
        source = open_source(f"{url}/t.jsonl", tmp_path)
        assert isinstance(source, FileSource)
        source = replace(source, waits_s=(0, 0, 0, 0))
        source.fingerprint()
        source.count()
        chunks = list(source.read(0, None, BadRows()))
    assert [row for chunk in chunks for row in chunk.rows.columns["id"]] == [row.id for row in examples]
