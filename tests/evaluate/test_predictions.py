from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.evaluate.toys import simulated
from textmill.core.errors import DataError
from textmill.core.types import Example
from textmill.evaluate.evaluate import evaluate, from_scores
from textmill.evaluate.predictions import read_predictions, write_predictions


@pytest.mark.parametrize("labels", [["neg", "pos"], ["NA", "null", "nan", "text", "id", "好 评"]])
def test_what_is_read_back_equals_what_was_written(tmp_path, labels):
    predictor, examples = simulated(80, labels, seed=0)
    evaluation = evaluate(predictor, examples, seed=3, num_resamples=200)
    write_predictions(tmp_path / "predictions.parquet", evaluation, examples)
    again = read_predictions(tmp_path / "predictions.parquet")
    assert (again.ids, again.labels, again.metrics) == (
        evaluation.ids,
        evaluation.labels,
        evaluation.metrics,
    )
    assert np.array_equal(again.truth, evaluation.truth)
    assert np.array_equal(again.scores, evaluation.scores)


def test_rows_join_on_id_whatever_the_order_of_the_examples(tmp_path):
    predictor, examples = simulated(40, ["neg", "pos"], seed=1)
    evaluation = evaluate(predictor, examples)
    path = tmp_path / "predictions.parquet"
    write_predictions(path, evaluation, sorted(examples, key=lambda example: -len(example.text)))
    rows = pq.read_table(path).to_pylist()
    assert [row["id"] for row in rows] == [example.id for example in examples]
    for row, example in zip(rows, examples, strict=True):
        assert row["text"] == example.text
        assert row["truth"] == example.labels[0]
        assert row["label"] == max(("neg", "pos"), key=lambda label, row=row: row[f"score:{label}"])


def test_the_loss_recomputed_from_the_file_equals_the_reported_one(tmp_path):
    predictor, examples = simulated(33, ["neg", "pos"], seed=2)
    evaluation = evaluate(predictor, examples)
    path = tmp_path / "predictions.parquet"
    write_predictions(path, evaluation)
    rows = pq.read_table(path).to_pylist()
    loss = np.mean([-np.log(row[f"score:{row['truth']}"]) for row in rows])
    assert loss == pytest.approx(evaluation.metrics.log_loss, abs=1e-6)
    assert "text" not in rows[0]


def test_pairs_and_half_an_emoji_are_written(tmp_path):
    examples = [Example("a", ("one", "two"), ("x",)), Example("b", "half \ud83d", ("y",))]
    scores = np.array([[0.7, 0.3], [0.2, 0.8]], dtype=np.float32)
    evaluation = from_scores(("x", "y"), ["a", "b"], np.array([0, 1]), scores)
    write_predictions(tmp_path / "p.parquet", evaluation, examples)
    rows = pq.read_table(tmp_path / "p.parquet").to_pylist()
    assert [(row["text"], row["text_pair"]) for row in rows] == [("one", "two"), ("half ?", None)]


def test_a_foreign_or_missing_file_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "foreign.parquet")
    with pytest.raises(DataError, match="with the columns a"):
        read_predictions(tmp_path / "foreign.parquet")
    (tmp_path / "text.parquet").write_text("no parquet")
    for name in ("text.parquet", "missing.parquet"):
        with pytest.raises(DataError, match=name):
            read_predictions(tmp_path / name)
