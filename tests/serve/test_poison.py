"""Texts under which workers die, on a worker that dies on purpose."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from textmill.core.errors import RequestError
from textmill.encode.long_text import Cut
from textmill.encode.padding import Encoded
from textmill.serve import wire
from textmill.serve.config import ServeConfig
from textmill.serve.metrics import Metrics
from textmill.serve.process import OnEnd, OnFrame
from textmill.serve.version import LoadedVersion

POISON = 666


class MortalWorker:
    """Answers every row by its first id, but dies with all it has when a batch holds POISON."""

    starts = 0

    def __init__(self, on_frame: OnFrame, on_end: OnEnd) -> None:
        self._on_frame, self._on_end = on_frame, on_end
        self._is_alive = True
        self.pid = 1

    async def start(self, order: wire.Frame) -> None:
        MortalWorker.starts += 1
        asyncio.get_running_loop().call_later(0.001, self._on_frame, {"kind": "ready", "seconds": 0.0})

    def send(self, frame: wire.Frame) -> None:
        if self._is_alive:
            asyncio.get_running_loop().call_later(0.001, self._answer, frame)

    def _answer(self, frame: wire.Frame) -> None:
        if not self._is_alive:
            return
        rows = wire.rows_of(frame)
        if any(row.ids[0] == POISON for row in rows):
            self._is_alive = False
            self._on_end("signal 11")
            return
        scores = np.array([[row.ids[0], 0] for row in rows], dtype=np.float32)
        self._on_frame(wire.scores_frame(frame["id"], scores, {}, 0.001))

    async def stop(self) -> None:
        self._is_alive = False

    def kill(self) -> None:
        if self._is_alive:
            self._is_alive = False
            self._on_end("signal 9")


def _rows(*firsts: int) -> Cut:
    rows = [Encoded(np.array([first, 0, 0], np.int32), None) for first in firsts]
    return Cut(rows, np.arange(len(rows)))


def _run(shelf, work):
    async def all_of_it():
        shelf.publish(1)
        MortalWorker.starts = 0
        version = LoadedVersion(
            shelf.store.bundle(1), None, ServeConfig(threads=2), Metrics(), lambda _: None, MortalWorker
        )
        await version.open(patient=False)
        try:
            return await work(version)
        finally:
            await version.close()

    return asyncio.run(all_of_it())


def test_a_poisonous_text_fails_alone_and_its_neighbours_are_answered(shelf):
    async def work(version):
        ids = [*range(1, 20), POISON, *range(20, 40)]
        waiting = [version.submit(_rows(first)) for first in ids]
        return ids, await asyncio.gather(*(each.answer for each in waiting), return_exceptions=True)

    ids, answers = _run(shelf, work)
    for first, answer in zip(ids, answers, strict=True):
        if first == POISON:
            assert isinstance(answer, RequestError)
            assert answer.status == 500
        else:
            assert answer == [[first, 0]]
    assert MortalWorker.starts == 4  # the first, and one for each of three deaths


def test_a_poisonous_item_fails_its_own_request_only(shelf):
    async def work(version):
        bad = version.submit(_rows(1, POISON))
        good = version.submit(_rows(2, 3))
        return await asyncio.gather(bad.answer, good.answer, return_exceptions=True)

    bad, good = _run(shelf, work)
    assert isinstance(bad, RequestError)
    assert good == [[2, 0], [3, 0]]


def test_a_request_that_waits_too_long_ends_with_504_and_leaves_the_queue(shelf):
    class Silent(MortalWorker):
        def send(self, frame: wire.Frame) -> None:
            pass

    async def work():
        shelf.publish(1)
        config = ServeConfig(threads=1, request_timeout_s=0.05, max_batch_rows=1)
        version = LoadedVersion(shelf.store.bundle(1), None, config, Metrics(), lambda _: None, Silent)
        await version.open(patient=False)
        with version.visit():
            waiting = [version.submit(_rows(first)) for first in range(1, 6)]
            answers = await asyncio.gather(*(each.answer for each in waiting), return_exceptions=True)
        assert await version.drain(1)
        await version.close()
        return answers, version.num_waiting

    answers, num_waiting = asyncio.run(work())
    assert [answer.status for answer in answers] == [504] * 5
    assert num_waiting == 0


def test_closing_a_version_ends_its_open_requests_with_503(shelf):
    async def work(version):
        waiting = version.submit(_rows(1))
        await version.close()
        with pytest.raises(RequestError) as caught:
            await waiting.answer
        return caught.value.status

    assert _run(shelf, work) == 503


def test_a_worker_that_hangs_is_ended_and_the_next_one_answers(shelf):
    class HangsOnce(MortalWorker):
        def send(self, frame: wire.Frame) -> None:
            if MortalWorker.starts > 1:
                super().send(frame)

    async def work():
        shelf.publish(1)
        MortalWorker.starts = 0
        config = ServeConfig(threads=1, request_timeout_s=0.2)
        version = LoadedVersion(
            shelf.store.bundle(1), None, config, Metrics(), lambda _: None, HangsOnce, hung_after_s=0.2
        )
        await version.open(patient=False)
        with pytest.raises(RequestError) as caught:
            await version.submit(_rows(1)).answer
        answer = await version.submit(_rows(2)).answer
        await version.close()
        return caught.value.status, answer

    assert asyncio.run(work()) == (504, [[2, 0]])


def test_a_closed_version_takes_no_request(shelf):
    async def work(version):
        await version.close()
        with pytest.raises(RequestError) as caught:
            version.submit(_rows(1))
        return caught.value.status

    assert _run(shelf, work) == 503
