"""How every door answers: JSON bodies, and errors with the rule, the value got and the next step."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from textmill.core.errors import RequestError

if TYPE_CHECKING:
    from starlette.types import Send

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

RETRY_AFTER_S = 1
_RETRY_CODES = (429, 503)


def error_body(error: RequestError) -> bytes:
    """Return the JSON body of an error; ASCII only, so that half an emoji in a value does no harm."""
    table = {
        "error": {"rule": error.rule, "got": error.got, "fix": error.fix},
        "message": str(error),
    }
    return json.dumps(table).encode("ascii")


def error_headers(error: RequestError) -> list[tuple[bytes, bytes]]:
    """Return the headers that belong to an error's status."""
    if error.status in _RETRY_CODES:
        return [(b"retry-after", str(RETRY_AFTER_S).encode())]
    return []


def json_bytes(value: Any) -> bytes:
    """Return a JSON body; NaN is a fault of ours."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False).encode("ascii")


async def send_json(send: Send, status: int, body: bytes, headers: Headers = ()) -> None:
    """Send a whole JSON answer."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"x-content-type-options", b"nosniff"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def send_error(send: Send, error: RequestError, headers: Headers = ()) -> None:
    """Send an error."""
    await send_json(send, error.status, error_body(error), [*error_headers(error), *headers])
