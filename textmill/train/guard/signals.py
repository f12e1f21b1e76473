"""What is measured of each batch: a few small operations on its logits, summed over a window later.

All are sums, so that the batches of a step, and the steps of a window, can be added up. Spread and
alignment are taken about the batch's own mean, so that a drift between steps adds nothing to them.
What is not covered: judging (`guard.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

Floats = npt.NDArray[np.float64]

_ROWS, _FREE, _INFINITE, _SCATTER, _ALIGNMENT, _BATCHES, _ONE_LABEL = range(7)
NUM_SCALARS = 7


def measure(logits: torch.Tensor, targets: torch.Tensor, *, is_multilabel: bool = False) -> torch.Tensor:
    """Return the sums of a batch, on the logits' device and without waiting for it.

    Args:
        logits: (B, C) float.
        targets: (B,) int64 class index, or (B, C) float for several labels a row.
        is_multilabel: which of the two.

    Returns:
        (7 + 2 C,) float32: rows; rows - 1; logits that are not finite; squares of the logits about the
        batch's mean; label-weighted logits about the batch's mean; 1; whether all rows have the same
        labels; rows with each label; rows predicted as each class.
    """
    with torch.no_grad():
        logits = logits.detach().float()
        rows, classes = logits.shape
        if is_multilabel:
            labels = targets.float()
            predicted = (logits > 0).float()
        else:
            indexes = torch.arange(classes, device=logits.device)
            labels = (targets[:, None] == indexes).float()
            predicted = (logits.argmax(1)[:, None] == indexes).float()
            logits = logits - logits.mean(1, keepdim=True)
        num_labels = labels.sum(0)
        about = logits - logits.mean(0)
        same = ((num_labels == 0) | (num_labels == rows)).all().float()
        scalars = torch.stack(
            [
                torch.full_like(same, rows),
                torch.full_like(same, rows - 1),
                (~torch.isfinite(logits)).sum().float(),
                (about * about).sum(),
                (about * labels).sum(),
                torch.ones_like(same),
                same,
            ]
        )
        return torch.cat([scalars, num_labels, predicted.sum(0)])


@dataclass(frozen=True, slots=True)
class Signals:
    """The sums of a step or a window, read back."""

    values: Floats  # (7 + 2 C,)
    num_classes: int

    @property
    def rows(self) -> float:
        """Rows seen."""
        return float(self.values[_ROWS])

    @property
    def num_batches(self) -> float:
        """Batches seen."""
        return float(self.values[_BATCHES])

    @property
    def infinite(self) -> float:
        """Logits that are infinite or not a number."""
        return float(self.values[_INFINITE])

    @property
    def one_label_share(self) -> float:
        """Share of the batches all of whose rows have the same labels."""
        return float(self.values[_ONE_LABEL] / self.values[_BATCHES])

    @property
    def labels(self) -> Floats:
        """(C,) rows with each label."""
        return self.values[NUM_SCALARS : NUM_SCALARS + self.num_classes]

    @property
    def predicted(self) -> Floats:
        """(C,) rows predicted as each class."""
        return self.values[NUM_SCALARS + self.num_classes :]

    @property
    def top_share(self) -> float:
        """Share of the rows that are predicted as the class that is predicted most."""
        return float(self.predicted.max() / self.rows)

    @property
    def num_predicted(self) -> int:
        """Distinct classes among the predictions."""
        return int((self.predicted > 0).sum())


def spreads(steps: Floats, num_classes: int) -> Floats:
    """Return the (S,) standard deviation of a logit over the inputs of a batch, for each of S steps' sums."""
    free = np.maximum(steps[:, _FREE] * num_classes, 1.0)
    found: Floats = np.sqrt(steps[:, _SCATTER] / free)
    return found


def alignment(steps: Floats, num_classes: int) -> float:
    """Return how far the logits go with the labels, in standard errors of logits that know nothing of them.

    Under labels dealt out regardless of the logits, a step's label-weighted sum about the batch's mean
    has mean 0 and, for C classes with shares p in n rows, a variance of about
    scatter / C x (1 - sum p^2) / (1 - 1 / C) x n / (n - 1), exact for two classes. Each step is measured by
    its own variance, so that a wild one weighs no more than another; together they are sum z / sqrt(S)
    (Stouffer 1949).

    Args:
        steps: (S, 7 + 2 C) sums of each step.
        num_classes: C.
    """
    labels = steps[:, NUM_SCALARS : NUM_SCALARS + num_classes]
    shares = labels / np.maximum(labels.sum(1, keepdims=True), 1.0)
    mixed = (1.0 - (shares**2).sum(1)) / (1.0 - 1.0 / max(num_classes, 2))
    rows = steps[:, _ROWS] / np.maximum(steps[:, _FREE], 1.0)
    variance = steps[:, _SCATTER] / num_classes * mixed * rows
    tells = variance > 1e-30
    if not tells.any():
        return 0.0
    scores = steps[tells, _ALIGNMENT] / np.sqrt(variance[tells])
    return float(scores.sum() / np.sqrt(len(scores)))
