"""What the guard says about a training: its kind, the numbers behind it, a sentence.

What is not covered: how a verdict is reached (`guard.py`), what is done about it (`train/rescue.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "healthy",
    "slow",
    "never-left",
    "collapsed-after-learning",
    "imbalance",
    "not-a-number",
    "data-or-wiring",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement on a training after one of its steps."""

    kind: Kind
    step: int
    """The step after which it was reached, from 1."""
    numbers: dict[str, float]
    """What it rests on, by name; all finite."""
    sentence: str
    """The same in words."""
    is_alarm: bool
    """Whether going on as before is a waste of time."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {
            "kind": self.kind,
            "step": self.step,
            "numbers": dict(self.numbers),
            "sentence": self.sentence,
            "is_alarm": self.is_alarm,
        }

    @staticmethod
    def from_json(table: dict[str, Any]) -> Verdict:
        """Return what `as_json` wrote."""
        return Verdict(**table)
