"""How large a learning rate may be: can a few rows still be learnt with it?

A range test (Smith 2017, "Cyclical Learning Rates", section 3.3) run backwards and on two fixed small
batches: from the same first weights, some steps at each learning rate, halved from one to the next. A
learning rate that is too high cannot even learn those rows by heart; the one at which they are learnt
fastest, read between those tried, is the edge, and half of it is used.

Promises: neither the classifier nor any random state is changed; the same seed gives the same answer.
What is not covered: learning rates higher than the one that failed.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from textmill.core.seeds import numpy_generator, stream_seed
from textmill.core.types import Batch, Example
from textmill.data.prepare import Splits
from textmill.encode.tokenizer import Tokenizer
from textmill.model.classifier import Classifier
from textmill.train.config import TrainConfig
from textmill.train.device import Hardware, choose_hardware
from textmill.train.loss import Loss
from textmill.train.optim import build_optimizer, set_lr
from textmill.train.rows import encode_rows, logits_of

_STEPS = 16
"""Of two batches of 16 rows. MiniLM cut to 2 layers, mean loss over 16 steps, three seeds: at 5e-3 more than
0.70, at 2e-3 0.75, 0.57, 0.45; at 1.25e-3 0.43, 0.44, 0.43; at 6e-4 0.54, 0.55, 0.51; at 3e-4 0.66, 0.70,
0.65; at 1e-4 0.67, 0.70, 0.69. Whole trainings fail at 5e-3, often at 2e-3,
at times at 1.25e-3, never at 5e-4."""
_ROWS = 16
_HALVINGS = 7
_LEARNT = 0.6
"""Rows are learnt when the loss of the last quarter of the steps is below this share of that of the first."""
_SAFETY = 2.0


@dataclass(frozen=True, slots=True)
class LrProbe:
    """What a probe found and cost."""

    lr: float | None
    """The learning rate to use; None: the rows were learnt at none."""
    losses: dict[float, float]
    """Learning rate -> mean loss of the steps made at it."""
    steps: int
    rows: int
    tokens: int
    seconds: float


def probe_lr(classifier: Classifier, tokenizer: Tokenizer, splits: Splits, config: TrainConfig) -> LrProbe:
    """Return the learning rate below `config.lr` at which a few rows are learnt well.

    Args:
        classifier: with the weights that a training would begin with; a copy of it is trained.
        tokenizer: the one that belongs to it.
        splits: the rows are drawn from its training rows, classes alike.
        config: optimizer, clipping, smoothing, and the learning rate that failed.
    """
    begin = time.perf_counter()
    hardware = choose_hardware(config)
    is_multilabel = classifier.decision.is_multilabel
    chosen = _few_rows(splits.train, 2 * _ROWS, config.seed)
    rows = encode_rows(chosen, tokenizer, splits.labels, is_multilabel=is_multilabel)
    places = np.arange(len(rows))
    batches = [rows.batch(part) for part in np.array_split(places, 2) if len(part)]
    loss = Loss(config.label_smoothing, is_multilabel=is_multilabel).to(hardware.device)
    means: dict[float, float] = {}
    best: float | None = None
    with hardware.claimed():
        for number in range(1, _HALVINGS + 1):
            lr = config.lr / 2**number
            torch.manual_seed(stream_seed(config.seed, "lr probe"))
            losses = _losses_at(lr, classifier, batches, loss, config, hardware)
            quarter = len(losses) // 4
            has_learnt = float(np.mean(losses[-quarter:])) < _LEARNT * float(np.mean(losses[:quarter]))
            means[lr] = float(np.mean(losses))
            if best is not None and means[lr] >= means[best]:
                break
            if has_learnt:
                best = lr
    num = len(means) * _STEPS
    read = [batches[step % len(batches)] for _ in means for step in range(_STEPS)]
    return LrProbe(
        lr=None if best is None else fastest_lr(means, best) / _SAFETY,
        losses=means,
        steps=num,
        rows=sum(len(batch.lengths) for batch in read),
        tokens=sum(int(batch.lengths.sum()) for batch in read),
        seconds=time.perf_counter() - begin,
    )


def fastest_lr(means: dict[float, float], best: float) -> float:
    """Return where a parabola in log2 through the best learning rate and its neighbours is lowest.

    Args:
        means: learning rate -> mean loss.
        best: the one with the lowest mean loss; the answer is at most half an octave from it.
    """
    if best / 2 not in means or best * 2 not in means:
        return best
    low, middle, high = means[best / 2], means[best], means[best * 2]
    curvature = low - 2 * middle + high
    offset = 0.5 * (low - high) / curvature if curvature > 0 else 0.0
    return float(best * 2.0 ** min(0.5, max(-0.5, offset)))


def _losses_at(
    lr: float,
    classifier: Classifier,
    batches: Sequence[Batch],
    loss: Loss,
    config: TrainConfig,
    hardware: Hardware,
) -> list[float]:
    """Return the loss of each step at one learning rate, from the classifier's weights."""
    twin = copy.deepcopy(classifier).to(hardware.device).train()
    optimizer = build_optimizer(twin, config)
    set_lr(optimizer, lr)
    losses: list[float] = []
    for step in range(_STEPS):
        batch = batches[step % len(batches)]
        assert batch.labels is not None
        optimizer.zero_grad(set_to_none=True)
        with hardware.autocast():
            logits = logits_of(twin, batch, hardware.device)
        part = loss(logits, batch.labels.to(hardware.device), len(batch.lengths))
        part.backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), config.clip_norm)
        optimizer.step()
        losses.append(float(part.detach()))
    # How far a loss shoots out is chance; that it does is what counts.
    return [min(value, 2 * losses[0]) if math.isfinite(value) else 2 * losses[0] for value in losses]


def _few_rows(examples: Sequence[Example], num: int, seed: int) -> list[Example]:
    """Return random rows, one of each label set in turn as long as there are some."""
    order = numpy_generator(seed, "lr probe").permutation(len(examples))[: 100 * num]
    by_labels: dict[tuple[str, ...], list[Example]] = {}
    for index in order.tolist():
        example = examples[index]
        by_labels.setdefault(example.labels, []).append(example)
    chosen: list[Example] = []
    turn = 0
    while len(chosen) < min(num, len(order)):
        chosen += [rows[turn] for rows in by_labels.values() if turn < len(rows)]
        turn += 1
    return chosen[:num]
