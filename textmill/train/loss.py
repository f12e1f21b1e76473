"""Cross-entropy whose gradient does not depend on how a step is cut into batches.

Promise: the loss of a step is the mean over all its rows. Each batch adds its sum divided by the
rows of the whole step, so that accumulation, also with a short tail, gives the plain batch's gradient.
Class weights weigh rows: the smoothed share of a target is not weighted by the other classes'
weights, which would pull a perfect model towards rare classes (pytorch/pytorch#104776).
What is not covered: several labels a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from textmill.train.config import TrainConfig


class Loss(nn.Module):
    """Cross-entropy with label smoothing and row weights by class."""

    weights: torch.Tensor | None  # (C,) float32

    def __init__(self, label_smoothing: float = 0.0, weights: Sequence[float] | None = None) -> None:
        super().__init__()
        self.label_smoothing = label_smoothing
        self.register_buffer("weights", None if weights is None else torch.tensor(weights))

    def forward(self, logits: torch.Tensor, labels: torch.Tensor, num_rows: int) -> torch.Tensor:
        """Return the part of a step's loss that this batch adds.

        Args:
            logits: (B, C) float.
            labels: (B,) int64.
            num_rows: rows of the whole step, at least B.
        """
        return self.weigh(self.per_row(logits, labels), labels).sum() / num_rows

    def per_row(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the (B,) loss of each row in nats, with smoothing and without class weights.

        Args:
            logits: (B, C) float.
            labels: (B,) int64.
        """
        return functional.cross_entropy(
            logits.float(), labels, reduction="none", label_smoothing=self.label_smoothing
        )

    def weigh(self, per_row: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return (B,) losses times the weight of each row's class."""
        return per_row if self.weights is None else per_row * self.weights[labels]


def build_loss(config: TrainConfig, class_index: npt.NDArray[np.int64], num_classes: int) -> Loss:
    """Return the loss for training rows of the given classes.

    Args:
        config: smoothing and class weights.
        class_index: (N,) class of each training row.
        num_classes: C.
    """
    if config.class_weights == "none":
        return Loss(config.label_smoothing)
    counts = np.bincount(class_index, minlength=num_classes)
    # rows / (classes x rows of the class): the mean over the training rows is 1 where no class is empty.
    weights = len(class_index) / (num_classes * np.maximum(counts, 1))
    return Loss(config.label_smoothing, weights.astype(np.float32).tolist())
