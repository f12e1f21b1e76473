"""What a report needs to know of a training: its losses and validation figures, read from `events.jsonl`.

Promises: a last line that was cut by a kill is left out; lines of a kind that is not known are
skipped; a step whose loss is no number is not drawn.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Curve:
    """The course of one training."""

    steps: npt.NDArray[np.float64]  # (S,) numbers of the optimizer steps
    losses: npt.NDArray[np.float64]  # (S,) training loss, nats
    valid_steps: npt.NDArray[np.float64]  # (E,) steps after which the model was evaluated
    valid_losses: npt.NDArray[np.float64]  # (E,) nats
    accuracy: npt.NDArray[np.float64]  # (E,) on the validation rows
    f1_macro: npt.NDArray[np.float64]  # (E,) on the validation rows
    best_step: int | None
    """The step whose state was kept; None if the model was never evaluated."""
    epochs: int
    rows: int
    """Rows read, each as often as it was read."""
    seconds: float
    """Time of all steps."""

    def as_json(self) -> dict[str, Any]:
        """Return a summary as plain values."""
        return {
            "steps": len(self.steps),
            "epochs": self.epochs,
            "rows": self.rows,
            "seconds": self.seconds,
            "evaluations": len(self.valid_steps),
            "best_step": self.best_step,
            "last_loss": float(self.losses[-1]),
        }


def read_curve(events: Path) -> Curve | None:
    """Return the course of a training, or None if no step was written."""
    lines = _read_lines(events)
    steps = [line for line in lines if line.get("event") == "step" and _is_number(line.get("loss"))]
    evaluations = [line for line in lines if line.get("event") == "evaluation"]
    if not steps:
        return None
    best = [int(line["step"]) for line in evaluations if line.get("is_best")]
    return Curve(
        steps=_column(steps, "step"),
        losses=_column(steps, "loss"),
        valid_steps=_column(evaluations, "step"),
        valid_losses=_column(evaluations, "valid_loss"),
        accuracy=_column(evaluations, "accuracy"),
        f1_macro=_column(evaluations, "f1_macro"),
        best_step=best[-1] if best else None,
        epochs=int(steps[-1].get("epoch", 0)),
        rows=int(sum(line.get("rows", 0) for line in steps)),
        seconds=float(sum(line.get("seconds", 0.0) for line in steps)),
    )


def _read_lines(events: Path) -> list[dict[str, Any]]:
    if not events.exists():
        return []
    whole, _, _ = events.read_text(encoding="utf-8").rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def _column(lines: list[dict[str, Any]], key: str) -> npt.NDArray[np.float64]:
    return np.array([line[key] for line in lines], dtype=np.float64)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
