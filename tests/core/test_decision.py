"""From scores to chosen classes."""

import numpy as np
import pytest

from textmill.core.decision import SINGLE, Decision, decision_of


def scores_of(*rows):
    return np.array(rows, dtype=np.float32)


def test_a_single_label_model_chooses_the_first_of_the_highest():
    chosen = SINGLE.chosen(scores_of([0.2, 0.4, 0.4], [0.9, 0.05, 0.05]))
    assert chosen.tolist() == [[False, True, False], [True, False, False]]


def test_a_multi_label_model_may_choose_none_or_all():
    decision = Decision(is_multilabel=True)
    assert decision.names(scores_of([0.1, 0.2], [0.9, 0.5]), ["a", "b"]) == [(), ("a", "b")]


def test_a_score_that_equals_its_threshold_reaches_it():
    decision = Decision(is_multilabel=True, thresholds=(0.1, 0.7))
    assert decision.chosen(scores_of([0.1, 0.7])).all()
    assert not decision.chosen(scores_of([0.0999, 0.6999])).any()


def test_no_rows_give_no_rows():
    empty = np.empty((0, 3), dtype=np.float32)
    assert SINGLE.chosen(empty).shape == (0, 3)
    assert Decision(is_multilabel=True).chosen(empty).shape == (0, 3)


def test_probabilities_of_one_label_sum_to_one_and_of_several_stand_alone():
    logits = scores_of([3.0, -3.0, 500.0], [-500.0, 0.0, 1.0])
    assert np.allclose(SINGLE.probabilities(logits).sum(axis=1), 1)
    alone = Decision(is_multilabel=True).probabilities(logits)
    assert alone.dtype == np.float32
    assert np.allclose(alone[0, :2], [1 / (1 + np.exp(-3)), 1 / (1 + np.exp(3))], atol=1e-7)
    assert alone[0, 2] == 1
    assert alone[1, :2].tolist() == [0.0, 0.5]


def test_thresholds_follow_their_labels():
    decision = Decision(is_multilabel=True, thresholds=(0.1, 0.7)).for_labels(("a", "b"), ("b", "new", "a"))
    assert decision.thresholds == (0.7, 0.5, 0.1)
    assert SINGLE.for_labels(("a",), ("b",)) is SINGLE


def test_only_multi_label_tasks_have_thresholds():
    assert decision_of("pairs", (0.3,)) is SINGLE
    assert decision_of("multilabel", [0.3]) == Decision(is_multilabel=True, thresholds=(0.3,))
    with pytest.raises(AssertionError, match="only multi-label"):
        Decision(thresholds=(0.3,))
