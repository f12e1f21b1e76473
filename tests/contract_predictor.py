"""What everything that answers must hold to; run by the tests of each kind of predictor."""

from __future__ import annotations

import concurrent.futures
import random
from collections.abc import Sequence

import numpy as np

from tests.shapes import ODD
from textmill.core.types import Predictor, Text

TEXTS: Sequence[Text] = ODD


def check_scores_are_probabilities(predictor: Predictor, texts: Sequence[Text] = TEXTS) -> None:
    scores = predictor.scores(texts)
    assert scores.dtype == np.float32
    assert scores.shape == (len(texts), len(predictor.labels))
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()
    assert (scores <= 1).all()
    if not predictor.decision.is_multilabel:
        np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-5)


def check_labels_are_distinct_names(predictor: Predictor, texts: Sequence[Text] = TEXTS) -> None:
    assert isinstance(predictor.labels, tuple)
    assert len(set(predictor.labels)) == len(predictor.labels) > 0


def check_the_decision_fits_the_scores(predictor: Predictor, texts: Sequence[Text] = TEXTS) -> None:
    decision = predictor.decision
    assert decision.thresholds is None or len(decision.thresholds) == len(predictor.labels)
    chosen = decision.chosen(predictor.scores(texts))
    assert chosen.shape == (len(texts), len(predictor.labels))
    if not decision.is_multilabel:
        assert (chosen.sum(axis=1) == 1).all()


def check_no_texts_give_no_rows(predictor: Predictor, texts: Sequence[Text] = TEXTS) -> None:
    scores = predictor.scores([])
    assert scores.shape == (0, len(predictor.labels))
    assert scores.dtype == np.float32


def check_answers_come_in_the_order_of_the_texts(predictor: Predictor, texts: Sequence[Text] = TEXTS) -> None:
    order = list(range(len(texts)))
    random.Random(0).shuffle(order)
    scores = predictor.scores(texts)
    shuffled = predictor.scores([texts[index] for index in order])
    np.testing.assert_allclose(shuffled, scores[order], atol=1e-4)


def check_an_answer_does_not_depend_on_its_neighbours(
    predictor: Predictor, texts: Sequence[Text] = TEXTS
) -> None:
    together = predictor.scores(texts)
    alone = np.concatenate([predictor.scores([text]) for text in texts])
    np.testing.assert_allclose(alone, together, atol=1e-4)


def check_threads_at_once_get_their_own_answers(predictor: Predictor, texts: Sequence[Text] = TEXTS) -> None:
    expected = predictor.scores(texts)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for index, scores in enumerate(pool.map(lambda i: predictor.scores(texts[i % 5 :]), range(12))):
            np.testing.assert_allclose(scores, expected[index % 5 :], atol=1e-4)


CONTRACT = (
    check_scores_are_probabilities,
    check_labels_are_distinct_names,
    check_the_decision_fits_the_scores,
    check_no_texts_give_no_rows,
    check_answers_come_in_the_order_of_the_texts,
    check_an_answer_does_not_depend_on_its_neighbours,
    check_threads_at_once_get_their_own_answers,
)
