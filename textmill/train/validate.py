"""How good a state is on the validation rows.

Promises: the loss is the mean over examples of the plain (binary) cross-entropy, whatever the batches; an
example in several windows is judged by their pooled scores, as it will be when it is asked for; no random
state is touched, so that evaluating more often does not change a training.
Of a multi-label model the thresholds are chosen here, and its figures are those with these thresholds:
they are a little too good, for every state alike. `evaluate/` measures on rows that nothing was chosen by.
What is not covered: intervals, slices and reports (`evaluate/`).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from textmill.core.decision import SINGLE, Decision
from textmill.core.types import Scores
from textmill.encode.budget import batches_by_length
from textmill.encode.long_text import pool_scores
from textmill.model.classifier import Classifier
from textmill.model.thresholds import choose_thresholds
from textmill.train.config import Metric
from textmill.train.device import Hardware
from textmill.train.loss import Loss
from textmill.train.rows import EncodedRows, logits_of

_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class Validation:
    """Figures of one state."""

    loss: float
    accuracy: float
    """Share of rows answered right; of a multi-label model with exactly the right set of classes."""
    f1_macro: float
    """Mean over the classes that occur among the rows or the answers."""
    decision: Decision = SINGLE
    """How scores become classes; of a multi-label model with the thresholds chosen on these rows."""

    def value(self, metric: Metric) -> float:
        """Return the figure that decides."""
        return {"loss": self.loss, "accuracy": self.accuracy, "f1_macro": self.f1_macro}[metric]


def validate(
    classifier: Classifier, rows: EncodedRows, hardware: Hardware, max_tokens: int, max_rows: int
) -> Validation:
    """Return the figures of a classifier on rows; it is in training mode again afterwards."""
    logits = _all_logits(classifier, rows, hardware, max_tokens, max_rows)
    decision = classifier.decision
    scores = decision.probabilities(logits)  # (R, C)
    firsts = np.flatnonzero(np.diff(rows.owner, prepend=-1))  # the first row of each of N examples
    targets = rows.targets[torch.from_numpy(firsts)]
    if len(firsts) < len(rows):
        pool = rows.collator.tokenizer.settings.window_pool
        scores = pool_scores(scores, rows.owner, pool, decision.is_multilabel)
        losses = _losses_of(scores, targets)
    else:
        plain = Loss(is_multilabel=decision.is_multilabel)
        losses = plain.per_row(torch.from_numpy(logits), targets).numpy()
    truth = _as_sets(targets, scores.shape[1])
    if decision.is_multilabel:
        decision = Decision(is_multilabel=True, thresholds=choose_thresholds(truth, scores))
    chosen = decision.chosen(scores)
    return Validation(
        loss=float(losses.astype(np.float64).mean()),
        accuracy=float((chosen == truth).all(axis=1).mean()),
        f1_macro=f1_macro(truth, chosen),
        decision=decision,
    )


def f1_macro(truth: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_]) -> float:
    """Return the mean F1 of the classes that occur in (N, C) truths or answers; 0 if none does."""
    below = truth.sum(axis=0) + chosen.sum(axis=0)
    occurs = below > 0
    if not occurs.any():
        return 0.0
    return float((2 * (truth & chosen).sum(axis=0)[occurs] / below[occurs]).mean())


def _all_logits(
    classifier: Classifier, rows: EncodedRows, hardware: Hardware, max_tokens: int, max_rows: int
) -> Scores:
    """Return the (R, C) float32 logits of all rows."""
    logits = np.empty((len(rows), len(classifier.labels)), dtype=np.float32)
    # On a CPU the model will be served in fp32, so it is judged in fp32 there.
    autocast = hardware.autocast() if hardware.device.type == "cuda" else contextlib.nullcontext()
    classifier.eval()
    with torch.inference_mode():
        for positions in batches_by_length(rows.lengths, max_tokens, max_rows):
            with autocast:
                found = logits_of(classifier, rows.batch(positions), hardware.device)  # (B, C)
            logits[positions] = found.cpu().numpy()
    classifier.train()
    return logits


def _losses_of(scores: Scores, targets: torch.Tensor) -> npt.NDArray[np.float64]:
    """Return the (N,) cross-entropy of probabilities, in nats; a score of 0 counts as the smallest float."""
    truth = targets.numpy()
    if truth.ndim == 1:
        right = scores[np.arange(len(truth)), truth][:, None].astype(np.float64)
    else:
        right = np.where(truth > 0.5, scores, 1 - scores).astype(np.float64)
    losses: npt.NDArray[np.float64] = -np.log(np.maximum(right, _TINY)).mean(axis=1)
    return losses


def _as_sets(targets: torch.Tensor, num_classes: int) -> npt.NDArray[np.bool_]:
    """Return (N, C), whether a class applies."""
    if targets.ndim == 2:
        return targets.numpy() > 0.5
    truth = np.zeros((len(targets), num_classes), dtype=np.bool_)
    truth[np.arange(len(targets)), targets.numpy()] = True
    return truth
