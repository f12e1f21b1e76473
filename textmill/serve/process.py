"""A worker process as the front sees it: start, frames both ways, its end.

Promises: the end of a worker, however it comes, is told exactly once and only after all frames it had
sent; an ended worker is reaped; the front's end of the socket is inherited by nobody, so a worker
sees end-of-file the moment the front is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Protocol, TypeAlias, cast

from textmill.serve import wire

logger = logging.getLogger(__name__)

_KILL_AFTER_S = 3.0


OnFrame: TypeAlias = Callable[[wire.Frame], None]
OnEnd: TypeAlias = Callable[[str], None]


class Worker(Protocol):
    """What computes for one version: takes frames, gives frames, and may end at any time."""

    @property
    def pid(self) -> int:
        """Process id."""
        ...

    async def start(self, order: wire.Frame) -> None:
        """Start, with what to open."""
        ...

    def send(self, frame: wire.Frame) -> None:
        """Take a frame."""
        ...

    async def stop(self) -> None:
        """End."""
        ...

    def kill(self) -> None:
        """End at once; the end is told."""
        ...


class WorkerProcess(asyncio.Protocol):
    """One worker process and the socket to it."""

    def __init__(self, on_frame: OnFrame, on_end: OnEnd) -> None:
        self._on_frame = on_frame
        self._on_end = on_end
        self._reader = wire.FrameReader()
        self._transport: asyncio.Transport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Process id."""
        assert self._process is not None, "the worker has not been started"
        return self._process.pid

    async def start(self, order: wire.Frame) -> None:
        """Start the process and send it what to open."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "textmill.serve.worker", "--link", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # A terminal's Ctrl-C goes to the whole foreground group; the front ends its workers itself.
                process_group=0,
                env=worker_environment(),
            )
        ours.setblocking(False)
        await loop.create_unix_connection(lambda: self, sock=ours)
        self.send(order)

    def send(self, frame: wire.Frame) -> None:
        """Send a frame; to a worker that has just died it is lost, and its end will be told."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(wire.pack(frame))

    async def stop(self) -> None:
        """End the process: close the socket, then SIGTERM, then SIGKILL; returns when it is reaped."""
        if self._process is None:
            return
        if self._transport is not None:
            self._transport.close()
        self._process.terminate()
        await self._reap()

    def kill(self) -> None:
        """End the process at once; its end is told as for any other death."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Hand on the frames that are complete; a worker that talks nonsense is ended."""
        try:
            frames = self._reader.feed(data)
        except wire.WireError as err:
            logger.error("Worker %d sent %s; it is ended", self.pid, err)
            self.kill()
            return
        for frame in frames:
            self._on_frame(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        """Reap the process and tell its end."""
        self._ending = asyncio.get_running_loop().create_task(self._tell_end())

    async def _tell_end(self) -> None:
        code = await self._reap()
        self._on_end(f"signal {-code}" if code < 0 else f"exit code {code}")

    async def _reap(self) -> int:
        process = self._process
        assert process is not None
        loop = asyncio.get_running_loop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return await loop.run_in_executor(None, process.wait, _KILL_AFTER_S)
        process.kill()
        return await loop.run_in_executor(None, process.wait)


def worker_environment() -> dict[str, str]:
    """Return the environment of a worker: one thread for each run, no spinning, no tokenizer pool."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }
