"""Watches a training, step by step, for almost nothing.

What is not covered: cures (`train/rescue.py`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from textmill.train.guard.config import GuardConfig
from textmill.train.guard.constant import ConstantAnswer
from textmill.train.guard.signals import Floats, Signals, measure
from textmill.train.guard.verdict import Kind, Verdict


class Guard:
    """Collects what `measure` gives and judges it."""

    def __init__(
        self,
        config: GuardConfig,
        num_classes: int,
        *,
        label_smoothing: float = 0.0,
        class_weights: Sequence[float] | None = None,
        is_multilabel: bool = False,
        labels: Sequence[str] | None = None,
    ) -> None:
        """Keep what the loss in use is.

        Args:
            config: the `[guard]` table.
            num_classes: C.
            label_smoothing: share of the target that is spread evenly over all classes.
            class_weights: (C,) weight of a row by its class; None for 1 everywhere.
            is_multilabel: whether a row may have any number of labels.
            labels: the class names, for sentences.
        """
        self._config = config
        self._num_classes = num_classes
        self._is_multilabel = is_multilabel
        self._labels = (
            tuple(labels) if labels is not None else tuple(f"class {i}" for i in range(num_classes))
        )
        self._answer = ConstantAnswer(
            num_classes,
            label_smoothing=label_smoothing,
            class_weights=class_weights,
            is_multilabel=is_multilabel,
        )
        self._window: deque[Floats] = deque()
        self._verdict = Verdict("healthy", 0, {}, "Nothing has been judged yet.", False)
        self._has_learned = False

    def measure(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return (7 + 2 C,) float32 sums of a batch, on its device, to be added up over a step's batches.

        Args:
            logits: (B, C) float.
            targets: (B,) int64, or (B, C) float for several labels a row.
        """
        return measure(logits, targets, is_multilabel=self._is_multilabel)

    def observe(
        self,
        step: int,
        loss: float,
        values: Sequence[float],
        encoder_norm: float,
        head_norm: float,
        lr: float,
    ) -> Verdict | None:
        """Take note of a step; return a verdict when its kind changes, else None.

        Args:
            step: its number, from 1.
            loss: mean over its rows.
            values: the sum of `measure` over its batches.
            encoder_norm: length of the encoder's gradient before clipping.
            head_norm: length of the head's gradient before clipping.
            lr: learning rate.
        """
        values_ = np.asarray(values, float)
        if not (math.isfinite(loss) and math.isfinite(encoder_norm + head_norm)) or values_[2] > 0:
            return self._say("not-a-number", step, {}, "not a number", True)
        self._window.append(np.concatenate([[loss, encoder_norm, head_norm, lr], values_]))
        total = np.sum(self._window, axis=0)
        while (
            len(self._window) > self._config.window_steps
            and total[4] - self._window[0][4] >= self._config.window_rows
        ):
            total = total - self._window.popleft()
        if total[4] < self._config.window_rows or len(self._window) < self._config.window_steps:
            return None
        signals = Signals(total[4:], self._num_classes)
        mean_loss = float(sum(row[0] * row[4] for row in self._window) / signals.rows)
        bounds = self._answer.bounds(signals.labels, signals.rows)
        numbers = {
            "loss": mean_loss,
            "constant_loss": bounds.constant,
            "top_share": signals.top_share,
            "spread": signals.spread,
            "alignment": signals.alignment,
        }
        if mean_loss < 0.9 * bounds.constant:
            self._has_learned = True
        is_stuck = signals.top_share > 0.98 and mean_loss > 0.97 * bounds.constant and signals.spread < 0.05
        kind: Kind = "healthy"
        if is_stuck:
            kind = "collapsed-after-learning" if self._has_learned else "never-left"
        return self._say(kind, step, numbers, f"loss {mean_loss:.4f}", is_stuck)

    def verdict(self) -> Verdict:
        """Return the last judgement."""
        return self._verdict

    def state(self) -> dict[str, Any]:
        """Return JSON values from which `restore` goes on exactly."""
        return {
            "window": [row.tolist() for row in self._window],
            "verdict": self._verdict.as_json(),
            "has_learned": self._has_learned,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._window = deque(np.asarray(row, float) for row in state["window"])
        self._verdict = Verdict.from_json(state["verdict"])
        self._has_learned = state["has_learned"]

    def _say(
        self, kind: Kind, step: int, numbers: dict[str, float], sentence: str, is_alarm: bool
    ) -> Verdict | None:
        is_new = kind != self._verdict.kind
        self._verdict = Verdict(kind, step, numbers, sentence, is_alarm)
        return self._verdict if is_new else None
