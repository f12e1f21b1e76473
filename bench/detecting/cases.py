"""Which trainings the guard is judged on.

A case says how a training is set up; whether it failed is decided by what it can do at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Case:
    """One training."""

    kind: str
    """The row of the table that it counts in."""
    lr: float
    steps: int = 100
    batch: int = 16
    encoder: Literal["packaged", "tiny"] = "packaged"
    """packaged: the first layers of the packaged encoder; tiny: 2 layers of width 32 from scratch."""
    layers: int = 1
    data: Literal["movies", "generated"] = "movies"
    classes: int = 2
    rare: float | None = None
    """Share of the first class; None for classes as they come."""
    noise: float = 0.0
    """Share of the training rows whose label is drawn anew; 1: nothing can be learnt."""
    pooling: Literal["mean", "cls"] = "mean"
    dropout: float = 0.1
    smoothing: float = 0.0
    weights: tuple[float, ...] | None = None
    warmup: float = 0.0
    """Share of the steps in which the learning rate rises."""
    jump: tuple[int, float] | None = None
    """A step, and the learning rate from then on, which stays."""
    is_linear: bool = True
    """Whether the learning rate falls to zero."""
    rows: int = 2000
    """Training rows; fewer rows are seen more often."""
    accumulate: int = 1
    is_multilabel: bool = False
    damage: Literal["none", "no-mask", "unknown-words", "sorted", "weights", "frozen", "detached"] = "none"
    """no-mask: nothing is attended to; unknown-words: every word is the unknown one; sorted: rows in the
    order of their labels; weights: one becomes not a number; frozen: only the head learns; detached: nothing
    reaches a tiny encoder."""


def all_cases() -> list[Case]:
    """Return the cases; every one is run with several seeds."""
    collapsed = [
        Case("high learning rate", 2e-3, layers=2),
        Case("high learning rate", 5e-3, layers=2),
        Case("high learning rate", 5e-3, pooling="cls"),
        Case("high learning rate", 3e-3, data="generated", classes=5),
        Case("high learning rate", 5e-3, data="generated", classes=20),
        Case("high learning rate after a warm-up", 5e-3, warmup=0.3),
        Case("learned, then a jump of the learning rate", 1e-4, steps=140, jump=(60, 1e-2), is_linear=False),
        Case(
            "learned, then a jump of the learning rate",
            1e-4,
            data="generated",
            classes=3,
            steps=140,
            jump=(70, 1e-2),
            is_linear=False,
        ),
        Case("1:20, the majority for all", 5e-3, data="generated", rare=1 / 21),
        Case("a weight that is not a number", 1e-4, damage="weights"),
        Case("empty attention mask", 1e-4, damage="no-mask"),
        Case("all words unknown", 1e-4, damage="unknown-words"),
        Case("rows sorted by label", 5e-4, damage="sorted"),
        Case("several labels, high learning rate", 5e-3, data="generated", classes=4, is_multilabel=True),
    ]
    hard = [
        Case("usual", 1e-4, layers=2),
        Case("usual", 1e-4, data="generated", classes=3),
        Case("slow: low learning rate", 1e-5, steps=160),
        Case("slow: long warm-up", 1e-4, steps=160, warmup=0.6),
        Case("slow: from scratch", 1e-3, steps=250, encoder="tiny", data="generated"),
        Case("edge: high learning rate that still learns", 1e-3, layers=2),
        Case("40 % label noise", 1e-4, steps=160, noise=0.8),
        Case("random labels", 1e-4, steps=160, noise=1.0),
        Case("1:20, learnt late", 5e-5, steps=160, data="generated", rare=1 / 21),
        Case("5 classes", 5e-5, steps=160, data="generated", classes=5),
        Case("20 classes", 1e-4, steps=250, data="generated", classes=20),
        Case("batches of 4 rows", 3e-5, steps=240, batch=4),
        Case("batches of 64 rows", 1e-4, steps=40, batch=64),
        Case("dropout of one half", 1e-4, dropout=0.5),
        Case("label smoothing of one half", 1e-4, smoothing=0.5, data="generated"),
        Case("weights 1:50", 1e-4, smoothing=0.1, weights=(1.0, 50.0), data="generated"),
        Case("only the head learns", 1e-3, damage="frozen"),
        Case("few rows seen often", 1e-4, rows=64),
        Case("several labels", 1e-4, steps=160, data="generated", classes=4, is_multilabel=True),
    ]
    return collapsed + hard
