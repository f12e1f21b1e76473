"""Watches a training step by step, for next to nothing, and says when it has fallen into the constant answer.

Promises: `measure` is a handful of small operations without waiting for the device; the judgement does not
depend on the batch size (windows count rows) nor on the loss in use (its own constant answer is the
measure); `state` is JSON, and a guard restored from it says the same as one that never stopped.
An alarm needs the constant answer to last for half a window more, so that a bad moment passes.
What is not covered: cures (`train/rescue.py`); a model that learns something, but little; wiring faults
while dropout is on, which `probe` finds before the first step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from textmill.train.guard.config import GuardConfig
from textmill.train.guard.constant import ConstantAnswer
from textmill.train.guard.judge import Finding, Past, is_constant, judge
from textmill.train.guard.sentences import Setting, not_a_number, numbers_of, same_for_all, sentence_of
from textmill.train.guard.signals import NUM_SCALARS, Floats, measure
from textmill.train.guard.verdict import Kind, Verdict
from textmill.train.guard.window import Window

JUDGEMENTS = 10
"""In a window: judging at each of many tiny steps would cost more and say the same."""
SAME = 1e-5
"""Nats. Logits of different texts in evaluation mode: 0.01 and more from random weights, 1e-7 of rounding
where the input does not reach them."""


class Guard:
    """Collects what `measure` gives of each step and judges it."""

    def __init__(
        self,
        config: GuardConfig,
        num_classes: int,
        *,
        label_smoothing: float = 0.0,
        class_weights: Sequence[float] | None = None,
        is_multilabel: bool = False,
        labels: Sequence[str] | None = None,
        label_shares: Sequence[float] | None = None,
    ) -> None:
        """Keep what the loss in use is.

        Args:
            config: the `[guard]` table.
            num_classes: C.
            label_smoothing: share of the target that is spread evenly over all classes.
            class_weights: (C,) weight of a row by its class; None for 1 everywhere.
            is_multilabel: whether a row may have any number of labels; its loss is the mean over classes.
            labels: the class names, for sentences.
            label_shares: (C,) share of each class in the whole data; without it, rows sorted by label are
                told, but are no alarm.
        """
        names = tuple(labels) if labels is not None else tuple(f"class {i}" for i in range(num_classes))
        weights = None if class_weights is None else tuple(class_weights)
        self._config = config
        self._num_classes = num_classes
        self._setting = Setting(names, label_smoothing, weights, is_multilabel)
        answer = ConstantAnswer(
            num_classes,
            label_smoothing=label_smoothing,
            class_weights=weights,
            is_multilabel=is_multilabel,
        )
        self._shares: Floats | None = None if label_shares is None else np.asarray(label_shares, float)
        self._window = Window(config, num_classes, answer)
        self._step = 0
        self._past = Past()
        self._rows_unjudged = 0.0
        self._rows_constant: float | None = None
        """Rows since a window first showed the constant answer; None while it does not."""
        self._said = Verdict("healthy", 0, {}, "Too few rows to judge yet.", False)

    def probe(self, logits: torch.Tensor) -> Verdict | None:
        """Return an alarm if the model gives different texts the same answer before it is trained.

        Args:
            logits: (B, C) of at least two different texts, in evaluation mode, before the first step.
        """
        values = logits.detach().float()
        if not bool(torch.isfinite(values).all()):
            return self._say("not-a-number", 0, {}, not_a_number(["a logit"], 0, 0.0), True)
        if not bool(values.any()):
            return None  # a head that begins with zeros says nothing yet
        values = values if self._setting.is_multilabel else values - values.mean(1, keepdim=True)
        spread = float((values.amax(0) - values.amin(0)).max()) if len(values) > 1 else math.inf
        if spread >= SAME:
            return None
        return self._say("data-or-wiring", 0, {"logit_range": spread}, same_for_all(spread), True)

    def measure(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return (7 + 2 C,) float32 sums of a batch, on its device, to be added up over a step's batches.

        Args:
            logits: (B, C) float.
            targets: (B,) int64, or (B, C) float for several labels a row.
        """
        return measure(logits, targets, is_multilabel=self._setting.is_multilabel)

    def observe(
        self,
        step: int,
        loss: float,
        values: Sequence[float],
        encoder_norm: float,
        head_norm: float,
        lr: float,
    ) -> Verdict | None:
        """Take note of a step; return a verdict when its kind changes or an alarm is due, else None.

        Args:
            step: its number, from 1.
            loss: mean over its rows.
            values: the sum of `measure` over its batches.
            encoder_norm: length of the encoder's gradient; before clipping, or shortened like the head's.
            head_norm: length of the gradient of everything after the encoder, alike.
            lr: learning rate.
        """
        sums = np.asarray(values, float)
        assert sums.shape == (NUM_SCALARS + 2 * self._num_classes,), "values must come from measure"
        named = {"the loss": loss, "the encoder's gradient": encoder_norm, "the head's gradient": head_norm}
        broken = [name for name, value in named.items() if not math.isfinite(value)]
        if broken or not np.isfinite(sums).all() or sums[2] > 0:
            return self._say(
                "not-a-number", step, {"lr": lr}, not_a_number(broken or ["a logit"], step, lr), True
            )
        self._step = step
        self._window.add(loss, encoder_norm, head_norm, lr, sums)
        self._rows_unjudged += float(sums[0])
        if not self._window.is_full or self._rows_unjudged < self._config.window_rows / JUDGEMENTS:
            return None
        finding = self._judge()
        # An alarm stands until learning is seen: a collapsed run may look different for a moment.
        if finding is None or (self._said.is_alarm and not finding.is_alarm and finding.kind != "healthy"):
            return None
        if (finding.kind, finding.is_alarm) == (self._said.kind, self._said.is_alarm):
            return None
        self._said = self._verdict_of(finding)
        return self._said

    def verdict(self) -> Verdict:
        """Return the judgement as it stands, with the numbers of the last steps."""
        said = self._said
        is_of_probe = said.step == 0 and said.is_alarm
        if not self._window.is_full or said.kind == "not-a-number" or is_of_probe:
            return said
        return self._verdict_of(Finding(said.kind, said.is_alarm, is_sorted=said.kind == "data-or-wiring"))

    def state(self) -> dict[str, Any]:
        """Return JSON values from which `restore` goes on exactly."""
        return {
            "step": self._step,
            "window": self._window.state(),
            "past": [self._past.has_learnt, self._past.widest],
            "rows_unjudged": self._rows_unjudged,
            "rows_constant": self._rows_constant,
            "said": self._said.as_json(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._step = state["step"]
        self._window.restore(state["window"])
        self._past = Past(*state["past"])
        self._rows_unjudged = state["rows_unjudged"]
        self._rows_constant = state["rows_constant"]
        self._said = Verdict.from_json(state["said"])

    def _judge(self) -> Finding | None:
        """Judge the window; None while the constant answer is seen, but not for long enough."""
        rows, self._rows_unjudged = self._rows_unjudged, 0.0
        view = self._window.view(self._step)
        if is_constant(view, self._past):
            self._rows_constant = 0.0 if self._rows_constant is None else self._rows_constant + rows
        else:
            self._rows_constant = None
        finding = judge(
            view,
            self._past,
            label_shares=self._shares,
            is_multilabel=self._setting.is_multilabel,
        )
        self._past = self._past.after(view)
        is_early = self._rows_constant is not None and self._rows_constant < self._config.window_rows / 2
        if is_early and finding.is_alarm and not finding.is_sorted:
            return Finding("slow", False) if self._said.step == 0 else None
        return finding

    def _verdict_of(self, finding: Finding) -> Verdict:
        view = self._window.view(self._step)
        return Verdict(
            finding.kind,
            self._step,
            numbers_of(view, self._window.slope()),
            sentence_of(finding, view, self._setting),
            finding.is_alarm,
        )

    def _say(
        self, kind: Kind, step: int, numbers: dict[str, float], sentence: str, is_alarm: bool
    ) -> Verdict:
        self._said = Verdict(kind, step, numbers, sentence, is_alarm)
        return self._said
