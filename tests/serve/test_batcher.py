from __future__ import annotations

import asyncio

import numpy as np
import pytest

from textmill.core.seeds import numpy_generator
from textmill.encode.padding import Encoded
from textmill.serve.batcher import SUSPECT_AFTER, Batcher, Item
from textmill.serve.pending import Pending


@pytest.fixture
def items():
    loop = asyncio.new_event_loop()

    def make(*lengths: int, first: int = 0) -> list[Item]:
        pending = Pending(len(lengths), loop)
        return [
            Item(pending, index, index, Encoded(np.zeros(length, np.int32), None), length, first + index)
            for index, length in enumerate(lengths)
        ]

    yield make
    loop.close()


def _lengths(batch: list[Item]) -> list[int]:
    return [item.length for item in batch]


def test_what_arrives_comes_out_once_within_the_budget(items):
    lengths = numpy_generator(0, "batcher").integers(1, 60, size=300).tolist()
    batcher = Batcher(max_tokens=128, max_rows=8)
    batcher.add(items(*lengths))
    seen: list[int] = []
    while batch := batcher.take():
        assert len(batch) <= 8
        assert len(batch) == 1 or len(batch) * max(_lengths(batch)) <= 128
        seen += [item.sequence for item in batch]
    assert sorted(seen) == list(range(300))
    assert len(batcher) == 0
    assert batcher.num_tokens == 0


def test_the_oldest_is_always_in_the_next_batch(items):
    batcher = Batcher(max_tokens=64, max_rows=8)
    batcher.add(items(50))
    for turn in range(5):
        batcher.add(items(*[8] * 8, first=100 * (turn + 1)))
    assert 0 in [item.sequence for item in batcher.take()]


def test_neighbours_in_length_are_batched_together(items):
    batcher = Batcher(max_tokens=256, max_rows=32)
    batcher.add(items(10, 60, 11, 59, 10, 61, 11, 10))
    assert _lengths(batcher.take()) == [10, 10, 10, 11, 11]
    assert _lengths(batcher.take()) == [59, 60, 61]


def test_padding_stays_small_while_much_waits(items):
    rng = numpy_generator(1, "padding")
    batcher = Batcher(max_tokens=192, max_rows=32)
    queue = items(*np.clip(rng.gamma(4, 7, size=400), 4, 128).astype(int).tolist())
    batcher.add(queue[:30])
    computed = filled = 0
    position = 30
    while batch := batcher.take():
        computed += len(batch) * max(_lengths(batch))
        filled += sum(_lengths(batch))
        batcher.add(queue[position : position + len(batch)])
        position += len(batch)
    assert filled / computed > 0.85


def test_idle_threads_share_what_waits(items):
    batcher = Batcher(max_tokens=512, max_rows=32)
    batcher.add(items(*[10] * 8))
    assert [len(batcher.take(2)), len(batcher.take(1))] == [4, 4]


def test_a_text_beyond_the_budget_goes_alone(items):
    batcher = Batcher(max_tokens=64, max_rows=8)
    batcher.add(items(500, 500))
    assert [_lengths(batcher.take()), _lengths(batcher.take()), batcher.take()] == [[500], [500], []]


def test_items_of_an_ended_request_are_forgotten(items):
    batcher = Batcher(max_tokens=512, max_rows=32)
    gone, kept = items(5, 6, 7), items(6, first=10)
    batcher.add(gone)
    batcher.add(kept)
    batcher.discard(gone)
    batcher.discard(gone)
    assert batcher.num_tokens == 6
    assert batcher.take() == kept


def test_items_put_back_keep_their_age(items):
    batcher = Batcher(max_tokens=64, max_rows=1)
    batcher.add(items(9, 9, 9))
    first = batcher.take()
    batcher.put_back(first)
    assert batcher.take() == first


def test_a_text_under_which_workers_died_waits_apart(items):
    batcher = Batcher(max_tokens=512, max_rows=32)
    suspect, innocent = items(9, 9)
    suspect.deaths = SUSPECT_AFTER
    batcher.put_back([suspect, innocent])
    assert batcher.has_suspects
    assert batcher.take() == [innocent]
    assert batcher.take_suspect() is suspect
    assert batcher.take_suspect() is None
