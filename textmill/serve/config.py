"""The `[serve]` table: where the server listens, how it batches, and its limits.

What is not covered: `[gate]`, which lives beside the gate.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from textmill.core.config import Config

Port = Annotated[int, Field(ge=0, le=65535)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class ServeConfig(Config):
    """How a server listens, batches and replaces versions."""

    host: str = "127.0.0.1"
    """Address of the public socket; 0.0.0.0 opens it to the network."""
    port: Port = 8080
    """Port of the public socket; 0 takes a free one."""
    admin_port: Port = 8081
    """Port of the admin socket, always on 127.0.0.1; 0 takes a free one."""
    runtime: Literal["onnx", "torch"] = "onnx"
    """What computes: ONNX Runtime or torch."""
    threads: Literal["auto"] | Count = "auto"
    """Compute threads of a worker; each answers its own batches. auto: the processors of this machine."""
    max_batch_tokens: Count = 192
    """Most tokens in a batch, padding included; one longer text makes a batch of its own."""
    max_batch_rows: Count = 32
    """Most texts in a batch."""
    max_body_bytes: Count = 1024 * 1024
    """Largest request body; a larger one is answered by 413."""
    max_items: Count = 256
    """Most instances in a request; more are answered by 413."""
    max_chars: Count = 100_000
    """Most characters in one text (in each of a pair); a longer one is answered by 413."""
    max_windows: Count = 512
    """Most rows of a request whose long texts are cut to windows; more are answered by 413."""
    max_queue_items: Count = 1024
    """Most texts waiting for one version, each window of a long text counted; beyond that 429."""
    max_queue_tokens: Count = 131_072
    """Most tokens waiting for one version; beyond that 429."""
    request_timeout_s: Seconds = 30.0
    """Time to answer a request; after that 504."""
    body_timeout_s: Seconds = 10.0
    """Time to receive the head of a request, and again its body; after that 408."""
    keep_alive_s: Count = 75
    """How long an idle connection is kept."""
    start_timeout_s: Seconds = 180.0
    """Time for a new version to verify, load, warm up and answer the golden texts."""
    drain_timeout_s: Seconds = 30.0
    """Time for requests in flight to end, at a swap and at the end of the server."""
    rollback_hold_s: Annotated[float, Field(ge=0)] = 300.0
    """How long the previous version is kept warm after a swap, so that rolling back is immediate."""
    poll_ms: Count = 200
    """How often the store is looked at for a new live version."""
