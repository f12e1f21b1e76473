"""Judges runs again from what was kept of their steps, without training: limits can be set anew at no cost.

What is not covered: the training (`runs.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bench.detecting.cases import Case
from textmill.train.guard.config import GuardConfig
from textmill.train.guard.guard import Guard
from textmill.train.guard.signals import alignment
from textmill.train.guard.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """A run beside what the guard said of it."""

    kind: str
    seed: int
    has_failed: bool
    """What the run came to."""
    alarm: Verdict | None
    """The first one."""
    last: Verdict
    steps_to_alarm: int | None
    """From when it could be known: the end of the warm-up, or of learning, whichever is later."""

    @property
    def is_missed(self) -> bool:
        """Whether a failed run got no alarm."""
        return self.has_failed and self.alarm is None

    @property
    def is_false_alarm(self) -> bool:
        """Whether a run that came to something got one."""
        return not self.has_failed and self.alarm is not None


def replay(case: Case, record: dict[str, Any]) -> Judged:
    """Return what the guard says of a kept run.

    Random labels count as not failed whatever the model answers: there the constant answer is the right one.
    """
    guard = Guard(
        GuardConfig(),
        case.classes,
        label_smoothing=case.smoothing,
        class_weights=case.weights,
        is_multilabel=case.is_multilabel,
        label_shares=record["label_shares"],
    )
    alarm = guard.probe(torch.tensor(record["probe"]))
    for number, (loss, encoder, head, lr, *values) in enumerate(record["steps"], start=1):
        said = guard.observe(number, loss, values, encoder, head, lr)
        if said is not None and said.is_alarm and alarm is None:
            alarm = said
    failed = bool(record["failed"]) and case.noise < 1.0
    known = max(round(case.warmup * case.steps), last_learning_step(case, record["steps"]))
    steps = None if alarm is None or not failed else max(alarm.step - known, 0)
    return Judged(case.kind, record["seed"], failed, alarm, guard.verdict(), steps)


def last_learning_step(case: Case, steps: list[list[float]], over: int = 8) -> int:
    """Return the last step at which the logits of some steps still went with the labels; 0 if never.

    Eight steps of 16 rows by chance: less than 1 in 10,000 for 4 standard errors.
    """
    table = np.array(steps)[:, 4:]
    for end in range(len(table), over - 1, -1):
        part = table[end - over : end]
        if np.isfinite(part).all() and alignment(part, case.classes) >= 4.0:
            return end
    return 0
