from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.data.conftest import Listener
from textmill.core.errors import DataError
from textmill.core.files import sha256_file
from textmill.data.config import DataConfig
from textmill.data.get.catalogue import DATA_SETS, get
from textmill.data.prepare import prepare
from textmill.model.baseline import baseline

COUNTS = {
    "movie-reviews": {"pos": 4_598, "neg": 4_575},
    "tweets": {"pos": 1_830, "neg": 837},
    "amazon-reviews": {"pos": 1_514, "neg": 941},
    "nyt-editorials": {"pos": 558, "neg": 996},
}


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


@pytest.mark.slow
@pytest.mark.parametrize("name", DATA_SETS)
def test_each_data_set_arrives_whole(tmp_path: Path, name: str) -> None:
    path = get(name, tmp_path)
    table = pq.read_table(path)
    assert table.column_names == ["id", "text", "label", "rating"]
    assert Counter(table.column("label").to_pylist()) == COUNTS[name]
    assert "MIT" in (tmp_path / f"{name}.md").read_text()
    path.write_bytes(path.read_bytes()[:-10])
    assert pq.read_table(get(name, tmp_path)).num_rows == table.num_rows


@pytest.mark.slow
def test_the_baseline_reads_movie_reviews(tmp_path: Path) -> None:
    get("movie-reviews", tmp_path)
    splits = prepare(DataConfig(train="movie-reviews.parquet", id="id"), tmp_path)
    predictor = baseline(splits.train)
    best = predictor.scores([example.text for example in splits.test]).argmax(axis=1)
    right = sum(predictor.labels[b] == e.labels[0] for b, e in zip(best, splits.test, strict=True))
    assert right / len(splits.test) > 0.80
