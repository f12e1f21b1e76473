"""Several labels a row: numbers against scikit-learn, intervals, files and pages."""

import json
import warnings

import numpy as np
import pytest
from sklearn import metrics as sk

from tests.evaluate.toys import Lookup
from textmill.core.decision import Decision
from textmill.core.errors import DataError, ModelError
from textmill.core.types import Example
from textmill.evaluate.compare import compare
from textmill.evaluate.evaluate import evaluate, from_scores
from textmill.evaluate.metrics import value_of
from textmill.evaluate.multilabel import count_sets, resample_sets
from textmill.evaluate.predictions import read_examples, read_predictions, write_predictions
from textmill.evaluate.report import write_report

LABELS = ("food", "sea", "NA, null")
DECISION = Decision(is_multilabel=True, thresholds=(0.5, 0.3, 0.6))


def simulate(rows=120, seed=0, skill=1.5):
    rng = np.random.default_rng(seed)
    truth = (rng.random((rows, 3)) < [0.5, 0.3, 0.1]).astype(np.int64)
    logits = rng.normal(size=(rows, 3)) + skill * (2 * truth - 1)
    return truth, (1 / (1 + np.exp(-logits))).astype(np.float32)


def measured(rows=120, seed=0, skill=1.5, decision=DECISION):
    truth, scores = simulate(rows, seed, skill)
    ids = [f"row-{place}" for place in range(rows)]
    return from_scores(LABELS, ids, truth, scores, num_resamples=200, decision=decision)


def examples_of(evaluation):
    return [
        Example(row_id, f"text {row_id}", tuple(np.array(LABELS)[sets].tolist()))
        for row_id, sets in zip(evaluation.ids, evaluation.truth_sets, strict=True)
    ]


def test_the_numbers_are_those_of_scikit_learn():
    found = measured()
    truth, chosen, ours = found.truth, found.chosen.astype(int), found.metrics
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isclose(ours.f1_macro, sk.f1_score(truth, chosen, average="macro"))
        assert np.isclose(ours.f1_micro, sk.f1_score(truth, chosen, average="micro"))
        assert np.isclose(ours.f1_weighted, sk.f1_score(truth, chosen, average="weighted"))
    assert np.isclose(ours.accuracy, sk.accuracy_score(truth, chosen))
    assert np.isclose(ours.hamming, sk.hamming_loss(truth, chosen))
    for place, each in enumerate(ours.per_class):
        expected = sk.average_precision_score(truth[:, place], found.scores[:, place])
        assert np.isclose(each.average_precision, expected)
        assert each.threshold == DECISION.thresholds[place]
    losses = [sk.log_loss(truth[:, place], found.scores[:, place].astype(float)) for place in range(3)]
    assert np.isclose(ours.log_loss, np.mean(losses), atol=1e-6)


def test_average_precision_takes_equal_scores_together():
    truth = np.array([[1], [0], [1], [0]])
    scores = np.array([[0.5], [0.5], [0.5], [0.1]], dtype=np.float32)
    found = from_scores(("a",), list("wxyz"), truth, scores, num_resamples=10, decision=Decision(True))
    expected = sk.average_precision_score(truth[:, 0], scores[:, 0])
    assert np.isclose(found.metrics.per_class[0].average_precision, expected)


def test_one_row_one_class_and_classes_that_never_occur_are_fine():
    single = from_scores(
        ("a",), ["x"], np.array([[0]]), np.array([[0.2]], np.float32), decision=Decision(True)
    )
    assert (single.metrics.accuracy, single.metrics.f1_macro) == (1.0, 0.0)
    assert single.metrics.per_class[0].average_precision is None
    json.dumps(single.as_json(), allow_nan=False)


def test_intervals_are_those_of_drawing_rows():
    found = measured(rows=80)
    rng = np.random.default_rng(0)
    truth, chosen = found.truth_sets, found.chosen
    (counts,) = resample_sets(truth, [chosen], np.random.default_rng(1), 2000)
    naive = []
    for _ in range(2000):
        rows = rng.integers(0, 80, 80)
        naive.append(float(value_of("f1_macro", count_sets(truth[rows], chosen[rows]))))
    drawn = value_of("f1_macro", counts)
    assert np.allclose(
        np.quantile(drawn, [0.025, 0.5, 0.975]), np.quantile(naive, [0.025, 0.5, 0.975]), atol=0.02
    )
    assert np.isclose(value_of("accuracy", counts).mean(), found.metrics.accuracy, atol=0.02)


def test_a_better_model_is_told_from_a_worse_one_with_its_labels_in_another_order():
    weak, strong = measured(400, skill=0.3), measured(400, skill=3.0)
    order = [2, 0, 1]
    turned = from_scores(
        tuple(np.array(LABELS)[order].tolist()),
        strong.ids,
        strong.truth[:, order],
        strong.scores[:, order],
        num_resamples=100,
        decision=DECISION.for_labels(LABELS, np.array(LABELS)[order].tolist()),
    )
    found = compare(weak, turned)
    assert found.difference.low > 0
    assert np.isclose(found.difference.second, strong.metrics.f1_macro)
    assert found.only_second_right > found.only_first_right


def test_predictions_read_back_are_what_was_written(tmp_path):
    found = measured()
    examples = examples_of(found)
    write_predictions(tmp_path / "p.parquet", found, examples)
    again = read_predictions(tmp_path / "p.parquet")
    assert again.decision == DECISION
    np.testing.assert_array_equal(again.truth, found.truth)
    assert again.metrics == found.metrics
    assert read_examples(tmp_path / "p.parquet") == examples


def test_the_report_has_thresholds_and_no_confusion(tmp_path):
    found = measured()
    weak = measured(skill=0.5)
    examples = examples_of(found)
    project = {"name": "topics", "task": "multilabel"}
    paths = write_report(
        tmp_path, project=project, data={}, evaluation=found, baseline=weak, examples=examples
    )
    page = paths.html.read_text(encoding="utf-8")
    assert "Exactly right" in page
    assert "Which classes are chosen together" in page
    assert "Hamming loss" in page
    assert "Which class is taken for which" not in page
    facts = json.loads(paths.json.read_text(encoding="utf-8"))
    assert facts["evaluation"]["is_multilabel"]
    assert all(isinstance(error["truth"], list) for error in facts["errors"])
    assert "any number of which may apply" in paths.card.read_text(encoding="utf-8")


def test_rows_without_a_label_are_measured_and_unknown_labels_refused():
    rows = [Example("a", "one", ()), Example("b", "two", ("food", "sea"))]
    answers = {"one": [0.1, 0.1, 0.1], "two": [0.9, 0.9, 0.1]}
    predictor = Lookup(LABELS, answers, Decision(is_multilabel=True))
    assert evaluate(predictor, rows, num_resamples=10).metrics.accuracy == 1.0
    with pytest.raises(DataError, match="unknown label 'new'"):
        evaluate(predictor, [Example("a", "one", ("food", "new"))])


def test_scores_above_one_are_refused():
    with pytest.raises(ModelError, match="none below 0 or above 1"):
        from_scores(("a",), ["x"], np.array([[1]]), np.array([[3.0]], np.float32), decision=Decision(True))
