"""What everything that answers must hold to; run by the tests of each kind of predictor."""

from __future__ import annotations

import concurrent.futures
import random

import numpy as np

from textmill.core.types import Predictor

TEXTS = [
    "a great film",
    "",
    "the worst and most boring story " * 12,
    "[SEP] [PAD] </s>",
    "\u8fd9\u90e8\u7535\u5f71\u5f88\u597d \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "half of an emoji \ud83d here",
    "caf&eacute;",
    "x",
    "a great film",
]


def check_scores_are_probabilities(predictor: Predictor) -> None:
    scores = predictor.scores(TEXTS)
    assert scores.dtype == np.float32
    assert scores.shape == (len(TEXTS), len(predictor.labels))
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()
    np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-5)


def check_labels_are_distinct_names(predictor: Predictor) -> None:
    assert isinstance(predictor.labels, tuple)
    assert len(set(predictor.labels)) == len(predictor.labels) > 0


def check_no_texts_give_no_rows(predictor: Predictor) -> None:
    scores = predictor.scores([])
    assert scores.shape == (0, len(predictor.labels))
    assert scores.dtype == np.float32


def check_answers_come_in_the_order_of_the_texts(predictor: Predictor) -> None:
    order = list(range(len(TEXTS)))
    random.Random(0).shuffle(order)
    scores = predictor.scores(TEXTS)
    shuffled = predictor.scores([TEXTS[index] for index in order])
    np.testing.assert_allclose(shuffled, scores[order], atol=1e-4)


def check_an_answer_does_not_depend_on_its_neighbours(predictor: Predictor) -> None:
    together = predictor.scores(TEXTS)
    alone = np.concatenate([predictor.scores([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, together, atol=1e-4)


def check_threads_at_once_get_their_own_answers(predictor: Predictor) -> None:
    expected = predictor.scores(TEXTS)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for index, scores in enumerate(pool.map(lambda i: predictor.scores(TEXTS[i % 5 :]), range(12))):
            np.testing.assert_allclose(scores, expected[index % 5 :], atol=1e-4)


CONTRACT = (
    check_scores_are_probabilities,
    check_labels_are_distinct_names,
    check_no_texts_give_no_rows,
    check_answers_come_in_the_order_of_the_texts,
    check_an_answer_does_not_depend_on_its_neighbours,
    check_threads_at_once_get_their_own_answers,
)
