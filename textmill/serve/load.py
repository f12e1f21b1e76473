"""A load client that checks every answer and keeps a receipt.

Lean on purpose (a raw protocol with httptools' response parser), so that it takes little from the
machine it measures. Promises: nothing is sent twice and nothing is retried, so a lost request is seen;
each answer is compared with the expected scores of the version that it names. Clients send one request
after another on a connection of their own (closed loop), or all together at a steady rate (open
loop: latency is counted from the moment a request was due, also when all connections were busy).
What is not covered: TLS, other hosts' names than the URL's.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import httptools
import numpy as np
import numpy.typing as npt
import uvloop

from textmill.core.decision import SINGLE, Decision
from textmill.core.errors import ServeError
from textmill.core.types import Text
from textmill.serve.receipt import Receipt

TOLERANCE = 1e-3
"""Largest difference of a probability between an answer and what is expected."""
_ANSWER_TIMEOUT_S = 60.0
_MAX_OPEN = 64


@dataclass(frozen=True, slots=True)
class Expected:
    """The right answers of one version."""

    labels: tuple[str, ...]
    scores: npt.NDArray[np.float32]
    """(N, C), a row for each text of the load."""
    decision: Decision = SINGLE
    """How the scores become the labels of an answer."""


def run_load(
    url: str,
    model: str,
    texts: Sequence[Text],
    *,
    clients: int | None = None,
    rate_s: float | None = None,
    duration_s: float,
    expected: Mapping[int, Expected] | None = None,
    path: str | None = None,
    stop: threading.Event | None = None,
    receipt_file: Path | None = None,
) -> Receipt:
    """Put a load on a server and return the receipt; blocks.

    Args:
        url: the server, such as http://127.0.0.1:8080.
        model: the model's name.
        texts: texts or pairs of texts, sent one a request, in turn.
        clients: closed loop with so many connections.
        rate_s: open loop with so many requests a second; exactly one of the two is given.
        duration_s: seconds during which requests are sent; all of them are waited for.
        expected: the right answers by version; None: not compared.
        path: another path than the model's predict path (for other servers with the same body).
        stop: ends the load before its time.
        receipt_file: where the receipt is written at the end.

    Raises:
        ServeError: nobody listens at `url`.
    """
    assert (clients is None) != (rate_s is None), "either clients or rate_s"
    load = _Load(url, path or f"/v1/models/{model}:predict", texts, expected, stop)
    if clients is not None:
        uvloop.run(load.closed_loop(clients, duration_s))
    else:
        assert rate_s is not None, "either clients or rate_s"
        uvloop.run(load.open_loop(rate_s, duration_s))
    if receipt_file is not None:
        load.receipt.write(receipt_file)
    return load.receipt


class BackgroundLoad:
    """The same load in a thread of its own: `start`, work, `end` returns the receipt."""

    def __init__(
        self,
        url: str,
        model: str,
        texts: Sequence[Text],
        *,
        clients: int | None = None,
        rate_s: float | None = None,
        expected: Mapping[int, Expected] | None = None,
        receipt_file: Path | None = None,
    ) -> None:
        """Describe the load; see `run_load`."""
        self._stop = threading.Event()
        self._result: list[Receipt] = []
        self._fault: list[BaseException] = []

        def work() -> None:
            try:
                self._result.append(
                    run_load(
                        url,
                        model,
                        texts,
                        clients=clients,
                        rate_s=rate_s,
                        duration_s=float("inf"),
                        expected=expected,
                        stop=self._stop,
                        receipt_file=receipt_file,
                    )
                )
            except BaseException as err:
                self._fault.append(err)

        self._thread = threading.Thread(target=work, name="load", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def end(self) -> Receipt:
        """Stop sending, wait for the last answers, return the receipt.

        Raises:
            ServeError: nobody listened.
        """
        self._stop.set()
        self._thread.join()
        if self._fault:
            raise self._fault[0]
        return self._result[0]


class _Load:
    def __init__(
        self,
        url: str,
        path: str,
        texts: Sequence[Text],
        expected: Mapping[int, Expected] | None,
        stop: threading.Event | None,
    ) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None, url
        assert parts.port is not None, url
        self.host, self.port = parts.hostname, parts.port
        self._requests = [_request(parts.netloc, path, text) for text in texts]
        self._expected = expected
        self._stop = stop
        self._next = 0
        self._begun = time.perf_counter()
        self.receipt = Receipt(started=time.time())

    async def closed_loop(self, clients: int, duration_s: float) -> None:
        connections = await asyncio.gather(*(self._connect() for _ in range(clients)))
        self._begun = time.perf_counter()
        await asyncio.gather(*(self._send_in_turn(each, duration_s) for each in connections))
        self.receipt.seconds = time.perf_counter() - self._begun

    async def open_loop(self, rate_s: float, duration_s: float) -> None:
        idle: deque[_Connection] = deque([await self._connect()])
        waiting: set[asyncio.Task[None]] = set()
        places = asyncio.Semaphore(_MAX_OPEN)
        self._begun = time.perf_counter()
        due = 0.0
        while due < duration_s and not self._is_stopped():
            await asyncio.sleep(max(0.0, due - self._now()))
            task = asyncio.create_task(self._send_when_free(idle, places, due))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            due += 1 / rate_s
        await asyncio.gather(*waiting)
        for connection in idle:
            connection.close()
        self.receipt.seconds = time.perf_counter() - self._begun

    async def _send_in_turn(self, connection: _Connection, duration_s: float) -> None:
        while self._now() < duration_s and not self._is_stopped():
            if connection.is_closed:
                reopened = await self._reconnect()
                if reopened is None:
                    return
                connection = reopened
            await self._send(connection, self._now())
        connection.close()

    async def _send_when_free(self, idle: deque[_Connection], places: asyncio.Semaphore, due: float) -> None:
        async with places:
            connection = idle.popleft() if idle else None
            if connection is None or connection.is_closed:
                connection = await self._reconnect()
            if connection is None:
                return
            await self._send(connection, due)
            if not connection.is_closed:
                idle.append(connection)

    async def _send(self, connection: _Connection, due: float) -> None:
        index = self._next % len(self._requests)
        self._next += 1
        self.receipt.sent += 1
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                await connection.ask(self._requests[index])
        except TimeoutError:
            connection.close()
            self.receipt.fail(f"no answer within {_ANSWER_TIMEOUT_S:g} s")
            return
        except ConnectionError as err:
            self.receipt.fail(str(err))
            return
        now = self._now()
        if connection.status != 200:
            self.receipt.fail(f"status {connection.status}: {connection.body[:160].decode(errors='replace')}")
            return
        version = connection.version
        self.receipt.answer(version, now, now - due)
        if connection.has_left(version):
            self.receipt.went_back += 1
        if self._expected is not None:
            self._check(index, version, connection.body)

    def _check(self, index: int, version: int, body: bytes) -> None:
        assert self._expected is not None, "only expected answers are compared"
        self.receipt.checked += 1
        expected = self._expected.get(version)
        fault = "a version that is not expected" if expected is None else _compare(expected, index, body)
        if fault is not None:
            self.receipt.wrong += 1
            self.receipt.note(f"version {version}: {fault}")

    def _now(self) -> float:
        return time.perf_counter() - self._begun

    def _is_stopped(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(_Connection, self.host, self.port)
        except OSError as err:
            got = f"nobody at {self.host}:{self.port} ({err})"
            raise ServeError("A server must listen", got=got, fix="Start it first.") from err
        return connection

    async def _reconnect(self) -> _Connection | None:
        """Open a connection again; a refusal counts as a request that failed."""
        try:
            return await self._connect()
        except ServeError as err:
            self.receipt.sent += 1
            self.receipt.fail(str(err))
            await asyncio.sleep(0.05)
            return None


class _Connection(asyncio.Protocol):
    """One keep-alive connection with at most one request on it."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[None] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._seen: list[int] = []
        self.version = 0
        self.status = 0
        self.body = b""
        self.is_closed = False

    def has_left(self, version: int) -> bool:
        """Note a version; tell whether this connection had seen it and then another one."""
        if self._seen and self._seen[-1] == version:
            return False
        has_left = version in self._seen
        self._seen.append(version)
        return has_left

    async def ask(self, request: bytes) -> None:
        """Send a request and wait for the whole answer."""
        assert self._transport is not None, "not connected"
        if self.is_closed:
            raise ConnectionError("the connection was closed before the request")
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        await self._answer

    def close(self) -> None:
        self.is_closed = True
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as err:
            self._break(f"an answer that is no HTTP ({err})")

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        self._break(f"the connection was lost without an answer ({exc or 'closed'})")

    def _break(self, reason: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(reason))
        self.close()

    def on_message_begin(self) -> None:
        self._pieces = []
        self.version = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"x-model-version":
            self.version = int(value)

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.body = b"".join(self._pieces)
        if not self._parser.should_keep_alive():
            self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)


def _request(host: str, path: str, text: Text) -> bytes:
    instance = text if isinstance(text, str) else {"text": text[0], "text_pair": text[1]}
    body = json.dumps({"instances": [instance]}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _compare(expected: Expected, index: int, body: bytes) -> str | None:
    """Return what is wrong with an answer, or None."""
    try:
        (answer,) = json.loads(body)["predictions"]
        given = np.array([answer["scores"][label] for label in expected.labels])
        is_multilabel = expected.decision.is_multilabel
        named = [
            expected.labels.index(each) for each in (answer["labels"] if is_multilabel else [answer["label"]])
        ]
    except (ValueError, KeyError, TypeError) as err:
        return f"an answer of another form ({type(err).__name__})"
    right = expected.scores[index]
    distance = float(np.abs(given - right).max())
    if not distance <= TOLERANCE:
        return f"scores {distance:.2g} away from the expected ones"
    if is_multilabel:
        return _compare_sets(expected, right, named)
    # Where two classes are as good as equal either may be named.
    if right.max() - right[named[0]] > 2 * TOLERANCE:
        label, best = (expected.labels[place] for place in (named[0], int(right.argmax())))
        return f"the label {label!r} where {best!r} is expected"
    return None


def _compare_sets(expected: Expected, right: npt.NDArray[np.float32], named: list[int]) -> str | None:
    """Return which label of a multi-label answer is too much or missing, or None."""
    for place, label in enumerate(expected.labels):
        distance = float(right[place]) - expected.decision.threshold_of(place)
        # A score at the threshold may fall to either side.
        if abs(distance) > TOLERANCE and (distance > 0) != (place in named):
            return (
                f"{'no ' if distance > 0 else ''}label {label!r}, whose score is expected {distance:+.2g} off"
            )
    return None
