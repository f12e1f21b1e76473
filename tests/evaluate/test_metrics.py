from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix as sklearn_confusion
from sklearn.metrics import f1_score, log_loss, precision_recall_fscore_support

from tests.evaluate.toys import simulate
from textmill.core.seeds import numpy_generator
from textmill.evaluate.metrics import Metrics, measure, resample, value_of


def _measure(truth, scores, num_resamples: int = 1000) -> Metrics:
    labels = [f"class {i}" for i in range(scores.shape[1])]
    return measure(truth, scores, labels, numpy_generator(0, "test"), num_resamples=num_resamples)


@pytest.mark.parametrize("num_classes", [2, 3, 20])
def test_numbers_equal_scikit_learn(num_classes):
    truth, scores = simulate(300, num_classes, seed=num_classes)
    predicted = scores.argmax(axis=1)
    metrics = _measure(truth, scores)
    assert metrics.accuracy == pytest.approx((predicted == truth).mean())
    for ours, average in ((metrics.f1_macro, "macro"), (metrics.f1_micro, "micro")):
        assert ours == pytest.approx(f1_score(truth, predicted, average=average))
    assert metrics.f1_weighted == pytest.approx(f1_score(truth, predicted, average="weighted"))
    matrix = sklearn_confusion(truth, predicted)
    assert all(matrix[cell.truth, cell.predicted] == cell.rows > 0 for cell in metrics.confusion)
    assert sum(cell.rows for cell in metrics.confusion) == matrix.sum()
    rows = precision_recall_fscore_support(truth, predicted, zero_division=0)
    for i, each in enumerate(metrics.per_class):
        assert (each.precision, each.recall, each.f1, each.support) == pytest.approx([row[i] for row in rows])
    exact = scores.astype(np.float64)
    exact /= exact.sum(axis=1, keepdims=True)
    assert metrics.log_loss == pytest.approx(log_loss(truth, exact), abs=1e-6)


def test_numbers_equal_a_naive_loop():
    truth, scores = simulate(100, 3, seed=5)
    predicted = [max(range(3), key=lambda c, row=row: row[c]) for row in scores]
    metrics = _measure(truth, scores)
    f1s = []
    for label in range(3):
        hits = sum(1 for t, p in zip(truth, predicted, strict=True) if t == p == label)
        wrong = sum(1 for t, p in zip(truth, predicted, strict=True) if p == label != t)
        missed = sum(1 for t, p in zip(truth, predicted, strict=True) if t == label != p)
        each = metrics.per_class[label]
        assert each.precision == pytest.approx(hits / (hits + wrong))
        assert each.recall == pytest.approx(hits / (hits + missed))
        assert each.predicted == hits + wrong
        f1s.append(2 * hits / (2 * hits + wrong + missed))
    assert metrics.f1_macro == pytest.approx(sum(f1s) / 3)
    losses = [-math.log(row[t]) for t, row in zip(truth, scores, strict=True)]
    assert metrics.log_loss == pytest.approx(sum(losses) / len(losses), abs=1e-9)


def test_calibration_error_by_hand():
    # Confidence 0.9 four times, right three times; 0.6 twice, right once.
    scores = np.array([[0.9, 0.1]] * 4 + [[0.4, 0.6]] * 2)
    metrics = _measure(np.array([0, 0, 0, 1, 1, 0]), scores)
    assert metrics.ece == pytest.approx(4 / 6 * abs(0.75 - 0.9) + 2 / 6 * abs(0.5 - 0.6))
    filled = [each for each in metrics.reliability if each.count]
    assert [each.count for each in filled] == [2, 4]
    assert [each.accuracy for each in filled] == [0.5, 0.75]
    assert [each.confidence for each in filled] == pytest.approx([0.6, 0.9])


def test_a_confidence_on_an_edge_belongs_to_the_bin_below():
    scores = np.array([[0.8, 0.2], [1.0, 0.0]])  # 0.8 = 12 / 15
    bins = _measure(np.array([0, 0]), scores).reliability
    assert len(bins) == 15
    assert [i for i, each in enumerate(bins) if each.count] == [11, 14]


def test_a_class_missing_from_the_truth_is_handled_as_scikit_learn_does():
    truth = np.array([0, 0, 1, 1])
    unseen = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.8, 0.1], [0.1, 0.8, 0.1]])
    metrics = _measure(truth, unseen)
    assert metrics.f1_macro == pytest.approx(f1_score(truth, unseen.argmax(axis=1), average="macro"))
    assert metrics.per_class[2].support == metrics.per_class[2].predicted == 0
    guessed = unseen[:, [2, 1, 0]]
    metrics = _measure(truth, guessed)
    expected = f1_score(truth, guessed.argmax(axis=1), average="macro", zero_division=0)
    assert metrics.f1_macro == pytest.approx(expected)
    assert metrics.confusion == ((0, 1, 1), (0, 2, 1), (1, 1, 2))


def test_one_row_is_measured():
    metrics = _measure(np.array([1]), np.array([[0.3, 0.7]], dtype=np.float32))
    assert metrics.rows == 1
    assert metrics.accuracy == metrics.f1_macro == 1.0
    assert metrics.accuracy_interval == (1.0, 1.0)
    assert metrics.accuracy_wilson.low < 0.3  # one row proves little, and Wilson says so


def test_a_score_of_zero_for_the_truth_gives_a_finite_loss():
    metrics = _measure(np.array([0]), np.array([[0.0, 1.0]], dtype=np.float32))
    assert 80 < metrics.log_loss < 90


def test_the_wilson_interval_follows_its_formula():
    truth, scores = simulate(80, 2, seed=3)
    metrics = _measure(truth, scores)
    z, n, p = 1.959964, 80, metrics.accuracy
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert metrics.accuracy_wilson == pytest.approx((middle - half, middle + half), abs=1e-6)


def test_resampling_cells_has_the_distribution_of_resampling_rows():
    truth, scores = simulate(200, 4, seed=9)
    predicted = scores.argmax(axis=1)
    (counts,) = resample(truth, [predicted], 4, np.random.default_rng(1), 4000)
    ours = value_of("f1_macro", counts)
    rng = np.random.default_rng(2)
    drawn = []
    for _ in range(300):
        rows = rng.integers(0, 200, 200)
        drawn.append(f1_score(truth[rows], predicted[rows], average="macro"))
    assert ours.mean() == pytest.approx(np.mean(drawn), abs=0.01)
    assert ours.std() == pytest.approx(np.std(drawn), rel=0.2)


def test_the_interval_holds_the_true_accuracy_about_95_times_in_100():
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(300):
        right = rng.random(400) < 0.8
        scores = np.where(right[:, None], [[0.9, 0.1]], [[0.1, 0.9]])
        low, high = measure(np.zeros(400, dtype=np.int64), scores, "ab", rng).accuracy_interval
        held += low <= 0.8 <= high
    assert 0.90 < held / 300 < 0.985


def test_equal_seeds_give_equal_intervals():
    truth, scores = simulate(150, 3, seed=6)
    assert _measure(truth, scores) == _measure(truth, scores)


def test_the_json_holds_plain_numbers_only():
    truth, scores = simulate(50, 3, seed=2)
    plain = _measure(truth, scores).as_json()
    again = json.loads(json.dumps(plain, allow_nan=False))
    assert again["accuracy_interval"]["low"] <= again["accuracy"] <= again["accuracy_interval"]["high"]
    assert again["per_class"][0]["label"] == "class 0"
    assert sum(rows for _, _, rows in again["confusion"]) == 50
