"""The baseline that a fine-tuned model has to beat: the teacher as a Predictor.

Promises: learnt from the same training rows as the model; deterministic. With several labels a row its
thresholds are chosen on the same validation rows as the model's, so that the comparison is fair.
What is not covered: examples that nobody labelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from textmill.core.decision import Decision
from textmill.core.types import Example, Predictor, Scores, Task, Text
from textmill.data.teacher import Teacher
from textmill.model.thresholds import choose_thresholds

_SEED = 0


@dataclass(frozen=True, slots=True)
class WithDecision:
    """A Predictor whose scores are read in another way."""

    predictor: Predictor
    decision: Decision

    @property
    def labels(self) -> tuple[str, ...]:
        """The C class names, in the order of the columns of `scores`."""
        return self.predictor.labels

    def scores(self, texts: Sequence[Text]) -> Scores:
        """Return (B, C) float32 probabilities in the order of `texts`."""
        return self.predictor.scores(texts)


def baseline(
    train: Sequence[Example], valid: Sequence[Example] = (), task: Task = "classification"
) -> Predictor:
    """Return TF-IDF with logistic regression, trained on the examples; for several labels one a class.

    Args:
        train: labelled examples; one label each unless the task is multi-label.
        valid: other labelled examples, to choose thresholds by.
        task: what the examples are for.
    """
    texts = [example.text for example in train]
    if task != "multilabel":
        assert all(len(example.labels) == 1 for example in train), "one label for each example"
        return Teacher.fit(texts, [example.labels[0] for example in train], _SEED)
    teacher = Teacher.fit(texts, [example.labels for example in train], _SEED)
    if not len(valid):
        return teacher
    truth = np.array([[label in example.labels for label in teacher.labels] for example in valid])
    thresholds = choose_thresholds(truth, teacher.scores([example.text for example in valid]))
    return WithDecision(teacher, Decision(is_multilabel=True, thresholds=thresholds))
