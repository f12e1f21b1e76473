"""Thresholds chosen on rows that the model did not learn from."""

import numpy as np

from textmill.model.thresholds import MIN_POSITIVE, choose_thresholds


def simulate(rows, share, seed, shift=-1.5):
    rng = np.random.default_rng(seed)
    truth = rng.random(rows) < share
    logits = rng.normal(size=rows) + 2.0 * truth + shift + np.log(share / (1 - share))
    return truth[:, None], (1 / (1 + np.exp(-logits))).astype(np.float32)[:, None]


def f1(truth, chosen):
    return 2 * (truth & chosen).sum() / max(1, truth.sum() + chosen.sum())


def test_no_other_threshold_gives_a_higher_f1_on_the_rows():
    truth, scores = simulate(300, 0.2, 0)
    (threshold,) = choose_thresholds(truth, scores)
    best = max(f1(truth, scores >= cut) for cut in np.unique(scores))
    assert f1(truth, scores >= np.float32(threshold)) == best


def test_a_timid_model_is_better_on_fresh_rows_by_its_threshold():
    (threshold,) = choose_thresholds(*simulate(400, 0.1, 1))
    truth, scores = simulate(5000, 0.1, 2)
    assert threshold < 0.4
    assert f1(truth, scores >= threshold) > f1(truth, scores >= 0.5) + 0.1


def test_of_equally_good_thresholds_the_one_nearest_to_a_half_is_taken():
    scores = np.array([[0.1]] * 20 + [[0.8]] * 20, dtype=np.float32)
    (threshold,) = choose_thresholds(scores > 0.5, scores)
    assert np.isclose(threshold, 0.45)


def test_classes_with_few_rows_or_no_other_rows_keep_a_half():
    scores = np.linspace(0.01, 0.3, 40, dtype=np.float32)[:, None]
    few = np.zeros((40, 1), dtype=bool)
    few[: MIN_POSITIVE - 1] = True
    for truth in (few, np.ones((40, 1), dtype=bool), np.zeros((40, 1), dtype=bool)):
        assert choose_thresholds(truth, scores) == (0.5,)


def test_equal_scores_are_not_parted():
    scores = np.full((40, 1), 0.2, dtype=np.float32)
    truth = np.arange(40)[:, None] < 20
    (threshold,) = choose_thresholds(truth, scores)
    assert threshold < 0.2  # choosing all is better than choosing none
