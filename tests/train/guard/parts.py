"""Steps of imagined trainings: what `measure` gives of logits that are drawn here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional

from textmill.core.seeds import torch_generator
from textmill.train.guard.config import GuardConfig
from textmill.train.guard.guard import Guard
from textmill.train.guard.verdict import Verdict
from textmill.train.loss import Loss


@dataclass
class Imagined:
    """Makes one step after the other, and tells a guard."""

    guard: Guard
    shares: tuple[float, ...] = (0.5, 0.5)
    batch: int = 16
    seed: int = 0
    loss: Loss = field(default_factory=Loss)
    step: int = 0

    def __post_init__(self) -> None:
        self.rng = torch_generator(self.seed, "imagined")

    def go(
        self,
        steps: int,
        *,
        knows: float = 0.0,
        bias: float = 0.0,
        noise: float = 0.1,
        encoder: float = 1.0,
        head: float = 1.0,
        lr: float = 1e-3,
        label: int | None = None,
    ) -> Verdict | None:
        """Make steps; return the first alarm.

        Args:
            steps: how many.
            knows: nats by which the logit of the right class stands out.
            bias: nats of the last class over the others, for all rows.
            noise: standard deviation of each logit.
            encoder: length of its gradient.
            head: likewise.
            lr: learning rate.
            label: the class of all rows; None draws them by `shares`.
        """
        alarm = None
        for _ in range(steps):
            self.step += 1
            targets = torch.multinomial(torch.tensor(self.shares), self.batch, True, generator=self.rng)
            if label is not None:
                targets = torch.full_like(targets, label)
            logits = noise * torch.randn(self.batch, len(self.shares), generator=self.rng)
            logits[:, -1] += bias
            logits += knows * functional.one_hot(targets, len(self.shares))
            loss = self.loss(logits, targets, self.batch).item()
            values = self.guard.measure(logits, targets).tolist()
            said = self.guard.observe(self.step, loss, values, encoder, head, lr)
            if alarm is None and said is not None and said.is_alarm:
                alarm = said
        return alarm


def new_guard(num_classes: int = 2, **changes: Any) -> Guard:
    return Guard(GuardConfig(), num_classes, **changes)
