"""What a finished training tells, in memory and as `training.json` in the run folder."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textmill.core.files import write_json

FILE = "training.json"


@dataclass(frozen=True, slots=True)
class TrainResult:
    """How a training ended; the best state is in `run_dir / "model"`."""

    run_dir: Path
    best_step: int
    best_metric: float | None
    """Value of `metric` on the validation rows after `best_step`; None without validation rows."""
    metric: str
    epochs: int
    """Epochs begun, which early stopping makes fewer than asked for."""
    steps: int
    new_steps: int
    """Steps made by this call; fewer than `steps` after a resume."""
    stopped_early: bool
    seconds: float
    """Time of all steps, without evaluations and checkpoints, over all calls."""
    rows_per_s: float
    """Training rows a second of that time."""
    padding_share: float
    """Share of padding in all that the model read, in [0, 1)."""
    max_tokens: int
    """The token budget in use, a number also when the config said "auto" or "probe"."""
    threads: int
    device: str
    precision: str
    attempts: list[dict[str, Any]] = field(default_factory=list)
    """All tries of the run, as `attempts.json` has them; empty without rescue."""
    verdict: dict[str, Any] | None = None
    """What the guard said last; None: it saw no reason to say anything."""

    def as_json(self) -> dict[str, object]:
        """Return plain values, the folder as text."""
        return {**dataclasses.asdict(self), "run_dir": str(self.run_dir)}

    def save(self) -> None:
        """Write `training.json`."""
        write_json(self.run_dir / FILE, self.as_json())


def load_result(run_dir: Path) -> TrainResult | None:
    """Return the result of a finished training, or None if it has not finished."""
    path = run_dir / FILE
    if not path.exists():
        return None
    return TrainResult(**{**json.loads(path.read_text()), "run_dir": run_dir})
