"""From scores to the classes that are chosen.

Promises: one rule for every Predictor, every report and every answer: of a single-label model the class
with the highest score (the first of equal ones); of a multi-label model each class whose score reaches
its threshold, so that a row may have no class at all.
What is not covered: how thresholds are found (`model/thresholds.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from textmill.core.types import Scores, Task

HALF = 0.5
"""The threshold of a class that has none of its own."""


@dataclass(frozen=True, slots=True)
class Decision:
    """How a model's scores are read."""

    is_multilabel: bool = False
    """Whether the scores are independent sigmoids, any number of which may be chosen."""
    thresholds: tuple[float, ...] | None = None
    """C thresholds of a multi-label model; None: 0.5 for each class."""

    def __post_init__(self) -> None:
        """Refuse thresholds where none can be."""
        assert self.thresholds is None or self.is_multilabel, "only multi-label classes have thresholds"
        assert all(0 < each < 1 for each in self.thresholds or ()), "a threshold lies between 0 and 1"

    def chosen(self, scores: Scores) -> npt.NDArray[np.bool_]:
        """Return which classes are chosen.

        Args:
            scores: (B, C) probabilities.

        Returns:
            (B, C) bool; exactly one true value in a row of a single-label model.
        """
        import numpy as np

        if self.is_multilabel:
            return scores >= self._limits(scores.shape[1])
        chosen = np.zeros(scores.shape, dtype=np.bool_)
        if len(scores):
            chosen[np.arange(len(scores)), scores.argmax(axis=1)] = True
        return chosen

    def names(self, scores: Scores, labels: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the names of the chosen classes of each of B rows, in the order of `labels`."""
        return [
            tuple(label for label, is_chosen in zip(labels, row, strict=True) if is_chosen)
            for row in self.chosen(scores).tolist()
        ]

    def probabilities(self, logits: Scores) -> Scores:
        """Return (B, C) float32 probabilities of (B, C) logits: softmax, or a sigmoid each."""
        import numpy as np

        if self.is_multilabel:
            # tanh does not overflow where exp would.
            halves: Scores = (0.5 * (1.0 + np.tanh(0.5 * logits))).astype(np.float32)
            return halves
        powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
        shares: Scores = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
        return shares

    def for_labels(self, have: Sequence[str], want: Sequence[str]) -> Decision:
        """Return the decision for columns in another order; a class that was not there gets 0.5."""
        if self.thresholds is None:
            return self
        known = dict(zip(have, self.thresholds, strict=True))
        return Decision(self.is_multilabel, tuple(known.get(label, HALF) for label in want))

    def threshold_of(self, place: int) -> float:
        """Return the threshold of one class of a multi-label model."""
        assert self.is_multilabel, "a single-label model has no thresholds"
        return HALF if self.thresholds is None else self.thresholds[place]

    def _limits(self, num_classes: int) -> npt.NDArray[np.float32]:
        import numpy as np

        thresholds = (HALF,) * num_classes if self.thresholds is None else self.thresholds
        assert len(thresholds) == num_classes, "one threshold for each class"
        # In the scores' own precision: a score that equals the threshold in float32 reaches it.
        return np.array(thresholds, dtype=np.float32)


SINGLE = Decision()
"""One class a row, the one with the highest score."""


def decision_of(task: Task, thresholds: Sequence[float] | None = None) -> Decision:
    """Return the decision of a task; `thresholds` belong to multi-label tasks only."""
    if task != "multilabel":
        return SINGLE
    return Decision(is_multilabel=True, thresholds=None if thresholds is None else tuple(thresholds))
