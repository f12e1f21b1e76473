from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from textmill.encode.padding import Encoded
from textmill.serve import wire
from textmill.serve.worker import WARM_LENGTHS, Link, compute, warm_up


class FirstId:
    """Scores that tell the first id of a row; id 13 cannot be computed, id 14 gives no number."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def scores_encoded(self, rows: Sequence[Encoded]) -> npt.NDArray[np.float32]:
        self.lengths += [len(row.ids) for row in rows]
        if any(13 in row.ids for row in rows):
            raise RuntimeError("13")
        firsts = [np.nan if row.ids[0] == 14 else row.ids[0] / 100 for row in rows]
        return np.array([[first, 1 - first] for first in firsts], dtype=np.float32)


def _rows(*firsts: int) -> list[Encoded]:
    return [Encoded(np.array([first, 1, 2], np.int32), None) for first in firsts]


def _compute(*firsts: int) -> wire.Frame:
    (frame,) = wire.FrameReader().feed(wire.pack(compute(FirstId(), wire.batch_frame(3, _rows(*firsts)))))
    assert frame["id"] == 3
    return frame


def test_a_batch_is_answered_row_by_row():
    frame = _compute(10, 20, 30)
    np.testing.assert_allclose(wire.scores_of(frame)[:, 0], [0.1, 0.2, 0.3])
    assert frame["faults"] == []


def test_one_row_that_fails_leaves_the_others_their_answers():
    frame = _compute(10, 13, 30, 14)
    np.testing.assert_allclose(wire.scores_of(frame)[[0, 2], 0], [0.1, 0.3])
    assert {index: "13" in reason for index, reason in frame["faults"]} == {1: True, 3: False}


def test_a_batch_of_failing_rows_only_tells_them_all():
    assert [index for index, _ in _compute(13, 13)["faults"]] == [0, 1]


def test_warming_up_covers_the_usual_lengths_up_to_the_models_own():
    predictor = FirstId()
    warm_up(predictor, _rows(5)[0], max_length=100)
    assert predictor.lengths == [length for length in WARM_LENGTHS if length <= 100]


def test_a_worker_loads_neither_torch_nor_a_server():
    script = (
        "import sys, textmill.serve.worker, textmill.runtime.onnx\n"
        "heavy = {'torch', 'transformers', 'uvicorn', 'starlette', 'sklearn', 'datasets', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_an_answer_to_a_front_that_has_gone_is_no_fault():
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        link = Link(theirs)
        link.send({"kind": "scores"})
        assert link.receive() is None


def test_a_worker_ends_when_its_socket_closes():
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "textmill.serve.worker", "--link", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
        )
    ours.close()
    assert process.wait(20) == 0
