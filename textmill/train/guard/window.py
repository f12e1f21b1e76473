"""The steps that a judgement looks back on, and what they say together.

What is not covered: the judgement (`judge.py`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from textmill.train.guard.config import GuardConfig
from textmill.train.guard.constant import Bounds, ConstantAnswer
from textmill.train.guard.signals import Floats, Signals, alignment, spreads

_LOSS, _ENCODER, _HEAD, _LR, NUM_OWN = range(5)
_FIRST_STEPS, _FIRST_ROWS = 3, 48
"""The encoder's share of the gradient before it can have been harmed: the largest of the first steps. One
step is too noisy, and with a high learning rate the harm is done within ten."""


@dataclass(frozen=True, slots=True)
class View:
    """A whole window, or the first rows of a training."""

    step: int
    signals: Signals
    """Sums over the window."""
    bounds: Bounds
    """Of the window's own labels."""
    best: Floats
    """(C,) the best constant answer for them."""
    loss: float
    """Mean over the rows."""
    alignment: float
    """How far the logits go with the labels, in standard errors."""
    recent_alignment: float
    """The same over the second half of the steps."""
    spread: float
    """Standard deviation of a logit over the inputs of a batch, nats; the median over the steps."""
    encoder_norm: float
    """Median over the steps."""
    head_norm: float
    """Median over the steps."""
    encoder_share: float
    """Encoder norm / head norm, the median, against the first steps; 1 where the encoder is frozen."""
    lr: float
    """Of the last step."""

    @property
    def learnt(self) -> float:
        """Share of the way from the constant answer's loss to the floor; negative above the constant's."""
        return (self.bounds.constant - self.loss) / self.bounds.room if self.bounds.room > 1e-9 else 0.0


class Window:
    """The last steps: enough rows and enough steps, and not more."""

    def __init__(self, config: GuardConfig, num_classes: int, answer: ConstantAnswer) -> None:
        """Begin empty.

        Args:
            config: how many rows and steps are enough.
            num_classes: C.
            answer: the bounds of the loss in use.
        """
        self._config = config
        self._num_classes = num_classes
        self._answer = answer
        self._steps: deque[Floats] = deque()
        self._rows = 0.0
        self._first_steps = 0
        self._first_rows = 0.0
        self._first_share = 0.0

    def add(self, loss: float, encoder_norm: float, head_norm: float, lr: float, values: Floats) -> None:
        """Take in a step, and let go of those no longer needed."""
        self._steps.append(np.concatenate([[loss, encoder_norm, head_norm, lr], values]))
        self._rows += float(values[0])
        while (
            len(self._steps) > self._config.window_steps
            and self._rows - self._steps[0][NUM_OWN] >= self._config.window_rows
        ):
            self._rows -= float(self._steps.popleft()[NUM_OWN])
        is_first = self._first_steps < _FIRST_STEPS or self._first_rows < _FIRST_ROWS
        if is_first and encoder_norm > 0.0 and head_norm > 0.0:
            self._first_steps += 1
            self._first_rows += float(values[0])
            self._first_share = max(self._first_share, encoder_norm / head_norm)

    @property
    def is_full(self) -> bool:
        """Whether there are enough rows and steps to judge."""
        return self._rows >= self._config.window_rows and len(self._steps) >= self._config.window_steps

    def slope(self) -> float:
        """Return the change of the loss a step: the median of the slopes between all pairs of steps.

        Of Theil (1950) and Sen (1968): one wild step does not move it.
        """
        losses = np.array([step[_LOSS] for step in self._steps])
        if len(losses) < 2:
            return 0.0
        first, second = np.triu_indices(len(losses), 1)
        return float(np.median((losses[second] - losses[first]) / (second - first)))

    def view(self, step: int) -> View:
        """Return what the window says after `step`."""
        table = np.stack(self._steps)
        signals = Signals(table[:, NUM_OWN:].sum(0), self._num_classes)
        share = 1.0
        if self._first_share > 0.0:
            both = table[:, _ENCODER] / np.maximum(table[:, _HEAD], 1e-30)
            share = float(np.median(both)) / self._first_share
        return View(
            step=step,
            signals=signals,
            bounds=self._answer.bounds(signals.labels, signals.rows),
            best=self._answer.best(signals.labels, signals.rows),
            loss=float((table[:, _LOSS] * table[:, NUM_OWN]).sum() / signals.rows),
            alignment=alignment(table[:, NUM_OWN:], self._num_classes),
            recent_alignment=alignment(table[len(table) // 2 :, NUM_OWN:], self._num_classes),
            spread=float(np.median(spreads(table[:, NUM_OWN:], self._num_classes))),
            encoder_norm=float(np.median(table[:, _ENCODER])),
            head_norm=float(np.median(table[:, _HEAD])),
            encoder_share=share,
            lr=float(table[-1, _LR]),
        )

    def state(self) -> dict[str, Any]:
        """Return JSON values from which `restore` goes on exactly."""
        return {
            "steps": [step.tolist() for step in self._steps],
            "rows": self._rows,
            "first": [self._first_steps, self._first_rows, self._first_share],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._steps = deque(np.asarray(step, float) for step in state["steps"])
        self._rows = float(state["rows"])
        self._first_steps, self._first_rows, self._first_share = state["first"]
