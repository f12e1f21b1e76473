from __future__ import annotations

import socket
import struct

import numpy as np
import pytest

from textmill.encode.padding import Encoded
from textmill.serve import wire


def _row(*ids: int, types: bool = False) -> Encoded:
    array = np.array(ids, dtype=np.int32)
    return Encoded(array, np.arange(len(ids), dtype=np.int32) if types else None)


@pytest.mark.parametrize("types", [False, True])
def test_a_batch_comes_back_row_by_row(types):
    rows = [_row(1, 2, 3, types=types), _row(4, types=types), _row(5, 6, types=types)]
    (frame,) = wire.FrameReader().feed(wire.pack(wire.batch_frame(7, rows)))
    assert frame["id"] == 7
    for sent, got in zip(rows, wire.rows_of(frame), strict=True):
        np.testing.assert_array_equal(sent.ids, got.ids)
        if types:
            np.testing.assert_array_equal(sent.type_ids, got.type_ids)
        else:
            assert got.type_ids is None


def test_scores_come_back_bit_equal():
    scores = np.array([[0.1, 0.9], [1 / 3, 2 / 3]], dtype=np.float32)
    (frame,) = wire.FrameReader().feed(wire.pack(wire.scores_frame(1, scores, {1: "bad"}, 0.5)))
    np.testing.assert_array_equal(wire.scores_of(frame), scores)
    assert dict(frame["faults"]) == {1: "bad"}


def test_frames_cut_anywhere_are_put_together():
    stream = wire.pack({"kind": "a"}) + wire.pack({"kind": "b", "n": 2}) + wire.pack({"kind": "c"})
    reader = wire.FrameReader()
    frames = [frame for byte in stream for frame in reader.feed(bytes([byte]))]
    assert [frame["kind"] for frame in frames] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "stream",
    [struct.pack("<I", 2**32 - 1), struct.pack("<I", 3) + b"\xc1\xc1\xc1", struct.pack("<I", 1) + b"\x01"],
)
def test_bytes_that_are_no_frame_are_refused(stream):
    with pytest.raises(wire.WireError):
        wire.FrameReader().feed(stream)


def test_a_closed_socket_is_the_end_also_within_a_frame():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(wire.pack({"kind": "a"}) + wire.pack({"kind": "b"})[:-1])
        theirs.close()
        assert wire.receive(ours) == {"kind": "a"}
        assert wire.receive(ours) is None
