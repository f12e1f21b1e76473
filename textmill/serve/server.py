"""Run a server, here or as a child process.

    serve(root, ["reviews"], ServeConfig())            # blocks until Ctrl-C, SIGTERM or admin stop
    with start_server(root, ["reviews"], config) as server:
        ...                                             # server.url answers

Promises: `start_server` returns when the models answer, or raises what the child says; the child ends
when its `RunningServer` is stopped, and also when the process that started it is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import uvloop

from textmill.core.errors import ServeError, TextmillError
from textmill.core.files import write_json
from textmill.serve.config import ServeConfig
from textmill.serve.front import Address, Front

logger = logging.getLogger(__name__)

_STDERR = 2


def serve(
    store_root: Path,
    names: Sequence[str],
    config: ServeConfig,
    *,
    on_ready: Callable[[Address], None] | None = None,
    ready_file: Path | None = None,
    until_closed: int | None = None,
) -> None:
    """Serve models until SIGTERM, Ctrl-C or a stop at the admin socket; blocks.

    Args:
        store_root: the folder of all stores.
        names: the models to serve.
        config: the `[serve]` table.
        on_ready: called once, when all models with a live version answer.
        ready_file: written at that moment with the addresses, or with the error that kept it from coming.
        until_closed: a file descriptor; the server also ends when its other end is closed.

    Raises:
        ServeError: a port in use, or an unknown model.
        TextmillError: a live version, and the one before it, cannot be loaded.
    """
    _open_standard_files()
    # One text is tokenized at a time; a pool of threads for that would fight with the workers.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        uvloop.run(_serve(store_root, names, config, on_ready, ready_file, until_closed))
    except TextmillError as err:
        if ready_file is not None:
            write_json(ready_file, {"error": err.as_json()})
        raise


def _open_standard_files() -> None:
    """Give closed standard files the null device: libuv aborts when it closes a socket with such a number."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        continue
    os.close(handle)


async def _serve(
    store_root: Path,
    names: Sequence[str],
    config: ServeConfig,
    on_ready: Callable[[Address], None] | None,
    ready_file: Path | None,
    until_closed: int | None,
) -> None:
    front = Front(store_root, names, config)
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell(done: asyncio.Future[None]) -> None:
        if done.cancelled():
            return
        if ready_file is not None:
            write_json(ready_file, asdict(front.address))
        if on_ready is not None:
            on_ready(front.address)

    ready.add_done_callback(tell)
    if until_closed is not None:
        threading.Thread(target=_watch_parent, args=(until_closed, loop, front.stop), daemon=True).start()
    try:
        await front.run(ready)
    finally:
        ready.cancel()


def _watch_parent(handle: int, loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    while os.read(handle, 64):
        continue
    try:
        loop.call_soon_threadsafe(stop)
    except RuntimeError:
        logger.debug("The server has ended before its parent")


class RunningServer:
    """A server in a child process; leaving the `with` block stops it."""

    def __init__(self, process: subprocess.Popen[bytes], address: Address) -> None:
        self._process = process
        self.address = address

    @property
    def url(self) -> str:
        """Address of the public socket."""
        return self.address.url

    @property
    def admin_url(self) -> str:
        """Address of the admin socket."""
        return self.address.admin_url

    @property
    def pid(self) -> int:
        """Process id of the front."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    def stop(self, timeout_s: float = 40.0) -> int:
        """End the server: SIGTERM, answers for what is in flight, SIGKILL after `timeout_s`.

        Returns:
            The exit code: 0 after an orderly end. A second call returns the same.
        """
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        return self._process.wait()

    def wait(self) -> int:
        """Wait until the server ends by itself or by a signal; return the exit code."""
        return self._process.wait()

    def __enter__(self) -> RunningServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_server(
    store_root: Path,
    names: Sequence[str],
    config: ServeConfig,
    *,
    timeout_s: float = 240.0,
    log_file: Path | None = None,
) -> RunningServer:
    """Start a server as a child process and wait until its models answer.

    A terminal's Ctrl-C does not reach the child; whoever started it decides. The child ends when this
    process ends, however that comes.

    Args:
        store_root: the folder of all stores.
        names: the models to serve.
        config: the `[serve]` table; port 0 takes free ports.
        timeout_s: time to become ready.
        log_file: where the server's log goes; None: to this process's standard error.

    Raises:
        ServeError: the server says why it does not start, or is not ready in time.
    """
    with tempfile.TemporaryDirectory(prefix="textmill-serve-") as folder:
        ready_file = Path(folder) / "ready.json"
        command = [sys.executable, "-m", "textmill.serve", "--store", str(store_root)]
        command += ["--ready-file", str(ready_file), "--config", config.model_dump_json()]
        command += ["--until-stdin-closes", "--", *names]
        with contextlib.ExitStack() as stack:
            log = None if log_file is None else stack.enter_context(open(log_file, "ab"))
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, process_group=0
            )
        try:
            return RunningServer(process, _wait_ready(process, ready_file, timeout_s))
        except BaseException:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
            raise


def _wait_ready(process: subprocess.Popen[bytes], ready_file: Path, timeout_s: float) -> Address:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        code = process.poll()
        if ready_file.exists():
            told: dict[str, Any] = json.loads(ready_file.read_bytes())
            if "error" in told:
                error = told["error"]
                raise ServeError(error["rule"], got=error["got"], fix=error["fix"])
            return Address(**told)
        if code is not None:
            raise ServeError(
                "The server must start", got=f"exit code {code}", fix="Its log tells why; see standard error."
            )
        time.sleep(0.05)
    raise ServeError(
        f"The server must be ready within {timeout_s:g} s",
        got="a process that is still loading",
        fix="Give it more time, or look at the load on this machine.",
    )
