"""How good a state is on the validation rows.

Promises: the loss is the mean over rows of the plain cross-entropy, whatever the batches; no random
state is touched, so that evaluating more often does not change a training.
What is not covered: intervals, slices and reports (`evaluate/`).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.metrics import f1_score
from torch.nn import functional

from textmill.encode.budget import batches_by_length
from textmill.model.classifier import Classifier
from textmill.train.config import Metric
from textmill.train.device import Hardware
from textmill.train.rows import EncodedRows, logits_of


@dataclass(frozen=True, slots=True)
class Validation:
    """Figures of one state."""

    loss: float
    accuracy: float
    f1_macro: float
    """Mean over the classes that occur among the rows or the answers."""

    def value(self, metric: Metric) -> float:
        """Return the figure that decides."""
        return {"loss": self.loss, "accuracy": self.accuracy, "f1_macro": self.f1_macro}[metric]


def validate(
    classifier: Classifier, rows: EncodedRows, hardware: Hardware, max_tokens: int, max_rows: int
) -> Validation:
    """Return the figures of a classifier on rows; it is in training mode again afterwards."""
    truth = rows.class_index.numpy()
    losses = np.zeros(len(rows))
    predicted = np.zeros(len(rows), dtype=np.int64)
    # On a CPU the model will be served in fp32, so it is judged in fp32 there.
    autocast = hardware.autocast() if hardware.device.type == "cuda" else contextlib.nullcontext()
    classifier.eval()
    with torch.inference_mode():
        for positions in batches_by_length(rows.lengths, max_tokens, max_rows):
            with autocast:
                logits = logits_of(classifier, rows.batch(positions), hardware.device).cpu()  # (B, C)
            labels = rows.class_index[torch.from_numpy(positions)]
            losses[positions] = functional.cross_entropy(logits, labels, reduction="none").numpy()
            predicted[positions] = logits.argmax(dim=1).numpy()
    classifier.train()
    return Validation(
        loss=float(losses.mean()),
        accuracy=float((predicted == truth).mean()),
        f1_macro=float(f1_score(truth, predicted, average="macro", zero_division=0.0)),
    )
