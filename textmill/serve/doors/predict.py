"""The predict path: raw ASGI, as little Python for each request as can be.

`POST /v1/models/NAME[/versions/N]:predict`. Promises: a request takes its version once and is answered
by that version, named in X-Model-Version; every fault is a 4xx, 500, 503 or 504 with a reason; a
client that has gone is noticed before its texts are computed.
What is not covered: all other routes (`rest.py`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from textmill.core.errors import RequestError
from textmill.core.machine import num_cpus
from textmill.serve.config import ServeConfig
from textmill.serve.doors.answer import send_error, send_json
from textmill.serve.doors.instances import parse_instances
from textmill.serve.faults import too_late
from textmill.serve.lifecycle import Router
from textmill.serve.metrics import Metrics
from textmill.serve.pending import Pending
from textmill.serve.windows import check_windows, pooled

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from textmill.core.decision import Decision
    from textmill.core.types import Text
    from textmill.encode.long_text import Cut
    from textmill.serve.windows import Encoder

logger = logging.getLogger(__name__)

PREDICT_PATH = re.compile(
    r"/v1/models/(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,63})(?:/versions/(?P<version>[0-9]{1,9}))?:predict"
)
_CHARS_IN_LOOP = 4_000
"""More characters than this are tokenized in a thread, so that other requests need not wait."""
_MAX_CHARS_IN_THREADS = 4_000_000
"""Most characters that may wait for that; beyond it 429, for these seconds would come before any queue."""
_DISCARD_FACTOR = 8
"""How many times the body limit is read and thrown away before a 413 closes the connection."""


class ClientGone(Exception):
    """The client closed the connection before its answer."""


class PredictDoor:
    """Answers predict requests."""

    def __init__(self, router: Router, config: ServeConfig, metrics: Metrics) -> None:
        self._router = router
        self._config = config
        self._metrics = metrics
        self._heads: dict[tuple[str, ...], list[str]] = {}
        # Threads of their own: an update must not wait behind long texts.
        self._threads = ThreadPoolExecutor(num_cpus(), thread_name_prefix="encode")
        self._chars_in_threads = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send, found: re.Match[str]) -> None:
        """Answer one request whose path is `found`."""
        begun = time.perf_counter()
        model = found["name"] if found["name"] in self._router.table else "unknown"
        status = 200
        try:
            await self._answer(scope, receive, send, found)
        except RequestError as err:
            status = err.status
            allow = [(b"allow", b"POST")] if status == 405 else []
            close = [(b"connection", b"close")] if status in (408, 413) else []
            await send_error(send, err, [*allow, *close])
        except ClientGone:
            status = 499
        self._metrics.answered(model, status, time.perf_counter() - begun)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, found: re.Match[str]) -> None:
        if scope["method"] != "POST":
            raise RequestError(
                "Predictions are asked for by POST",
                got=str(scope["method"])[:20],
                fix="Send a POST request with a JSON body.",
                status=405,
            )
        number = found["version"]
        # The name is looked at first, so that a wrong address is told even with a wrong body.
        self._router.find(found["name"], None if number is None else int(number))
        body = await self._read_body(scope, receive)
        # From here to `submit` nothing is awaited but long tokenization: one request, one version.
        version = self._router.find(found["name"], None if number is None else int(number))
        encoder = version.encoder
        texts = parse_instances(body, self._config, is_pairs=encoder.task == "pairs")
        if not texts:
            await send_json(send, 200, b'{"predictions": []}', version.headers)
            return
        with version.visit():
            cut = await self._cut(encoder, texts)
            check_windows(cut, len(texts), self._config.max_windows)
            rows = await self._wait(version.submit(cut), receive)
        scores = pooled(encoder, rows, cut, len(texts))
        await send_json(send, 200, self._body(version.labels, scores, encoder.decision), version.headers)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes:
        limit = self._config.max_body_bytes
        for name, value in scope["headers"]:
            if name == b"content-encoding" and value.lower() != b"identity":
                raise RequestError(
                    "A body must not be compressed", got=repr(value[:40]), fix="Send it as it is.", status=415
                )
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._config.body_timeout_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    piece: bytes = message.get("body", b"")
                    size += len(piece)
                    if size <= limit:
                        pieces.append(piece)
                    # An early 413 would be lost in the reset of a connection that still sends.
                    if not message.get("more_body", False) or size > limit * _DISCARD_FACTOR:
                        break
        except TimeoutError:
            raise RequestError(
                f"A body must arrive within {self._config.body_timeout_s:g} s",
                got=f"{size} bytes by then",
                fix="Send the whole body at once.",
                status=408,
            ) from None
        if size > limit:
            raise RequestError(
                f"A body must have at most {limit} bytes",
                got=f"{size} or more",
                fix="Send the texts in several requests.",
                status=413,
            )
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _cut(self, encoder: Encoder, texts: Sequence[Text]) -> Cut:
        num_chars = sum(len(text) if isinstance(text, str) else len(text[0]) + len(text[1]) for text in texts)
        if num_chars <= _CHARS_IN_LOOP:
            return encoder.cut(texts)
        waiting = self._chars_in_threads
        if waiting and waiting + num_chars > _MAX_CHARS_IN_THREADS:
            raise RequestError(
                f"At most {_MAX_CHARS_IN_THREADS} characters of long texts may wait",
                got=f"{waiting} waiting already",
                fix="Send the request again after the time in Retry-After, or shorter texts.",
                status=429,
            )
        self._chars_in_threads += num_chars
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._config.request_timeout_s):
                return await loop.run_in_executor(self._threads, encoder.cut, texts)
        except TimeoutError:
            got = "texts that were not cut into tokens by then"
            raise too_late(self._config.request_timeout_s, got) from None
        finally:
            self._chars_in_threads -= num_chars

    async def _wait(self, pending: Pending, receive: Receive) -> list[list[float]]:
        """Return the scores; stop waiting when the client goes."""
        watch = asyncio.ensure_future(_until_gone(receive, pending))
        try:
            return await pending.answer
        except asyncio.CancelledError:
            if not pending.answer.cancelled():
                pending.abandon()  # the server itself gives this request up
                raise
            raise ClientGone from None
        finally:
            watch.cancel()

    def _body(self, labels: tuple[str, ...], rows: list[list[float]], decision: Decision) -> bytes:
        heads = self._heads.get(labels)
        if heads is None:
            heads = self._heads[labels] = [json.dumps(label) for label in labels]
        chosen = _chosen(heads, rows, decision)
        parts = []
        for row, answer in zip(rows, chosen, strict=True):
            # Nine digits give every float32 back exactly.
            scores = ", ".join([f"{head}: {value:.9g}" for head, value in zip(heads, row, strict=True)])
            parts.append(f'{{{answer}, "scores": {{{scores}}}}}')
        return f'{{"predictions": [{", ".join(parts)}]}}'.encode("ascii")


def _chosen(heads: list[str], rows: list[list[float]], decision: Decision) -> list[str]:
    """Return the JSON of what is chosen in each row: one label, or a list of labels, maybe empty."""
    if not decision.is_multilabel:
        return [f'"label": {heads[row.index(max(row))]}' for row in rows]
    names = decision.names(np.array(rows, dtype=np.float32), heads)
    return [f'"labels": [{", ".join(row)}]' for row in names]


async def _until_gone(receive: Any, pending: Pending) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    if not pending.is_over:
        pending.abandon()
