from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from sklearn.metrics import f1_score

from tests.evaluate.toys import simulate, simulated
from textmill.core.errors import DataError
from textmill.core.seeds import numpy_generator
from textmill.evaluate.compare import Difference, compare, mcnemar_p, paired_difference
from textmill.evaluate.evaluate import Evaluation, evaluate, from_scores


def _evaluation(seed: int, skill: float, num_rows: int = 400) -> Evaluation:
    truth, _ = simulate(num_rows, 2, seed=0)
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(num_rows, 2))
    logits[np.arange(num_rows), truth] += skill
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = ("neg", "pos")
    ids = [f"r{i}" for i in range(num_rows)]
    return from_scores(labels, ids, truth, scores.astype(np.float32))


def test_a_clearly_better_model_is_called_better_and_the_other_way_round():
    weak, strong = _evaluation(1, 0.5), _evaluation(2, 2.5)
    forth, back = compare(weak, strong), compare(strong, weak)
    assert forth.difference.low > 0
    assert forth.verdict.startswith("The second model is better: macro-F1 +")
    assert forth.mcnemar_p < 0.001
    assert back.difference.high < 0
    assert back.verdict.startswith("The second model is worse: macro-F1 -")
    assert forth.difference.difference == pytest.approx(-back.difference.difference)
    assert (forth.only_first_right, forth.only_second_right) == (
        back.only_second_right,
        back.only_first_right,
    )


def test_two_equal_models_cannot_be_told_apart():
    one, other = _evaluation(1, 1.5), _evaluation(2, 1.5)
    result = compare(one, other, "accuracy")
    assert result.difference.low < 0 < result.difference.high
    assert "cannot tell" in result.verdict
    assert "rows would be needed to tell" in result.verdict


def test_a_model_against_itself_differs_by_nothing():
    one = _evaluation(1, 1.5)
    result = compare(one, one)
    assert (result.difference.low, result.difference.difference, result.difference.high) == (0, 0, 0)
    assert result.mcnemar_p == 1.0
    assert "cannot tell" in result.verdict


def test_the_order_of_rows_and_of_labels_does_not_matter():
    first, second = _evaluation(1, 1.0), _evaluation(2, 2.0)
    turn = np.random.default_rng(0).permutation(len(second.ids))
    turned = replace(
        second,
        labels=second.labels[::-1],
        ids=tuple(second.ids[i] for i in turn),
        truth=1 - second.truth[turn],
        scores=second.scores[turn][:, ::-1],
    )
    assert compare(first, turned).as_json() == compare(first, second).as_json()


def test_other_rows_labels_or_truth_are_refused():
    first = _evaluation(1, 1.0)
    with pytest.raises(DataError, match=r"same rows, but got 400 and 399 rows, of which 1 are .*'r399'"):
        compare(first, _evaluation(2, 1.0, num_rows=399))
    predictor, examples = simulated(400, ["neg", "neutral", "pos"], seed=0)
    examples = [replace(example, id=f"r{i}") for i, example in enumerate(examples)]
    with pytest.raises(DataError, match="'neutral' known to one of them only"):
        compare(first, evaluate(predictor, examples))
    changed = replace(first, truth=np.where(np.arange(400) == 7, 1 - first.truth, first.truth))
    with pytest.raises(DataError, match="row 'r7' with the label"):
        compare(first, changed)


def test_the_difference_equals_scikit_learn_and_the_interval_a_naive_bootstrap():
    truth, first = simulate(300, 3, seed=1, skill=1.0)
    second = 0.6 * first + 0.4 * np.eye(3, dtype=np.float32)[truth]
    result = paired_difference(truth, first, second, "abc", "f1_macro", numpy_generator(0, "t"))
    one, two = first.argmax(axis=1), second.argmax(axis=1)
    expected = f1_score(truth, two, average="macro") - f1_score(truth, one, average="macro")
    assert result.difference == pytest.approx(expected)
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(200):
        rows = rng.integers(0, 300, 300)
        drawn.append(
            f1_score(truth[rows], two[rows], average="macro")
            - f1_score(truth[rows], one[rows], average="macro")
        )
    assert (result.low, result.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.02)


def test_pairing_makes_the_interval_narrower_than_two_single_ones():
    truth, first = simulate(500, 2, seed=3, skill=1.0)
    second = first.copy()
    second[:5] = np.eye(2, dtype=np.float32)[truth[:5]]
    result = paired_difference(truth, first, second, "ab", "accuracy", numpy_generator(0, "t"))
    assert result.high - result.low < 0.02


def test_the_interval_of_the_difference_holds_the_truth_about_95_times_in_100():
    rng = np.random.default_rng(8)
    held = 0
    zeros = np.zeros(300, dtype=np.int64)
    for _ in range(200):
        right = rng.random(300)
        sides = [np.where((right < share)[:, None], [[0.9, 0.1]], [[0.1, 0.9]]) for share in (0.75, 0.8)]
        result = paired_difference(zeros, sides[0], sides[1], "ab", "accuracy", rng)
        held += result.low <= 0.05 <= result.high
    assert 0.88 < held / 200 <= 0.99


@pytest.mark.parametrize(("b", "c"), [(0, 0), (1, 0), (3, 9), (10, 10), (2, 30)])
def test_mcnemar_equals_the_binomial_sum(b, c):
    n = b + c
    tail = sum(comb(n, k) for k in range(min(b, c) + 1)) / 2**n
    assert mcnemar_p(b, c) == pytest.approx(min(1.0, 2 * tail))


def test_the_number_of_rows_that_would_tell_follows_the_square_root():
    it = Difference("accuracy", 1000, 0.80, 0.81, 0.01, -0.01, 0.03)
    assert it.rows_to_tell() == 4000
    assert it.rows_to_tell(threshold=-0.01) == 1000
    assert Difference("accuracy", 10, 0.5, 0.5, 0.0, 0.0, 0.0).rows_to_tell() is None


def test_the_json_is_plain():
    plain = compare(_evaluation(1, 1.0), _evaluation(2, 1.2)).as_json()
    assert json.loads(json.dumps(plain, allow_nan=False))["metric"] == "f1_macro"


def test_the_gate_gets_its_function_without_pandas():
    heavy = "{'pandas', 'torch', 'matplotlib'}"
    code = f"import sys; import textmill.evaluate.compare; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
