"""The baseline that a fine-tuned model has to beat: the teacher as a Predictor.

Promises: learnt from the same training rows as the model; deterministic.
What is not covered: examples without a label, or with several.
"""

from __future__ import annotations

from collections.abc import Sequence

from textmill.core.types import Example, Predictor
from textmill.data.teacher import Teacher

_SEED = 0


def baseline(train: Sequence[Example]) -> Predictor:
    """Return TF-IDF with logistic regression, trained on the examples.

    Args:
        train: labelled examples, one label each.
    """
    assert all(len(example.labels) == 1 for example in train), "one label for each example"
    return Teacher.fit([example.text for example in train], [example.labels[0] for example in train], _SEED)
