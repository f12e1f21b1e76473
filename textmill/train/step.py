"""One optimizer step: forward and backward over its batches, one look at the numbers, one move.

Promises: the device is waited for once a step; the guard and the check for finite numbers see the
step before the weights move.
What is not covered: what surrounds a step (`loop.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from textmill.core.types import Batch
from textmill.encode.tokenizer import Tokenizer
from textmill.model.classifier import Classifier
from textmill.train import best as best_states
from textmill.train.checkpoint import Counters
from textmill.train.config import TrainConfig
from textmill.train.device import Hardware
from textmill.train.feed import Feed
from textmill.train.guard.finite import check_finite
from textmill.train.guard.guard import Guard
from textmill.train.guard.verdict import Verdict
from textmill.train.hooks import StepDone
from textmill.train.loss import Loss
from textmill.train.optim import clip_gradient, lr_share, set_lr
from textmill.train.rows import EncodedRows, logits_of


@dataclass(frozen=True, slots=True)
class Parts:
    """What one run trains with; of it only the feed and the guard change."""

    classifier: Classifier
    tokenizer: Tokenizer
    optimizer: torch.optim.Optimizer
    loss: Loss
    feed: Feed
    valid: EncodedRows
    config: TrainConfig
    hardware: Hardware
    run_dir: Path
    identity: dict[str, Any]
    guard: Guard | None
    """Watches the steps; None: nobody does."""
    num_steps: int
    """Steps of all epochs together, which the schedule spans."""
    way_out: str = ""
    """What an alarm of the guard advises."""


def look_first(parts: Parts, batch: Batch) -> Verdict | None:
    """Return the guard's verdict on the model before its first step, where it is bad."""
    if parts.guard is None or len(batch.lengths) < 2:
        return None
    parts.classifier.eval()
    with torch.inference_mode(), parts.hardware.autocast():
        logits = logits_of(parts.classifier, batch, parts.hardware.device)
    parts.classifier.train()
    return parts.guard.probe(logits)


def make_step(
    parts: Parts, step: Sequence[Batch], counters: Counters, drawn_s: float
) -> tuple[StepDone, Verdict | None]:
    """Make forward, backward and one move of the optimizer over the batches of a step.

    Args:
        parts: what the run trains with.
        step: its batches.
        counters: where the run stands before the step.
        drawn_s: seconds that drawing the batches took.

    Returns:
        What the step was, and the guard's verdict where its kind changes.

    Raises:
        TrainingGaveUp: a loss or gradient that is not a finite number; the weights are as before the step.
    """
    begin = time.perf_counter()
    device = parts.hardware.device
    lr = parts.config.lr * lr_share(min(counters.step, parts.num_steps - 1), parts.num_steps, parts.config)
    set_lr(parts.optimizer, lr)
    parts.optimizer.zero_grad(set_to_none=True)
    num_rows = sum(len(batch.lengths) for batch in step)
    total = torch.zeros((), device=device)
    row_losses: list[torch.Tensor] = []
    signals = torch.zeros(0, device=device)
    for batch in step:
        assert batch.labels is not None
        with parts.hardware.autocast():
            logits = logits_of(parts.classifier, batch, device)  # (B, C)
        labels = batch.labels.to(device, non_blocking=True)
        weights = None if batch.weights is None else batch.weights.to(device, non_blocking=True)
        per_row, counted = parts.loss.rows(logits, labels, weights)  # (B,), (B,)
        part = counted.sum() / num_rows
        part.backward()  # type: ignore[no-untyped-call]
        total += part.detach()
        row_losses.append(per_row.detach())
        if parts.guard is not None:
            measured = parts.guard.measure(logits, labels)
            signals = signals + measured if len(signals) else measured
    encoder_norm, head_norm = clip_gradient(parts.classifier, parts.config.clip_norm)
    # The only wait for the device in a step.
    read = torch.cat([torch.stack([total, encoder_norm, head_norm]), signals, *row_losses]).tolist()
    loss, norms, values, losses = read[0], read[1:3], read[3 : 3 + len(signals)], read[3 + len(signals) :]
    done = StepDone(
        step=counters.step + 1,
        epoch=counters.epoch + 1,
        loss=loss,
        lr=lr,
        grad_norm=math.hypot(*norms),
        encoder_norm=norms[0],
        head_norm=norms[1],
        rows=num_rows,
        tokens=sum(int(batch.lengths.sum()) for batch in step),
        cells=sum(batch.input_ids.numel() for batch in step),
        seconds=drawn_s + time.perf_counter() - begin,
    )
    verdict = None
    if parts.guard is not None:
        verdict = parts.guard.observe(done.step, loss, values, norms[0], norms[1], lr)
    kept = parts.run_dir / best_states.FOLDER if counters.best.step else None
    check_finite(loss, done.grad_norm, done.step, lr, kept)
    parts.optimizer.step()
    ids = [row_id for batch in step for row_id in batch.ids]
    parts.feed.observe(ids, np.array(losses, dtype=np.float32))
    return replace(done, seconds=drawn_s + time.perf_counter() - begin), verdict
