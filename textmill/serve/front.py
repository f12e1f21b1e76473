"""The process that owns the sockets for the whole life of the server.

Promises: a port in use is told before anything else is started; an update never closes a connection;
at the end (SIGTERM, Ctrl-C, the admin socket) the listener closes first, what is in flight is answered
with `Connection: close`, then the workers end; a second Ctrl-C ends at once.
What is not covered: TLS (put a proxy in front).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import secrets
import signal
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.server import ServerState

from textmill.core.errors import RequestError, ServeError, nearest
from textmill.core.files import disk_faults
from textmill.serve.config import ServeConfig
from textmill.serve.connection import Connection
from textmill.serve.doors.admin import admin_app
from textmill.serve.doors.answer import send_error
from textmill.serve.doors.predict import PREDICT_PATH, PredictDoor
from textmill.serve.doors.rest import rest_app
from textmill.serve.lifecycle import Keeper, Router
from textmill.serve.metrics import Metrics
from textmill.store.registry import Store, list_models

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger(__name__)

ADMIN_HOST = "127.0.0.1"
TOKEN_FILE = ".admin-token"  # noqa: S105 (the name of a file)
_LINGER_S = 1.0
"""How long idle connections may still send a request while the server ends."""
_TICK_S = 0.02


@dataclass(frozen=True, slots=True)
class Address:
    """Where a running server answers."""

    host: str
    port: int
    admin_port: int
    pid: int

    @property
    def url(self) -> str:
        """Address of the public socket."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "") else self.host  # noqa: S104
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def admin_url(self) -> str:
        """Address of the admin socket."""
        return f"http://{ADMIN_HOST}:{self.admin_port}"


class Door:
    """One listening socket with its application."""

    def __init__(self, listener: socket.socket, app: ASGIApp, config: ServeConfig) -> None:
        self._listener = listener
        self._state = ServerState()
        self._config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            timeout_keep_alive=config.keep_alive_s,
            server_header=False,
        )
        self._config.load()
        self._head_timeout_s = config.body_timeout_s
        self._server: asyncio.Server | None = None

    @property
    def num_connections(self) -> int:
        """Connections that are open."""
        return len(self._state.connections)

    async def open(self) -> None:
        """Begin to accept."""
        self.tick()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._config, self._state, self._head_timeout_s),
            sock=self._listener,
            backlog=2048,
        )

    def tick(self) -> None:
        """Keep the Date header up to date."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]

    def stop_accepting(self) -> None:
        """Close the listener; open connections stay."""
        if self._server is not None:
            self._server.close()
        self._listener.close()

    async def close(self, timeout_s: float) -> None:
        """Close idle connections, and the others after their answer."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self._state.connections and asyncio.get_running_loop().time() < deadline:
            for connection in list(self._state.connections):
                assert isinstance(connection, Connection), connection
                connection.shutdown()
            await asyncio.sleep(_TICK_S)
        for task in list(self._state.tasks):
            task.cancel()


class Front:
    """A whole server: sockets, models, and its end."""

    def __init__(self, store_root: Path, names: Sequence[str], config: ServeConfig) -> None:
        """Bind the sockets and find the models; nothing is loaded yet.

        Raises:
            ServeError: a port in use or an address that cannot be had.
            StoreError: a model that is not in the store.
        """
        known = list_models(store_root)
        for name in names:
            if name not in known:
                raise ServeError(
                    "A model that is served must be in the store", got=name, fix=nearest(name, known)
                )
        listener = bind(config.host, config.port, "port")
        try:
            admin_listener = bind(ADMIN_HOST, config.admin_port, "admin_port")
            token = read_or_make_token(store_root)
        except BaseException:
            listener.close()
            raise
        self.address = Address(
            config.host, listener.getsockname()[1], admin_listener.getsockname()[1], os.getpid()
        )
        self._config = config
        self._metrics = Metrics()
        self._router = Router()
        self._stop = asyncio.Event()
        self._keepers = {
            name: Keeper(Store(store_root, name), config, self._router, self._metrics) for name in names
        }
        self._predict = PredictDoor(self._router, config, self._metrics)
        self._rest = rest_app(self._keepers, self._router, self._metrics, self._stop.is_set)
        self._public = Door(listener, self._answer, config)
        self._admin = Door(admin_listener, admin_app(self._keepers, token, self.stop), config)

    def stop(self) -> None:
        """Begin the end."""
        self._stop.set()

    async def run(self, on_ready: asyncio.Future[None] | None = None) -> None:
        """Serve until `stop`.

        Raises:
            TextmillError: a live version, and the one before it, cannot be loaded.
        """
        followers: list[asyncio.Task[None]] = []
        try:
            with _signals(self.stop):
                await self._public.open()
                await self._admin.open()
                await self._start_models()
                followers = [asyncio.create_task(each.follow()) for each in self._keepers.values()]
                if on_ready is not None and not self._stop.is_set():
                    on_ready.set_result(None)
                while not self._stop.is_set():
                    self._public.tick()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._stop.wait(), 1.0)
                await self._end(followers)
        finally:
            for each in (self._public, self._admin):
                each.stop_accepting()
            await asyncio.gather(*(keeper.close() for keeper in self._keepers.values()))

    async def _start_models(self) -> None:
        """Load all models; a stop that comes meanwhile ends the waiting."""

        async def start_all() -> None:
            await asyncio.gather(*(keeper.start() for keeper in self._keepers.values()))

        starts = asyncio.create_task(start_all())
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([starts, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if starts.done():
            starts.result()
        else:
            starts.cancel()

    async def _end(self, followers: list[asyncio.Task[None]]) -> None:
        for follower in followers:
            follower.cancel()
        self._public.stop_accepting()
        loop = asyncio.get_running_loop()
        linger_until = loop.time() + _LINGER_S
        while self._public.num_connections and loop.time() < linger_until:
            await asyncio.sleep(_TICK_S)
        await self._public.close(self._config.drain_timeout_s)
        self._admin.stop_accepting()
        await self._admin.close(1.0)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if self._stop.is_set():
            send = _closing(send)
        try:
            found = PREDICT_PATH.fullmatch(scope["path"])
            if found is not None:
                await self._predict(scope, receive, send, found)
            else:
                await self._rest(scope, receive, send)
        except Exception:
            logger.exception("A request failed by a fault of the server")
            fault = RequestError(
                "Every request must be answered",
                got="a fault of the server",
                fix="Its log has the details.",
                status=500,
            )
            await send_error(send, fault, [(b"connection", b"close")])


def bind(host: str, port: int, key: str) -> socket.socket:
    """Return a listening socket.

    Args:
        host: address.
        port: port; 0 for a free one.
        key: the setting that holds the port, for the message.

    Raises:
        ServeError: the port is in use, or the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
        listener.setblocking(False)
    except OSError as err:
        listener.close()
        if err.errno == errno.EADDRINUSE:
            other = port + 1 if port < 65535 else 0
            fix = f"End the other program, or choose another port: serve.{key} = {other}"
            raise ServeError(
                "The port must be free", got=f"port {port} on {host}, which is in use", fix=fix
            ) from err
        raise ServeError(
            "The server must be able to listen on its address",
            got=f"{host}:{port} ({err.strerror})",
            fix=f"Set serve.host to an address of this machine, and serve.{key} above 1023.",
        ) from err
    return listener


def read_or_make_token(store_root: Path) -> str:
    """Return the admin token of a store folder; it is made at the first start, readable by its owner only.

    Raises:
        StoreError: the file cannot be written or read.
    """
    path = store_root / TOKEN_FILE
    with disk_faults(path):
        if not path.exists() or not path.stat().st_size:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            with os.fdopen(handle, "r+") as file:
                fcntl.flock(handle, fcntl.LOCK_EX)  # of two servers that start together one writes it
                if not file.read():
                    file.write(secrets.token_urlsafe(32))
        token = path.read_text().strip()
        mode = path.stat().st_mode & 0o777
    if len(token) < 32 or mode & 0o077:
        raise ServeError(
            f"{path} must hold a token and be readable by its owner only",
            got=f"{len(token)} characters, mode {mode:o}",
            fix="Remove the file; the next start makes a new one.",
        )
    return token


@contextlib.contextmanager
def _signals(stop: object) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C begin the end; a second one ends at once."""
    loop = asyncio.get_running_loop()
    assert callable(stop), "something to call"
    seen = 0

    def handle() -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            os._exit(130)  # the workers see their sockets close
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, handle)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _closing(send: Send) -> Send:
    """Return a `send` that tells the client to close the connection after the answer."""

    async def send_and_close(message: object) -> None:
        assert isinstance(message, dict), message
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), (b"connection", b"close")]}
        await send(message)

    return send_and_close
