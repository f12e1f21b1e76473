"""Examples whose label looks wrong, by the numbers that order them anyway.

A row is suspect where a teacher that has not learnt from it gives its label little confidence
(ranking by self-confidence; Northcutt et al. 2021, section 3.2). Once the model has seen it in two epochs or
more, a low and steady probability counts as much: hard-to-learn rows of a data map are often
mislabelled (Swayamdipta et al. 2020, section 5).

Promises: the worst come first, each with a sentence; a class of one row is not suspected for being alone.
What is not covered: proof; a person decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from textmill.order.difficulty import Difficulty, ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENOUGH_EPOCHS = 2
_UNLIKELY = 0.5
"""A label with more confidence than this is not suspected by the one who gives it."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """One example whose label a person should look at."""

    id: str
    label: str
    """The given label; "" where it is not known."""
    score: float
    """How suspect, 0 to 1; only the order of the scores means something."""
    reason: str


def suspects(difficulty: Difficulty, num: int) -> list[Suspect]:
    """Return up to `num` examples whose label looks wrong, the most suspect first.

    Args:
        difficulty: with a teacher's confidence, the model's losses, or both; without either none is suspect.
        num: how many at most.
    """
    doubts = [each for each in (_teacher_doubt(difficulty), _model_doubt(difficulty)) if each is not None]
    if not doubts:
        return []
    score = np.mean(doubts, axis=0)
    is_suspect = _is_doubted(difficulty)
    order = [int(row) for row in np.argsort(-score, kind="stable") if is_suspect[row]][:num]
    return [
        Suspect(
            difficulty.ids[row],
            difficulty.given[row] if difficulty.given else "",
            float(score[row]),
            _reason(difficulty, row),
        )
        for row in order
    ]


def _teacher_doubt(difficulty: Difficulty) -> NDArray[np.float64] | None:
    """Return (N,) the rank of unclearness, 1/2 where nobody has learnt the class; None without a teacher."""
    if difficulty.clearness is None:
        return None
    return np.where(difficulty.clearness > 0, ranks(-difficulty.clearness), 0.5)


def _model_doubt(difficulty: Difficulty) -> NDArray[np.float64] | None:
    """Return (N,) the rank of 1 - probability - variability, low and steady highest; None if too early."""
    is_known = difficulty.seen.epochs >= _ENOUGH_EPOCHS
    if not is_known.any():
        return None
    wrong = 1.0 - difficulty.seen.confidence() - difficulty.seen.variability()
    doubt = np.full(len(difficulty), 0.5)
    doubt[is_known] = ranks(wrong[is_known])
    return doubt


def _is_doubted(difficulty: Difficulty) -> NDArray[np.bool_]:
    by_teacher = np.zeros(len(difficulty), dtype=np.bool_)
    if difficulty.clearness is not None:
        # Nought: no other row has the class, so nobody has learnt it, which is no reason for doubt.
        by_teacher = (difficulty.clearness > 0) & (difficulty.clearness < _UNLIKELY)
        if difficulty.given and difficulty.rivals:
            by_teacher &= np.array([a != b for a, b in zip(difficulty.given, difficulty.rivals, strict=True)])
    has_come = difficulty.seen.epochs >= _ENOUGH_EPOCHS
    by_model = has_come & (np.nan_to_num(difficulty.seen.confidence(), nan=1.0) < _UNLIKELY)
    return by_teacher | by_model


def _reason(difficulty: Difficulty, row: int) -> str:
    label = repr(difficulty.given[row]) if difficulty.given else "its label"
    parts = []
    if difficulty.clearness is not None and difficulty.clearness[row] > 0:
        rival = difficulty.rivals[row] if difficulty.rivals else ""
        prefers = f" and finds {rival!r} likeliest" if rival and rival != difficulty.given[row] else ""
        parts.append(
            f"a teacher that has not learnt from it gives {label} "
            f"{_percent(float(difficulty.clearness[row]))}{prefers}"
        )
    if difficulty.seen.epochs[row] >= _ENOUGH_EPOCHS:
        share, spread = difficulty.seen.confidence()[row], difficulty.seen.variability()[row]
        parts.append(
            f"the model gave {label} {_percent(share)} on average over {int(difficulty.seen.epochs[row])} "
            f"epochs ({'steady' if spread < 0.1 else 'changing'})"
        )
    return "; ".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
