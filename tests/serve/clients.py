"""Plain clients for tests: one request, or raw bytes on a socket."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.serve.bundles import MODEL


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def version(self) -> int:
        return int(self.headers["x-model-version"])


def ask(url: str, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, names, response.read())
    finally:
        connection.close()


def predict(url: str, instances: Any, model: str = MODEL, version: int | None = None) -> Answer:
    path = f"/v1/models/{model}" + ("" if version is None else f"/versions/{version}")
    return ask(url, "POST", f"{path}:predict", json.dumps({"instances": instances}).encode())


def raw_request(text: str, *headers: str) -> bytes:
    body = json.dumps({"instances": [text]}).encode()
    lines = [f"POST /v1/models/{MODEL}:predict HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def open_socket(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def read_answer(stream: Any) -> Answer | None:
    """Read one answer from a socket's file; None at its end."""
    line = stream.readline()
    if not line:
        return None
    headers: dict[str, str] = {}
    while (header := stream.readline().strip()) != b"":
        name, _, value = header.decode().partition(":")
        headers[name.lower()] = value.strip()
    return Answer(int(line.split()[1]), headers, stream.read(int(headers["content-length"])))


def wait_until(claim: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)
