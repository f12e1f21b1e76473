from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from tests.toy import toy_examples
from tests.train.streams import all_ids, as_line, ids_of, toy_feed, toy_stream, write_stream
from textmill.core.errors import DataError
from textmill.data.split import position
from textmill.data.stream.source import IterableSource
from textmill.train.stream_feed import StreamFeed


def test_an_epoch_holds_each_training_row_once_and_no_other(tmp_path: Path) -> None:
    write_stream(tmp_path)
    stream = toy_stream(tmp_path)
    steps = all_ids(toy_feed(stream))
    seen = list(chain(*steps))
    assert sorted(seen) == sorted(row.id for row in toy_examples(3000) if position(row.text) < 0.8)
    assert {row.id for row in stream.splits.valid + stream.splits.test}.isdisjoint(seen)  # type: ignore[operator]
    assert len(stream.splits.valid) == len(stream.splits.test) == 50


def test_epochs_are_shuffled_and_differ(tmp_path: Path) -> None:
    write_stream(tmp_path)
    feed = toy_feed(toy_stream(tmp_path))
    first, second = all_ids(feed, 0), all_ids(feed, 1)
    assert first != second
    assert sorted(chain(*first)) == sorted(chain(*second))
    numbers = [int(row.split(":")[1]) for row in chain(*second[40:60])]
    assert np.ptp(numbers) > 1000


def test_a_restored_feed_goes_on_with_the_very_next_step(tmp_path: Path) -> None:
    write_stream(tmp_path, num=5000, files=1)  # four chunks
    whole = all_ids(toy_feed(toy_stream(tmp_path), accumulate=2))
    for stop in (1, 20, len(whole) // 2, len(whole) * 3 // 4, len(whole) - 1):
        feed = toy_feed(toy_stream(tmp_path), accumulate=2)
        drawn = feed.steps(0, 0)
        made = []
        for _ in range(stop):
            made.append(ids_of(next(drawn)))
            feed.observe(made[-1], np.zeros(1, np.float32))
        next(drawn)  # one that was drawn ahead and is lost
        state = json.loads(json.dumps(feed.state()))
        other = toy_feed(toy_stream(tmp_path), accumulate=2)
        other.restore(state)
        assert made + all_ids(other, 0, stop) == whole


def test_ranks_share_the_same_steps_and_their_number_may_change(tmp_path: Path) -> None:
    write_stream(tmp_path)
    stream = toy_stream(tmp_path)
    whole = all_ids(toy_feed(stream))
    made: dict[int, tuple[str, ...]] = {}
    state: dict[str, object] = {}
    begin = 0
    for world, end in ((2, 40), (1, 75), (3, len(whole))):
        feeds = [toy_feed(stream, rank=rank, world=world) for rank in range(world)]
        for rank, feed in enumerate(feeds):
            feed.restore(state)
            numbers = [number for number in range(begin, end) if number % world == rank]
            for number, step in zip(numbers, feed.steps(0, begin), strict=False):
                made[number] = ids_of(step)
                feed.observe(made[number], np.zeros(1, np.float32))
        state = json.loads(json.dumps(feeds[0].state()))
        begin = end
    assert [made[number] for number in range(len(whole))] == whole


def test_another_process_prepares_the_same_steps(tmp_path: Path) -> None:
    write_stream(tmp_path)
    stream = toy_stream(tmp_path)
    assert all_ids(toy_feed(stream, prefetch=3)) == all_ids(toy_feed(stream))


def test_the_steps_of_an_epoch_are_counted_once_it_is_made(tmp_path: Path) -> None:
    write_stream(tmp_path)
    feed = toy_feed(toy_stream(tmp_path), train_rows=1600)
    assert feed.num_steps(3) == 300
    num = len(all_ids(feed))
    assert num > 105
    assert feed.num_steps(3) == 3 * num
    other = toy_feed(toy_stream(tmp_path))
    other.restore(feed.state())
    assert other.num_steps(3) == 3 * num


def test_an_endless_source_goes_on_behind_the_epoch_before(tmp_path: Path) -> None:
    rows = [{"id": e.id, "text": e.text, "label": e.labels[0]} for e in toy_examples(9000)]
    source = IterableSource(lambda: rows)
    with pytest.raises(DataError, match=r"data\.epoch_rows"):
        toy_stream(tmp_path, source=source)
    feed = toy_feed(toy_stream(tmp_path, source=source, epoch_rows=3000))
    first, second = set(chain(*all_ids(feed, 0))), set(chain(*all_ids(feed, 1)))
    assert first.isdisjoint(second)
    fresh = toy_feed(toy_stream(tmp_path, source=source, epoch_rows=3000))
    assert set(chain(*all_ids(fresh, 1))) == second


def test_duplicates_inside_a_pool_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = [{"text": e.text, "label": e.labels[0]} for e in toy_examples(300)]
    source = IterableSource(lambda: rows + rows, rows=600)
    feed: StreamFeed = toy_feed(toy_stream(tmp_path, source=source, id=None))
    num_train = sum(position(row["text"]) < 0.8 for row in rows)
    assert len(list(chain(*all_ids(feed)))) == num_train
    assert feed.counts["duplicates"] == num_train


def test_every_pool_the_first_too_holds_rows_of_every_class_of_a_sorted_folder(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for number in range(4):
        lines = [as_line(row) for row in toy_examples(6000, 4) if row.labels == (f"class{number}",)]
        (tmp_path / "d" / f"{number}.jsonl").write_text("".join(lines))
    stream = toy_stream(tmp_path, "d", shuffle_rows=256)
    make = toy_feed(stream)._make
    sizes = []
    for pool in make.pools(make.begin(0)):
        shares = np.bincount(pool.targets, minlength=4) / len(pool.targets)
        sizes.append(len(pool.targets))
        assert pool.after is None or shares.min() > 0.1
    assert len(sizes) > 12
    assert max(sizes) < 512
