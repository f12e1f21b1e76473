"""Prepared once, used again: the cache behind `prepare`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.data.conftest import Listener
from tests.data.test_prepare import fill
from textmill.core.errors import DataError
from textmill.core.progress import SilentProgress
from textmill.data.config import CleanConfig, DataConfig
from textmill.data.mapped import MappedExamples
from textmill.data.prepare import Splits, prepare
from textmill.data.report import Left

Writer = Callable[..., Path]
ROWS = [
    *fill([("good", "a"), ("bad", "b")]),
    ("good", "a"),
    ("torn", "a"),
    ("torn", "b"),
    ("", "a"),
    ("x", ""),
]


def folders(cache: Path) -> list[str]:
    return sorted(folder.name for folder in cache.iterdir() if folder.name != ".locks")


def same(first: Splits, second: Splits) -> bool:
    return (
        all(list(getattr(first, side)) == list(getattr(second, side)) for side in ("train", "valid", "test"))
        and first.labels == second.labels
        and first.report == second.report
        and first.fingerprint == second.fingerprint
    )


def test_the_second_time_rows_come_from_the_cache_and_are_the_same(
    write_csv: Writer, tmp_path: Path, listener: Listener
) -> None:
    write_csv(ROWS)
    plain = prepare(DataConfig(train="t.csv"), tmp_path)
    built = prepare(DataConfig(train="t.csv"), tmp_path, cache=tmp_path / "cache")
    again = prepare(DataConfig(train="t.csv"), tmp_path, listener, cache=tmp_path / "cache")
    assert same(plain, built)
    assert same(plain, again)
    assert len(listener.said) == 1
    assert "used again" in listener.said[0]


@pytest.mark.parametrize("changed", ["file", "setting", "name"])
def test_what_changed_is_prepared_anew(write_csv: Writer, tmp_path: Path, changed: str) -> None:
    cache = tmp_path / "cache"
    config = DataConfig(train="t.csv")
    write_csv(ROWS)
    before = prepare(config, tmp_path, cache=cache)
    if changed == "file":
        write_csv([*ROWS, ("one more", "a")])
    elif changed == "name":
        config = DataConfig(train="other.csv")
        (tmp_path / "t.csv").rename(tmp_path / "other.csv")
    else:
        config = DataConfig(train="t.csv", clean=CleanConfig(entities=False))
    now = prepare(config, tmp_path, cache=cache)
    assert len(folders(cache)) == 2
    assert same(now, prepare(config, tmp_path))
    assert (before.fingerprint == now.fingerprint) == (changed == "setting")


def test_a_moved_file_is_not_read_again(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(ROWS)
    before = prepare(DataConfig(train="t.csv"), tmp_path, cache=tmp_path / "cache")
    (tmp_path / "away").mkdir()
    (tmp_path / "t.csv").rename(tmp_path / "away" / "t.csv")
    now = prepare(DataConfig(train="away/t.csv"), tmp_path, cache=tmp_path / "cache")
    assert len(folders(tmp_path / "cache")) == 1
    assert now.fingerprint == before.fingerprint
    assert now.report.sources["train"].path == "away/t.csv"


def test_a_cache_that_lost_bytes_is_built_again(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(ROWS)
    before = prepare(DataConfig(train="t.csv"), tmp_path, cache=tmp_path / "cache")
    shard = next((tmp_path / "cache").rglob("*.arrow"))
    kept = list(before.train)
    os.truncate(shard, shard.stat().st_size - 1)
    again = prepare(DataConfig(train="t.csv"), tmp_path, cache=tmp_path / "cache")
    assert list(again.train) == kept


@pytest.mark.parametrize("name", ["train-00000.arrow", "train.rows.npy", "report.json", "manifest.json"])
def test_a_cache_with_other_bytes_is_built_again_and_that_is_said(
    write_csv: Writer, tmp_path: Path, listener: Listener, name: str
) -> None:
    write_csv(ROWS)
    before = prepare(DataConfig(train="t.csv"), tmp_path)
    prepare(DataConfig(train="t.csv"), tmp_path, cache=tmp_path / "cache")
    damaged = next((tmp_path / "cache").rglob(name))
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    again = prepare(DataConfig(train="t.csv"), tmp_path, listener, cache=tmp_path / "cache")
    assert same(again, before)
    assert any("is damaged and is made anew" in line for line in listener.said)


def test_settings_of_streams_prepare_nothing_anew(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(ROWS)
    for config in (DataConfig(train="t.csv"), DataConfig(train="t.csv", shuffle_rows=9, prefetch=0)):
        prepare(config, tmp_path, cache=tmp_path / "cache")
    assert len(folders(tmp_path / "cache")) == 1


class Meddler(SilentProgress):
    """Adds a row to a file as soon as something is said of it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def say(self, message: str) -> None:
        with self.file.open("a") as file:
            file.write("one more,a\n")


def test_a_file_that_is_written_to_while_it_is_read_is_refused(write_csv: Writer, tmp_path: Path) -> None:
    meddler = Meddler(write_csv(ROWS))
    with pytest.raises(DataError, match=r"t\.csv, which was written to meanwhile"):
        prepare(DataConfig(train="t.csv"), tmp_path, meddler, cache=tmp_path / "cache")
    assert folders(tmp_path / "cache") == []


def test_only_the_newest_few_stay_and_that_is_said(
    write_csv: Writer, tmp_path: Path, listener: Listener
) -> None:
    for number in range(6):
        write_csv([*ROWS, (f"more {number}", "a")])
        splits = prepare(DataConfig(train="t.csv"), tmp_path, listener, cache=tmp_path / "cache")
    assert len(folders(tmp_path / "cache")) == 4
    assert sum("is removed" in line for line in listener.said) == 2
    assert same(splits, prepare(DataConfig(train="t.csv"), tmp_path))


def test_a_refused_source_leaves_nothing_behind(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(ROWS)
    with pytest.raises(Exception, match="one label"):
        prepare(DataConfig(train="t.csv", on_conflict="fail"), tmp_path, cache=tmp_path / "cache")
    assert folders(tmp_path / "cache") == []


def test_a_sequence_of_mapped_rows_is_a_sequence(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(fill([("good", "a"), ("bad", "b")], 300))
    train = prepare(DataConfig(train="t.csv"), tmp_path, cache=tmp_path / "cache").train
    assert isinstance(train, MappedExamples)
    rows = list(train)
    assert [train[index] for index in range(len(train))] == rows
    assert train[-1] == rows[-1]
    assert list(train[10:20]) == rows[10:20]
    assert list(train[::-7]) == rows[::-7]
    assert train == rows
    assert train != rows[:-1]
    with pytest.raises(IndexError):
        train[len(train)]


KILLED = """
import os, sys
from pathlib import Path
from textmill.data.config import DataConfig
from textmill.data import prepare as module
from textmill.core.progress import SilentProgress

class Killed(SilentProgress):
    def say(self, message):
        os.kill(os.getpid(), 9)

module.prepare(DataConfig(train="t.csv"), Path(sys.argv[1]), Killed(), cache=Path(sys.argv[1]) / "cache")
"""


def test_what_a_killed_builder_left_is_removed(write_csv: Writer, tmp_path: Path) -> None:
    write_csv(ROWS)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=60)
    assert done.returncode == -9
    assert [name.startswith(".data-") for name in folders(tmp_path / "cache")] == [True]
    splits = prepare(DataConfig(train="t.csv"), tmp_path, cache=tmp_path / "cache")
    assert [name.startswith("data-") for name in folders(tmp_path / "cache")] == [True]
    assert same(splits, prepare(DataConfig(train="t.csv"), tmp_path))


def test_bad_rows_are_counted_and_kept_beside_the_rows(tmp_path: Path) -> None:
    rows = [f'{{"text": "text {n}", "label": "{"ab"[n % 2]}"}}' for n in range(60)]
    (tmp_path / "t.jsonl").write_text("\n".join([*rows[:20], '{"text": 1.5, "label": "a"}', "{", *rows[20:]]))
    config = DataConfig(train="t.jsonl", on_bad_row="skip")
    splits = prepare(config, tmp_path, cache=tmp_path / "cache")
    assert splits.report.sources["train"].bad_rows == Left(2, ("t.jsonl:22", "t.jsonl:21"))
    assert sum(map(len, (splits.train, splits.valid, splits.test))) == 60
    side_file = next((tmp_path / "cache").rglob("train.bad-rows.jsonl"))
    assert len(side_file.read_text().splitlines()) == 2
    assert same(splits, prepare(config, tmp_path, cache=tmp_path / "cache"))
    assert same(splits, prepare(config, tmp_path))
