"""Small real parts for the tests of evaluate: rows with simulated scores, and a predictor of known scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from textmill.core.decision import SINGLE, Decision
from textmill.core.types import Example, Scores, Text


class Lookup:
    """A predictor that knows the scores of each text beforehand."""

    def __init__(
        self, labels: Sequence[str], answers: dict[Text, Sequence[float]], decision: Decision = SINGLE
    ) -> None:
        self.labels = tuple(labels)
        self.answers = answers
        self.decision = decision

    def scores(self, texts: Sequence[Text]) -> Scores:
        rows = [self.answers[text] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(self.labels))


def simulate(
    num_rows: int, num_classes: int, seed: int, skill: float = 1.5
) -> tuple[npt.NDArray[np.int64], Scores]:
    """Return true classes and scores that lean to them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, num_classes, num_rows)
    logits = rng.normal(size=(num_rows, num_classes))
    logits[np.arange(num_rows), truth] += skill
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return truth, scores.astype(np.float32)


def simulated(
    num_rows: int, labels: Sequence[str], seed: int, skill: float = 1.5
) -> tuple[Lookup, list[Example]]:
    """Return a predictor and the labelled examples it knows."""
    truth, scores = simulate(num_rows, len(labels), seed, skill)
    examples = [Example(f"row-{i}", f"text {i}", (labels[place],)) for i, place in enumerate(truth)]
    answers: dict[Text, Sequence[float]] = {
        example.text: row.tolist() for example, row in zip(examples, scores, strict=True)
    }
    return Lookup(labels, answers), examples
