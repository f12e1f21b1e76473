"""Which trainings the guard is judged on.

A case says how a training is set up; whether it failed is decided by what it can do at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


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
    is_multilabel: bool = False
    damage: Literal["none", "no-mask", "unknown-words", "sorted", "weights", "frozen"] = "none"
    """no-mask: nothing is attended to; unknown-words: every word is the unknown one; sorted: rows in the
    order of their labels; weights: one becomes not a number; frozen: only the head
    learns."""


def _tiny(kind: str, lr: float, steps: int, **changes: Any) -> Case:
    return Case(kind, lr, steps, encoder="tiny", data="generated", **changes)


def collapsing() -> list[Case]:
    """Return the cases that are meant to fail."""
    jump = "learned, then a jump of the learning rate"
    return [
        Case("high learning rate", 5e-3, layers=2),
        Case("high learning rate", 5e-3, layers=2, pooling="cls"),
        _tiny("high learning rate", 3e-2, 120),
        _tiny("high learning rate, half dropped out", 3e-2, 120, dropout=0.5),
        _tiny("high learning rate, 5 classes", 3e-2, 120, classes=5),
        _tiny("high learning rate, 20 classes", 3e-2, 120, classes=20),
        _tiny("high learning rate, batches of 64", 3e-2, 60, batch=64),
        _tiny("high learning rate, several labels", 3e-2, 120, classes=4, is_multilabel=True),
        Case("high learning rate after a warm-up", 2e-2, warmup=0.3),
        Case(jump, 1e-4, steps=140, jump=(60, 1e-2), is_linear=False),
        _tiny(jump, 1e-3, 160, jump=(60, 0.1), is_linear=False),
        _tiny(jump, 1e-3, 160, classes=3, jump=(70, 0.1), is_linear=False),
        _tiny("1:20, the majority for all", 4e-2, 150, rare=1 / 21),
        _tiny("weights 1:50, the rare class for all", 3e-2, 120, smoothing=0.1, weights=(1.0, 50.0)),
        _tiny("a weight that is not a number", 1e-3, 80, damage="weights"),
        _tiny("empty inputs", 1e-3, 80, damage="no-mask"),
        _tiny("all words unknown", 1e-3, 80, damage="unknown-words"),
        _tiny("rows sorted by label", 3e-3, 120, damage="sorted"),
    ]


def hard() -> list[Case]:
    """Return the cases that are meant to come to something, if not at once."""
    return [
        Case("usual", 1e-4, layers=2),
        _tiny("usual", 1e-3, 150),
        Case("slow: low learning rate", 2e-5, steps=200),
        Case("slow: long warm-up", 1e-4, steps=160, warmup=0.6),
        _tiny("slow: low learning rate, from scratch", 3e-4, 240),
        _tiny("slow: long warm-up, from scratch", 2e-3, 240, warmup=0.6),
        Case("edge: high learning rate that still learns", 1e-3, layers=2),
        _tiny("edge: high learning rate that still learns", 1e-2, 150),
        Case("40 % label noise", 1e-4, steps=200, noise=0.8),
        _tiny("40 % label noise", 2e-3, 300, noise=0.8),
        Case("random labels", 1e-4, steps=120, noise=1.0),
        _tiny("random labels", 2e-3, 250, noise=1.0),
        _tiny("1:20, learnt late", 2e-3, 250, rare=1 / 21),
        Case("3 classes", 1e-4, steps=60, data="generated", classes=3),
        _tiny("5 classes", 2e-3, 220, classes=5),
        _tiny("20 classes", 3e-3, 350, classes=20),
        _tiny("batches of 4 rows", 2e-3, 350, batch=4),
        _tiny("batches of 64 rows", 3e-3, 80, batch=64),
        _tiny("dropout of one half", 2e-3, 250, dropout=0.5),
        _tiny("label smoothing of one half", 2e-3, 200, smoothing=0.5),
        _tiny("weights 1:50", 2e-3, 200, smoothing=0.1, weights=(1.0, 50.0)),
        _tiny("only the head learns", 1e-2, 200, damage="frozen"),
        _tiny("few rows seen often", 2e-3, 200, rows=64),
        _tiny("several labels", 3e-3, 250, classes=4, is_multilabel=True),
    ]


def quick() -> list[Case]:
    """Return a dozen that need no download and a minute together."""
    names = {
        "high learning rate",
        "high learning rate, several labels",
        "1:20, the majority for all",
        "a weight that is not a number",
        "all words unknown",
        "rows sorted by label",
        "usual",
        "slow: low learning rate, from scratch",
        "1:20, learnt late",
        "random labels",
        "5 classes",
        "label smoothing of one half",
    }
    return [case for case in collapsing() + hard() if case.encoder == "tiny" and case.kind in names]
