"""What must not go on: a loss or a gradient that is not a number.

The check runs before the optimizer moves the weights, so that they are never poisoned.
What is not covered: a loss that is stuck at the constant answer (`guard.py`).
"""

from __future__ import annotations

import math
from pathlib import Path

from textmill.core.errors import TrainingGaveUp


def check_finite(loss: float, grad_norm: float, step: int, lr: float, best: Path | None) -> None:
    """Go on only with finite numbers.

    Args:
        loss: the step's mean loss.
        grad_norm: length of the gradient before clipping.
        step: number of the step, from 1.
        lr: learning rate of the step.
        best: folder of the best state so far, if there is one.

    Raises:
        TrainingGaveUp: one of the numbers is infinite or not a number.
    """
    if math.isfinite(loss) and math.isfinite(grad_norm):
        return
    kept = f"The best state so far is in {best}." if best else "No state had been evaluated yet."
    raise TrainingGaveUp(
        "Loss and gradient must be finite numbers",
        got=f"loss {loss:.4g} and gradient norm {grad_norm:.4g} at step {step} with learning rate {lr:.3g}",
        fix=f"{kept} Lower train.lr to a third, raise train.warmup_share, or set train.precision = "
        '"fp32"; if it happens at step 1, a weight of the backbone is not a number.',
    )
