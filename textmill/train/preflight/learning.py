"""Whether the model can learn sixteen rows by heart, and at which learning rate.

A model that cannot has a fault that more data will not mend: a learning rate that throws it about, weights
that do not move, labels or masks that do not belong to the texts. The test is Karpathy's ("A Recipe for
Training Neural Networks", 2019: overfit one batch), with the rate as the thing varied.

Promises: bounded by steps and seconds; without dropout, warm-up and weight decay's help, so that a run of
few steps tells; the model is left as it was.
What is not covered: whether it generalises; what needs more than 60 steps is called slow, not broken.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from textmill.core.types import Batch
from textmill.data.findings.finding import Finding
from textmill.model.classifier import Classifier
from textmill.train.config import TrainConfig
from textmill.train.optim import build_optimizer
from textmill.train.preflight.wiring import plain_loss
from textmill.train.rows import logits_of

_LEARNT, _FALLS = 0.3, 0.9  # of the first loss, at the end
_FACTORS = (0.1, 0.01, 0.001, 10.0, 100.0)
_FEW_STEPS = 5
_TAIL = 3  # steps whose mean is the end


@dataclass(frozen=True, slots=True)
class Attempt:
    """One go at the batch."""

    lr: float
    first: float
    """Loss before the first step."""
    last: float
    """Mean loss of the last steps; infinite where it was not a number."""
    steps: int
    seconds: float
    was_cut: bool
    """Whether the seconds ended it before its steps."""

    @property
    def is_learnt(self) -> bool:
        """Whether the batch is known by heart, or nearly."""
        return self.last <= _LEARNT * self.first

    @property
    def falls(self) -> bool:
        """Whether the loss at least falls."""
        return self.last <= _FALLS * self.first


@dataclass(frozen=True, slots=True)
class Learning:
    """The go at the configured rate, and at others where it failed."""

    configured: Attempt
    others: tuple[Attempt, ...] = ()


def overfit(
    model: Classifier, batch: Batch, config: TrainConfig, device: torch.device, *, steps: int, seconds: float
) -> Learning:
    """Learn one batch at the configured rate; where that fails, at lower and higher ones.

    Args:
        model: on `device`; its weights are put back.
        batch: rows of all classes.
        config: optimizer, rate and clipping.
        device: where to compute.
        steps: for each rate at most.
        seconds: for all rates together at most; the configured one gets half of them.
    """
    state = {name: weight.detach().clone() for name, weight in model.state_dict().items()}
    configured = _attempt(model, batch, config, device, steps, seconds / 2)
    model.load_state_dict(state)
    others: list[Attempt] = []
    left = seconds - configured.seconds
    for number, factor in enumerate(_FACTORS if not configured.falls else ()):
        lr = config.lr * factor
        if left <= 0 or not 1e-7 <= lr < 1:
            continue
        share = left / (len(_FACTORS) - number)
        others.append(_attempt(model, batch, config.model_copy(update={"lr": lr}), device, steps, share))
        model.load_state_dict(state)
        left -= others[-1].seconds
        if others[-1].is_learnt:
            break
    model.zero_grad(set_to_none=True)
    return Learning(configured, tuple(others))


def find_in_learning(learning: Learning, num_rows: int) -> Iterator[Finding]:
    """Yield that the batch is not learnt, and the rate at which it is."""
    tried = learning.configured
    if tried.falls:
        return
    if tried.was_cut and tried.steps < _FEW_STEPS and math.isfinite(tried.last):
        what = f"{tried.steps} step{'s' * (tried.steps != 1)} in {tried.seconds:.0f} s"
        message = f"{what}: too few to tell whether {num_rows} rows are learnt"
        yield Finding("slow_machine", "note", message, "Check again on a free machine or a GPU.")
        return
    end = "a loss that is no number" if math.isinf(tried.last) else f"loss {tried.last:.3f}"
    story = (
        f"{num_rows} rows are not learnt at train.lr = {tried.lr:g}: from loss {tried.first:.3f} to {end} in "
        f"{tried.steps} steps"
    )
    best = min(learning.others, key=lambda attempt: attempt.last, default=None)
    if best is None or not best.falls:
        others = ", ".join(f"{attempt.lr:g}" for attempt in learning.others)
        message = f"{story}, nor at {others or 'any other rate (none was tried in time)'}"
        fix = (
            "Something is miswired: see the other findings for mask, tokenizer, frozen weights and labels; "
            "if there are none, read the rows: texts and labels may have nothing to do with each other."
        )
        yield Finding("cannot_learn", "error", message, fix)
    elif best.lr < tried.lr:
        message = f"{story}; at {best.lr:g} they are (loss {best.last:.3f})"
        yield Finding("lr_too_large", "error", message, f"Set train.lr = {best.lr:g}.")
    else:
        message = f"{story}; at {best.lr:g} they are (loss {best.last:.3f})"
        fix = f"Raise train.lr towards {best.lr:g}, or plan for many more steps."
        yield Finding("lr_too_small", "warning", message, fix)


def _attempt(
    model: Classifier, batch: Batch, config: TrainConfig, device: torch.device, steps: int, seconds: float
) -> Attempt:
    assert batch.labels is not None
    targets = batch.labels.to(device)
    begin = time.monotonic()
    optimizer = build_optimizer(model, config)
    losses: list[float] = []
    for _ in range(steps + 1):
        optimizer.zero_grad(set_to_none=True)
        loss = plain_loss(logits_of(model, batch, device), targets)
        losses.append(float(loss.detach()))
        is_done = losses[-1] <= _LEARNT / 2 * losses[0] or not math.isfinite(losses[-1])
        if is_done or not loss.requires_grad or time.monotonic() - begin > seconds:
            break
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
    tail = losses[-_TAIL:] if len(losses) > _TAIL and losses[-1] > _LEARNT / 2 * losses[0] else losses[-1:]
    last = sum(tail) / len(tail)
    num = len(losses) - 1
    spent = time.monotonic() - begin
    return Attempt(
        config.lr, losses[0], last if math.isfinite(last) else math.inf, num, spent,
        was_cut=num < steps and spent > seconds,
    )  # fmt: skip
