from __future__ import annotations

import socket
import time

import pytest

from tests.serve.bundles import MODEL, Shelf
from tests.serve.clients import open_socket, predict, raw_request, read_answer
from textmill.serve.connection import MAX_HEAD_BYTES
from textmill.serve.server import start_server


@pytest.fixture(scope="module")
def hasty(sources, tmp_path_factory, config):
    """The address of a server that waits for a request for one second only."""
    shelf = Shelf(sources, tmp_path_factory.mktemp("hasty") / "store")
    shelf.publish(1, live=True)
    changed = config.model_copy(update={"body_timeout_s": 1.0, "keep_alive_s": 1})
    with start_server(shelf.root, [MODEL], changed) as server:
        yield server.url


def test_a_head_that_comes_drop_by_drop_ends_with_408(hasty):
    with open_socket(hasty) as link, link.makefile("rb") as stream:
        link.sendall(b"GET /health/live HTTP/1.1\r\n")
        link.settimeout(0.2)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            link.sendall(b"X: y\r\n")
            try:
                if link.recv(1, socket.MSG_PEEK):
                    break
            except TimeoutError:
                continue
        link.settimeout(10)
        answer = read_answer(stream)
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert "head" in answer.json["error"]["rule"]
        assert stream.read() == b""


def test_a_connection_on_which_nothing_is_asked_is_closed(hasty):
    with open_socket(hasty) as link:
        link.settimeout(10)
        assert link.recv(1) == b""


@pytest.mark.parametrize("piece", [b"X: " + b"y" * 1000 + b"\r\n", b"y" * 1000])
def test_a_head_without_an_end_is_cut_off_early(quiet, piece):
    _, server = quiet
    with open_socket(server.url) as link, link.makefile("rb") as stream:
        link.sendall(b"GET /health/live HTTP/1.1\r\nX: y")
        sent = 0
        try:
            while sent < 100 * MAX_HEAD_BYTES:
                link.sendall(piece * 10)
                sent += 10 * len(piece)
            status = read_answer(stream).status
        except ConnectionError:
            status = 431  # the answer was lost in the reset of a connection that still sends
        assert status == 431
        assert sent < 100 * MAX_HEAD_BYTES
    assert predict(server.url, ["good"]).status == 200


def test_an_offer_of_http2_is_passed_over_and_the_request_answered(quiet):
    _, server = quiet
    offer = (
        "Connection: Upgrade, HTTP2-Settings",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
    )
    with open_socket(server.url) as link, link.makefile("rb") as stream:
        for headers in (offer, (), offer):
            link.sendall(raw_request("good", *headers))
            assert read_answer(stream).status == 200


def test_what_is_no_http_gets_an_answer_in_json(quiet):
    _, server = quiet
    with open_socket(server.url) as link, link.makefile("rb") as stream:
        link.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        answer = read_answer(stream)
        assert answer.status == 400
        assert set(answer.json["error"]) == {"rule", "got", "fix"}
        assert stream.read() == b""
