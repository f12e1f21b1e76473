from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest

from tests.serve.bundles import MODEL, TEXTS
from tests.serve.clients import ask, open_socket, predict, raw_request, read_answer, wait_until
from textmill.core.decision import SINGLE
from textmill.core.types import Scores, Task, Text
from textmill.encode.long_text import Cut
from textmill.encode.padding import Encoded
from textmill.serve.config import ServeConfig
from textmill.serve.doors.predict import PREDICT_PATH, PredictDoor
from textmill.serve.lifecycle import Route, Router
from textmill.serve.metrics import Metrics
from textmill.serve.server import start_server
from textmill.serve.version import LoadedVersion

PATH = f"/v1/models/{MODEL}:predict"


def test_answers_are_the_models_own_in_the_order_asked(quiet):
    shelf, server = quiet
    answer = predict(server.url, list(TEXTS))
    assert answer.status == 200
    assert answer.version == 1
    assert answer.headers["x-model-digest"] == shelf.store.bundle(1).manifest.digest
    expected = shelf.expected(1)[1]
    given = [[row["scores"][label] for label in expected.labels] for row in answer.json["predictions"]]
    np.testing.assert_allclose(given, expected.scores, atol=1e-4)
    best = [expected.labels[index] for index in expected.scores.argmax(axis=1)]
    assert [row["label"] for row in answer.json["predictions"]] == best


def test_a_version_may_be_named(quiet):
    _, server = quiet
    assert predict(server.url, ["good"], version=1).version == 1
    assert predict(server.url, ["good"], version=7).status == 404


def test_no_instances_give_no_predictions(quiet):
    _, server = quiet
    answer = predict(server.url, [])
    assert (answer.status, answer.json, answer.version) == (200, {"predictions": []}, 1)


def test_half_an_emoji_harms_neither_its_request_nor_the_others(quiet):
    _, server = quiet
    bodies = [b'{"instances": ["ok", "\\ud83d", "ok"]}', *[b'{"instances": ["good film"]}'] * 20]
    with ThreadPoolExecutor(21) as pool:
        first, *others = pool.map(lambda body: ask(server.url, "POST", PATH, body), bodies)
    assert (first.status, len(first.json["predictions"])) == (200, 3)
    assert {other.status for other in others} == {200}
    same = ask(server.url, "POST", PATH, '{"instances": ["ok", "\ufffd", "ok"]}'.encode())
    assert [row["label"] for row in same.json["predictions"]] == [
        row["label"] for row in first.json["predictions"]
    ]
    assert ask(server.url, "POST", PATH, b'{"\\ud83d": ["a"]}').status == 400
    assert ask(server.url, "POST", "/v1/models/%ED%A0%BD:predict", b"{}").status == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", PATH, b"no json", 400),
        ("POST", PATH, b"", 400),
        ("POST", PATH, b"[" * 200_000, 400),
        ("POST", PATH, b'{"instances": "good film"}', 400),
        ("POST", PATH, b'{"instances": [["good", "film"]]}', 400),
        ("POST", PATH, b'{"instances": [5]}', 400),
        ("POST", PATH, b'{"instances": [null]}', 400),
        ("POST", PATH, b'{"instances": [{"text": "a", "extra": 1}]}', 400),
        ("POST", PATH, b'{"instances": ["a"], "inputs": ["a"]}', 400),
        ("POST", PATH, json.dumps({"instances": ["a"] * 257}).encode(), 413),
        ("POST", PATH, json.dumps({"instances": ["a" * 100_001]}).encode(), 413),
        ("POST", PATH, b" " * (1024 * 1024 + 1), 413),
        ("GET", PATH, None, 405),
        ("PUT", PATH, b"{}", 405),
        ("POST", "/v1/models/other:predict", b'{"instances": ["a"]}', 404),
        ("POST", f"/v1/models/{MODEL}/versions/9:predict", b'{"instances": ["a"]}', 404),
        ("POST", f"/v1/models/{MODEL}/versions/0x1:predict", b'{"instances": ["a"]}', 404),
        ("POST", f"/v1/models/{MODEL}:classify", b'{"instances": ["a"]}', 404),
        ("POST", "/v1/models/..%2f..%2fetc:predict", b'{"instances": ["a"]}', 404),
        ("POST", f"/v1/models/%2e%2e/{MODEL}:predict", b'{"instances": ["a"]}', 404),
        ("POST", f"/v1/models/{MODEL}%00:predict", b'{"instances": ["a"]}', 404),
        ("POST", f"/v1/models/{MODEL}%0a:predict", b'{"instances": ["a"]}', 404),
    ],
)
def test_a_bad_request_gets_its_4xx_and_the_server_goes_on(quiet, method, path, body, status):
    _, server = quiet
    answer = ask(server.url, method, path, body)
    assert answer.status == status
    assert set(answer.json["error"]) == {"rule", "got", "fix"}
    assert predict(server.url, ["good"]).status == 200


def test_a_compressed_body_is_refused(quiet):
    _, server = quiet
    answer = ask(server.url, "POST", PATH, b"x", **{"Content-Encoding": "gzip"})
    assert answer.status == 415


def test_pipelined_requests_are_answered_in_order(quiet):
    _, server = quiet
    with open_socket(server.url) as link, link.makefile("rb") as stream:
        texts = ["word " * 3000, "good", "bad film"]
        link.sendall(b"".join(raw_request(text) for text in texts))
        answers = [read_answer(stream) for _ in texts]
    alone = [predict(server.url, [text]).json["predictions"][0]["label"] for text in texts]
    assert [answer.json["predictions"][0]["label"] for answer in answers] == alone
    assert {answer.status for answer in answers} == {200}


def test_nothing_is_answered_after_connection_close(quiet):
    _, server = quiet
    with open_socket(server.url) as link, link.makefile("rb") as stream:
        link.sendall(raw_request("good", "Connection: close") + raw_request("bad"))
        assert read_answer(stream).status == 200
        assert stream.read() == b""


def test_a_body_that_does_not_come_ends_with_408(shelf, config):
    shelf.publish(1, live=True)
    hasty = config.model_copy(update={"body_timeout_s": 0.2})
    with (
        start_server(shelf.root, [MODEL], hasty) as server,
        open_socket(server.url) as link,
        link.makefile("rb") as stream,
    ):
        link.sendall(raw_request("good")[:-5])
        answer = read_answer(stream)
        assert answer.status == 408
        assert answer.headers["connection"] == "close"


@pytest.mark.slow
def test_a_full_queue_answers_429_and_what_was_accepted_is_answered(shelf, config):
    shelf.publish(1, live=True)
    small = config.model_copy(update={"max_queue_items": 8, "max_batch_rows": 1})
    many = list(TEXTS[:32]) * 4
    with start_server(shelf.root, [MODEL], small) as server, ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda _: predict(server.url, many), range(96)))
    codes = {answer.status for answer in answers}
    assert codes == {200, 429}
    for answer in answers:
        if answer.status == 200:
            assert len(answer.json["predictions"]) == len(many)
        else:
            assert answer.headers["retry-after"] == "1"


def test_a_client_that_has_gone_leaves_nothing_behind(quiet):
    _, server = quiet
    body = json.dumps({"instances": list(TEXTS) * 4}).encode()
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(20):
        link = open_socket(server.url)
        link.sendall(head + body)
        # A reset, as from a client that was killed.
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.close()

    def is_empty() -> bool:
        (version,) = ask(server.url, "GET", "/v1/models").json["models"][MODEL]["versions"]
        return version["open_requests"] == version["waiting_texts"] == 0

    wait_until(is_empty)
    assert predict(server.url, ["good"]).status == 200


@pytest.mark.slow
def test_the_keep_alive_timer_starts_only_when_the_connection_is_idle(shelf):
    shelf.publish(1, live=True)
    config = ServeConfig(port=0, admin_port=0, threads=1, keep_alive_s=1, max_batch_rows=1)
    with (
        start_server(shelf.root, [MODEL], config) as server,
        open_socket(server.url) as link,
        link.makefile("rb") as stream,
    ):
        for _ in range(3):
            link.sendall(raw_request("good"))
            assert read_answer(stream).status == 200
            time.sleep(0.7)
        begun = time.monotonic()
        assert stream.read() == b""
        assert time.monotonic() - begun < 3


def test_long_texts_beyond_what_can_be_cut_in_time_are_answered_429(shelf):
    class Waits:
        def __init__(self) -> None:
            self.go = threading.Event()

        task: Task = "classification"
        decision = SINGLE

        def cut(self, texts: Sequence[Text]) -> Cut:
            self.go.wait(20)
            rows = [Encoded(np.array([1], np.int32), None) for _ in texts]
            return Cut(rows, np.arange(len(rows)))

        def pool(self, scores: Scores, owner: npt.NDArray[np.int64]) -> Scores:
            raise AssertionError("each text is one row")

    async def work() -> list[int]:
        shelf.publish(1)
        encoder, router, metrics = Waits(), Router(), Metrics()
        config = ServeConfig(threads=1, max_chars=3_000_000, max_body_bytes=4_000_000)
        version = LoadedVersion(shelf.store.bundle(1), encoder, config, metrics, lambda _: None)
        await version.open(patient=False)
        router.replace(MODEL, Route(version, {}))
        door = PredictDoor(router, config, metrics)

        async def post(num_chars: int) -> int:
            sent = []
            body = json.dumps({"instances": ["x" * num_chars]}).encode()
            messages = [{"type": "http.request", "body": body}]

            async def receive() -> dict[str, object]:
                return messages.pop() if messages else await asyncio.Future()

            async def send(message: dict[str, object]) -> None:
                sent.append(message)

            await door({"method": "POST", "headers": []}, receive, send, PREDICT_PATH.fullmatch(PATH))
            return sent[0]["status"]

        first = asyncio.ensure_future(post(3_000_000))
        await asyncio.sleep(0.1)
        second = await post(2_000_000)
        encoder.go.set()
        codes = [await first, second, await post(2_000_000)]
        await version.close()
        return codes

    assert asyncio.run(work()) == [200, 429, 200]
