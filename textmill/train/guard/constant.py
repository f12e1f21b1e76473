"""What a model that gives one answer for every input can reach at best, and what a perfect one reaches.

Both depend on the loss in use. With label smoothing s over C classes the target of class c is
t_c = (1 - s) e_c + s / C, and a row of class c weighs w_c. For n_c rows of class c, N in all:

    constant answer   min over p of (1 / N) sum_c n_c w_c CE(t_c, p) = (W / N) H(q),
                      q = sum_c n_c w_c t_c / W,  W = sum_c n_c w_c     (Gibbs' inequality: p = q is the best)
    perfect answer    (W / N) H(t_1), since all H(t_c) are equal

Without smoothing and weights these are the entropy of the labels, which is ln C for balanced classes, and 0.
With several labels a row, each class is a yes-no question of its own, with targets y (1 - s) + s / 2 and
weight w_c where the answer is yes; a row's loss is the mean over its classes (`train/loss.py`).
What is not covered: losses that are not a cross-entropy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The two losses that a training moves between, in nats a row."""

    constant: float
    """Of the best answer that is the same for all inputs."""
    floor: float
    """Of a model that is sure and right."""

    @property
    def room(self) -> float:
        """What there is to learn."""
        return self.constant - self.floor


class ConstantAnswer:
    """Gives the bounds for any mix of labels under one loss."""

    def __init__(
        self,
        num_classes: int,
        *,
        label_smoothing: float = 0.0,
        class_weights: Sequence[float] | None = None,
        is_multilabel: bool = False,
    ) -> None:
        """Keep the loss in use.

        Args:
            num_classes: C.
            label_smoothing: share of the target that is spread evenly.
            class_weights: (C,) weight of a row by its class, or of a class where it applies; None for 1.
            is_multilabel: whether a row may have any number of labels.
        """
        self._smoothing = label_smoothing
        self._weights: Floats = (
            np.ones(num_classes) if class_weights is None else np.asarray(class_weights, float)
        )
        self._is_multilabel = is_multilabel
        self._num_classes = num_classes

    def bounds(self, counts: Floats, rows: float) -> Bounds:
        """Return the bounds for rows with these labels.

        Args:
            counts: (C,) rows that have each label.
            rows: N.
        """
        if self._is_multilabel:
            return self._bounds_multilabel(counts, rows)
        weighed = counts * self._weights
        total = weighed.sum()
        answer = self.best(counts, rows)
        target = np.full(self._num_classes, self._smoothing / self._num_classes)
        target[0] += 1.0 - self._smoothing
        return Bounds(float(total / rows * entropy(answer)), float(total / rows * entropy(target)))

    def best(self, counts: Floats, rows: float) -> Floats:
        """Return (C,) the best constant answer, a probability of each class."""
        if self._is_multilabel:
            yes, no = counts * self._weights, rows - counts
            mass = np.maximum(yes + no, 1e-30)
            share: Floats = (1.0 - self._smoothing) * yes / mass + self._smoothing / 2.0
            return share
        weighed = counts * self._weights
        mixed: Floats = (
            1.0 - self._smoothing
        ) * weighed / weighed.sum() + self._smoothing / self._num_classes
        return mixed

    def _bounds_multilabel(self, counts: Floats, rows: float) -> Bounds:
        answer, half = self.best(counts, rows), self._smoothing / 2.0
        mass = (counts * self._weights + rows - counts) / rows
        constant = np.array([entropy(np.array([share, 1.0 - share])) for share in answer])
        floor = entropy(np.array([half, 1.0 - half]))
        return Bounds(float((mass * constant).mean()), float((mass * floor).mean()))


def entropy(shares: Floats) -> float:
    """Return the entropy in nats; a share of zero adds nothing."""
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())
