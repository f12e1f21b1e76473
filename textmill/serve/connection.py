"""One connection of a client: uvicorn's HTTP protocol, with bounds on what comes before a body.

Promises: a request's head arrives within a time and a size, or the connection is answered (408, 431)
and closed; a connection on which nothing was ever asked closes like an idle one; what is no HTTP gets a
JSON answer like every other fault; an offer to change to another protocol is passed over, as HTTP
allows, and the request is answered (Java's client offers HTTP/2 with every first request).
What is not covered: bodies (`doors/predict.py`), TLS.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from textmill.core.errors import RequestError
from textmill.serve.doors.answer import error_body

if TYPE_CHECKING:
    import uvicorn
    from uvicorn.server import ServerState

MAX_HEAD_BYTES = 64 * 1024
"""Most bytes of a request line with its headers."""
_UPGRADE = re.compile(rb"\r\nupgrade(?=[ \t]*:)", re.IGNORECASE)
_PASSED_OVER = b"\r\nignored"
"""Of the same length; the parser takes the body away from a request with the real header."""


class Connection(HttpToolsProtocol):
    """uvicorn's protocol on httptools, bounded."""

    def __init__(self, config: uvicorn.Config, state: ServerState, head_timeout_s: float) -> None:
        super().__init__(config=config, server_state=state, app_state={})
        self._head_timeout_s = head_timeout_s
        self._is_head_open = False
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._fault: RequestError | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._unset_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; a head that goes on is timed and measured."""
        goes_on = self._is_head_open
        if b"pgrade" in data or b"PGRADE" in data:
            # In a JSON body a line cannot begin with this word.
            data = _UPGRADE.sub(_PASSED_OVER, data)
        super().data_received(data)
        if not self._is_head_open or self.transport.is_closing():
            return
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_timeout_s, self._time_out_head)
        elif goes_on:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._fault = _too_large()
                self.send_400_response("")

    def on_message_begin(self) -> None:
        """Begin a head."""
        self._is_head_open = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        # Together with what `data_received` counts at most doubled: headers are far below the limit.
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._fault = _too_large()
            raise self._fault
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the head; the request begins."""
        self._is_head_open = False
        self._unset_head_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request in JSON, and close."""
        if self.transport.is_closing():
            return
        fault = self._fault or RequestError(
            "A request must be HTTP/1.1", got="other bytes", fix="Send it with an HTTP client."
        )
        body = error_body(fault)
        head = [STATUS_LINE[fault.status]]
        for name, value in self.server_state.default_headers:
            head += [name, b": ", value, b"\r\n"]
        head += [b"content-type: application/json\r\ncontent-length: ", str(len(body)).encode()]
        head += [b"\r\nconnection: close\r\n\r\n"]
        self.transport.write(b"".join(head) + body)
        self.transport.close()

    def _time_out_head(self) -> None:
        self._head_timer = None
        if self.cycle is not None and not self.cycle.response_complete:
            # The client waits for an earlier answer, which must not be cut off.
            self._head_timer = self.loop.call_later(self._head_timeout_s, self._time_out_head)
            return
        self._fault = RequestError(
            f"The head of a request must arrive within {self._head_timeout_s:g} s",
            got="a part of it by then",
            fix="Send the whole request at once.",
            status=408,
        )
        self.send_400_response("")

    def _unset_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _too_large() -> RequestError:
    return RequestError(
        f"The head of a request must have at most {MAX_HEAD_BYTES} bytes",
        got="more",
        fix="Send fewer or shorter headers.",
        status=431,
    )
