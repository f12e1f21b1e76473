"""Frames between the front and a worker: four bytes of length, then one msgpack map.

Promises: a torn or oversized frame is noticed; nothing on the wire can run code (no pickle); token
ids and scores travel as raw little-endian arrays.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, TypeAlias

import msgpack
import numpy as np
import numpy.typing as npt

from textmill.encode.padding import Encoded

Frame: TypeAlias = dict[str, Any]

_LENGTH = struct.Struct("<I")
MAX_FRAME_BYTES = 64 * 1024 * 1024
_INT32 = np.dtype("<i4")
_FLOAT32 = np.dtype("<f4")


class WireError(Exception):
    """The other side sent something that is no frame."""


def pack(frame: Frame) -> bytes:
    """Return the bytes of one frame."""
    payload: bytes = msgpack.packb(frame)
    assert len(payload) <= MAX_FRAME_BYTES, f"a frame of {len(payload)} bytes"
    return _LENGTH.pack(len(payload)) + payload


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes.

        Raises:
            WireError: a length out of range, or a payload that is no map.
        """
        self._buffer += data
        frames = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME_BYTES:
                raise WireError(f"a frame of {length} bytes")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                break
            frames.append(_unpack(bytes(self._buffer[_LENGTH.size : end])))
            del self._buffer[:end]
        return frames


def receive(link: socket.socket) -> Frame | None:
    """Wait for one frame on a blocking socket; None when the other side has closed."""
    header = _receive_exactly(link, _LENGTH.size)
    if header is None:
        return None
    (length,) = _LENGTH.unpack(header)
    if length > MAX_FRAME_BYTES:
        raise WireError(f"a frame of {length} bytes")
    payload = _receive_exactly(link, length)
    return None if payload is None else _unpack(payload)


def batch_frame(batch_id: int, rows: list[Encoded]) -> Frame:
    """Return the frame that asks for the scores of encoded rows."""
    types = [row.type_ids for row in rows if row.type_ids is not None]
    assert len(types) in (0, len(rows)), "type ids for all rows or for none"
    return {
        "kind": "batch",
        "id": batch_id,
        "lengths": np.array([len(row.ids) for row in rows], dtype=_INT32).tobytes(),
        "ids": np.concatenate([row.ids for row in rows]).astype(_INT32, copy=False).tobytes(),
        "types": np.concatenate(types).astype(_INT32, copy=False).tobytes() if types else None,
    }


def rows_of(frame: Frame) -> list[Encoded]:
    """Return the encoded rows of a batch frame."""
    ends = np.cumsum(np.frombuffer(frame["lengths"], dtype=_INT32))[:-1]
    ids = np.split(np.frombuffer(frame["ids"], dtype=_INT32), ends)
    if frame["types"] is None:
        return [Encoded(row, None) for row in ids]
    types = np.split(np.frombuffer(frame["types"], dtype=_INT32), ends)
    return [Encoded(row, kinds) for row, kinds in zip(ids, types, strict=True)]


def scores_frame(
    batch_id: int, scores: npt.NDArray[np.float32], faults: dict[int, str], seconds: float
) -> Frame:
    """Return the answer to a batch: (B, C) scores; `faults` maps rows without an answer to the reason."""
    return {
        "kind": "scores",
        "id": batch_id,
        "rows": len(scores),
        "scores": np.ascontiguousarray(scores, dtype=_FLOAT32).tobytes(),
        "faults": list(faults.items()),
        "seconds": seconds,
    }


def scores_of(frame: Frame) -> npt.NDArray[np.float32]:
    """Return the (B, C) scores of an answer."""
    return np.frombuffer(frame["scores"], dtype=_FLOAT32).reshape(frame["rows"], -1)


def _unpack(payload: bytes) -> Frame:
    try:
        frame = msgpack.unpackb(payload)
    except Exception as err:  # msgpack raises several unrelated classes on damaged bytes
        raise WireError("bytes that are no msgpack") from err
    if not isinstance(frame, dict):
        raise WireError(f"a {type(frame).__name__} where a map belongs")
    return frame


def _receive_exactly(link: socket.socket, size: int) -> bytes | None:
    pieces = bytearray()
    while len(pieces) < size:
        piece = link.recv(size - len(pieces))
        if not piece:
            return None
        pieces += piece
    return bytes(pieces)
