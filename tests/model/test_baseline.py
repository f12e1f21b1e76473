from __future__ import annotations

import numpy as np

from textmill.core.types import Example, Predictor
from textmill.model.baseline import baseline

TRAIN = [
    Example(
        str(number), f"{'good' if number % 2 else 'bad'} film {number}", ("pos" if number % 2 else "neg",)
    )
    for number in range(40)
]


def test_baseline_is_a_predictor_that_learns_from_examples() -> None:
    predictor = baseline(TRAIN)
    assert isinstance(predictor, Predictor)
    assert predictor.labels == ("neg", "pos")
    assert predictor.scores(["a bad book", "a good book"]).argmax(axis=1).tolist() == [0, 1]


def test_baseline_is_the_same_every_time() -> None:
    texts = [example.text for example in TRAIN]
    np.testing.assert_array_equal(baseline(TRAIN).scores(texts), baseline(TRAIN).scores(texts))
