"""The loss of a step, whose gradient does not depend on how the step is cut into batches.

Promise: the loss of a step is the mean over all its rows. Each batch adds its sum divided by the
rows of the whole step, so that accumulation, also with a short tail, gives the plain batch's gradient.

One label a row: cross-entropy over C classes. Several: binary cross-entropy of each class, and a row's
loss is the mean over its C classes, so that a constant answer of one half costs ln 2 however many there are.
Label smoothing of e: a share e of the target is spread evenly, over the C classes, or with several labels
over yes and no of each class (a target of 1 becomes 1 - e/2, one of 0 becomes e/2).
Class weights weigh what is true, never the smoothed share, which would pull a perfect model towards rare
classes (pytorch/pytorch#104776): rows by their class, or with several labels the classes that apply.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from textmill.train.config import TrainConfig

MAX_POS_WEIGHT = 20.0
"""How much more a rare class's rows may count. Simulated, classes of 0.2, 1 and 5 % of 4,000 rows, 8 seeds
each: average precision 0.038, 0.312, 0.697 without weights, 0.057, 0.359, 0.718 with at most 20, within 0.003
of that without a bound, where F1 falls again (0.375 to 0.361 at 1 %) and the scores are further off."""


class Loss(nn.Module):
    """Cross-entropy with label smoothing and class weights, for one label a row or several."""

    weights: torch.Tensor | None  # (C,) float32

    def __init__(
        self,
        label_smoothing: float = 0.0,
        weights: Sequence[float] | None = None,
        *,
        is_multilabel: bool = False,
    ) -> None:
        super().__init__()
        self.label_smoothing = label_smoothing
        self.is_multilabel = is_multilabel
        self.register_buffer("weights", None if weights is None else torch.tensor(weights))

    def forward(
        self,
        logits: torch.Tensor,
        targets: torch.Tensor,
        num_rows: int,
        row_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the part of a step's loss that this batch adds.

        Args:
            logits: (B, C) float.
            targets: (B,) int64 class, or (B, C) float32 of 0 and 1 with several labels.
            num_rows: rows of the whole step, at least B.
            row_weights: (B,) how much each row counts, of mean 1 over the training rows; None: 1.
        """
        _, counted = self.rows(logits, targets, row_weights)
        return counted.sum() / num_rows

    def per_row(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the (B,) loss of each row in nats, with smoothing and without any weights."""
        plain, _ = self.rows(logits, targets)
        return plain

    def rows(
        self, logits: torch.Tensor, targets: torch.Tensor, row_weights: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the (B,) losses of rows twice: plain, and as they count (with class and row weights)."""
        if self.is_multilabel:
            per_class = self._per_class(logits, targets)  # (B, C)
            plain = counted = per_class.mean(dim=1)
            if self.weights is not None:
                counted = (per_class * torch.where(targets > 0.5, self.weights, 1.0)).mean(dim=1)
        else:
            plain = counted = functional.cross_entropy(
                logits.float(), targets, reduction="none", label_smoothing=self.label_smoothing
            )
            if self.weights is not None:
                counted = plain * self.weights[targets]
        return plain, counted if row_weights is None else counted * row_weights

    def _per_class(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        smoothed = targets * (1 - self.label_smoothing) + self.label_smoothing / 2
        return functional.binary_cross_entropy_with_logits(logits.float(), smoothed, reduction="none")


def build_loss(
    config: TrainConfig, targets: npt.NDArray[np.int64] | npt.NDArray[np.float32], num_classes: int
) -> Loss:
    """Return the loss for training rows of the given classes.

    Args:
        config: smoothing and class weights.
        targets: (N,) int64 class of each training row, or (N, C) of 0 and 1 with several labels.
        num_classes: C.
    """
    is_multilabel = targets.ndim == 2
    if config.class_weights == "none":
        return Loss(config.label_smoothing, is_multilabel=is_multilabel)
    if is_multilabel:
        return Loss(config.label_smoothing, pos_weights(targets.astype(np.float32)), is_multilabel=True)
    counts = np.bincount(targets, minlength=num_classes)
    # rows / (classes x rows of the class): the mean over the training rows is 1 where no class is empty.
    weights = len(targets) / (num_classes * np.maximum(counts, 1))
    return Loss(config.label_smoothing, weights.astype(np.float32).tolist())


def pos_weights(targets: npt.NDArray[np.float32]) -> list[float]:
    """Return for each class its rows without it / its rows with it, 1 / 20 to 20; 1 for an empty class.

    Args:
        targets: (N, C) of 0 and 1.
    """
    positive = targets.sum(axis=0, dtype=np.float64)
    ratio = (len(targets) - positive) / np.maximum(positive, 1)
    weights = np.where(positive > 0, np.clip(ratio, 1 / MAX_POS_WEIGHT, MAX_POS_WEIGHT), 1.0)
    return [float(weight) for weight in weights.astype(np.float32)]
