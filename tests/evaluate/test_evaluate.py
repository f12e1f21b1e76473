from __future__ import annotations

import numpy as np
import pytest

from tests.evaluate.toys import Lookup, simulated
from textmill.core.errors import DataError, ModelError
from textmill.core.types import Example
from textmill.evaluate.evaluate import evaluate


def test_rows_keep_the_order_of_the_examples():
    predictor, examples = simulated(700, ["neg", "pos"], seed=0)
    evaluation = evaluate(predictor, examples)
    assert evaluation.ids == tuple(example.id for example in examples)
    assert np.array_equal(evaluation.scores, predictor.scores([example.text for example in examples]))
    assert [evaluation.labels[i] for i in evaluation.truth] == [example.labels[0] for example in examples]
    assert evaluation.scores.dtype == np.float32


def test_the_same_seed_gives_the_same_evaluation():
    predictor, examples = simulated(60, ["neg", "pos"], seed=1)
    assert evaluate(predictor, examples).as_json() == evaluate(predictor, examples).as_json()
    other = evaluate(predictor, examples, seed=1).metrics
    assert other.accuracy == evaluate(predictor, examples).metrics.accuracy


def test_a_row_without_a_label_is_named():
    predictor, examples = simulated(5, ["neg", "pos"], seed=2)
    examples[3] = Example("row-3", "text 3")
    with pytest.raises(
        DataError, match="exactly one label, but got 1 rows with none or several \\('row-3'\\)"
    ):
        evaluate(predictor, examples)


def test_an_unknown_label_is_named_with_its_rows_and_the_nearest_known():
    predictor, examples = simulated(5, ["negative", "positive"], seed=2)
    examples[1] = Example("row-1", "text 1", ("postive",))
    with pytest.raises(DataError, match="unknown label 'postive' in 1 rows \\('row-1'\\)") as caught:
        evaluate(predictor, examples)
    assert "Did you mean 'positive'?" in caught.value.fix


def test_no_rows_and_ids_that_occur_twice_are_refused():
    predictor, examples = simulated(5, ["neg", "pos"], seed=2)
    with pytest.raises(DataError, match="at least one labelled row"):
        evaluate(predictor, [])
    with pytest.raises(DataError, match="'row-2'"):
        evaluate(predictor, [*examples, examples[2]])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([float("nan"), 0.5], "finite numbers"),
        ([float("inf"), 0.5], "finite numbers"),
        ([2.0, -1.0], "probabilities"),
        ([3.1, 2.2], "probabilities"),
    ],
)
def test_scores_that_are_no_probabilities_are_refused_with_the_row(row, message):
    examples = [Example("first", "fine", ("neg",)), Example("second", "broken", ("pos",))]
    predictor = Lookup(["neg", "pos"], {"fine": [0.5, 0.5], "broken": row})
    with pytest.raises(ModelError, match=message) as caught:
        evaluate(predictor, examples)
    assert "'second'" in caught.value.got
    assert "'first'" not in caught.value.got


def test_one_row_is_evaluated():
    predictor, examples = simulated(1, ["neg", "pos"], seed=4)
    assert evaluate(predictor, examples).metrics.rows == 1
