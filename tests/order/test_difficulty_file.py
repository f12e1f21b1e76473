from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.order.rows import difficulty_of
from textmill.core.errors import DataError
from textmill.order.difficulty import Difficulty
from textmill.order.difficulty_file import FILE, load_difficulty, save_difficulty


@pytest.mark.parametrize("epochs", [0, 2])
def test_what_was_saved_comes_back_exactly(tmp_path, epochs):
    rows = Difficulty(
        ("a", "b"), np.array([4, 7]), np.array([0.3, 0.7], np.float32), 1.0, 2.0, ("x", "y"), ("y", "y")
    )
    for _ in range(epochs):
        rows = rows.after_epoch(np.array([0.123456789, np.nan]))
    path = save_difficulty(rows, tmp_path)
    assert path == tmp_path / FILE
    back = load_difficulty(path)
    assert (back.ids, back.given, back.rivals) == (rows.ids, rows.given, rows.rivals)
    assert (back.length_weight, back.clear_weight) == (1.0, 2.0)
    np.testing.assert_array_equal(back.rank(), rows.rank())
    np.testing.assert_array_equal(back.seen.loss, rows.seen.loss)
    assert [each.name for each in tmp_path.iterdir()] == [FILE]


def test_people_can_read_the_file(tmp_path):
    rows = difficulty_of(3).after_epoch(np.array([0.1, 0.2, np.nan]))
    table = pq.read_table(save_difficulty(rows, tmp_path)).to_pydict()
    assert table["id"] == ["row:0", "row:1", "row:2"]
    assert table["epochs"] == [1, 1, 0]
    assert table["mean_loss"] == [0.1, 0.2, None]
    assert table["label"] == [None, None, None]


def test_no_rows_and_no_teacher_are_kept_too(tmp_path):
    assert len(load_difficulty(save_difficulty(difficulty_of(0), tmp_path))) == 0
    rows = Difficulty(("a",), np.array([3]), None)
    assert load_difficulty(save_difficulty(rows, tmp_path)).clearness is None


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PAR1 but cut"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(DataError, match=FILE):
        load_difficulty(tmp_path / FILE)
