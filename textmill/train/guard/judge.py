"""From what a window says to a verdict's kind.

A training has fallen into the constant answer when three things hold together: its loss is not below that of
the best constant answer for the window's own labels, its logits do not go with the labels, and the encoder
gets next to none of the gradient that it got at first. The first two also hold for a slow start, for
noisy and for random labels; the third does not. After a time of learning, one class for all inputs
stands in for the third, unless the labels are nearly all of that class.

Each limit lies between what was seen of collapsed and of healthy runs; `docs/guard.md` has the table.
What is not covered: words (`sentences.py`), when to speak (`guard.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from textmill.train.guard.constant import entropy
from textmill.train.guard.signals import Floats
from textmill.train.guard.verdict import Kind
from textmill.train.guard.window import View

MAX_LEARNT = 0.03
"""Loss not below the constant answer's. Collapsed windows of 320 rows: -0.7 to 0.01; a healthy run that is
still there is told apart by the two others."""
MIN_ALIGNMENT, ALIGNED, RECENT = -4.0, 3.0, 2.0
"""Standard errors between which the logits do not go with the labels: 1 in 700 above by chance. Collapsed
windows: within 2.8; learning: 3 and more, within 100 steps also at a rate 10 times too low, 10 to 35 later.
Far below are rows with wrong labels, as they come last in an order by clearness. A run that is getting out
shows it first in the second half of a window."""
DEAD_SHARE, MAX_ENCODER_SHARE, MAX_SHARE_AFTER = 0.1, 0.25, 0.3
"""Against the first steps. Collapsed: 0.00 to 0.22; hurt, but getting out: 0.12; not yet learning: 0.34 to
1.2. A converged run lies at 0.05 too, with a loss far below the constant answer's. A run that has learnt
gets there from 1 to 2, and fell to 0.20 at most."""
MAX_RATIO = 0.5
"""Of the encoder's gradient to the head's, whatever it was at first. Collapsed: 0.05 to 0.43. Where class
weights or a class without rows inflate the first steps, one that gets out 40 steps later lies at 0.9."""
MAX_SPREAD, NO_SPREAD = 1.0, 1e-3
"""Nats. Collapsed: 0.02 to 0.5, dropout's noise; converged: 1.5 to 12. A dead head without dropout: 0."""
DIVERGED = -0.5
"""Learnt share of a run that flies apart: its logits are far from 0 and swing."""
ONE_CLASS = 0.98
"""The share of one class among the predictions that counts as one answer for all."""
HAS_LEARNT, HAS_ALIGNED = 0.05, 4.0
"""A window that shows learning: 40 % label noise gets there late or never, and is then told as slow."""
MOSTLY = 0.9
"""Share of the batches from which they count as being of one class."""
SORTED_CHANCE = 1e-6
"""Chance under a random order below which a run of one class is the data's order."""
IMBALANCE = 0.8
"""Share of one class in the best constant answer from which it is told as imbalance."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found in a window."""

    kind: Kind
    is_alarm: bool
    is_sorted: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier windows showed."""

    has_learnt: bool = False
    widest: float = 0.0
    """The largest spread of the logits, nats."""

    def after(self, view: View) -> Past:
        """Return the same with one more window."""
        return Past(self.has_learnt or shows_learning(view), max(self.widest, view.spread))


def judge(view: View, past: Past, *, label_shares: Floats | None, is_multilabel: bool) -> Finding:
    """Return what a window shows.

    Args:
        view: the window.
        past: what earlier ones showed.
        label_shares: (C,) share of each class in the whole data, if known.
        is_multilabel: whether a row may have any number of labels.
    """
    signals = view.signals
    if not is_multilabel and is_sorted(view, label_shares):
        return Finding("data-or-wiring", label_shares is not None, is_sorted=True)
    is_imbalanced = not is_multilabel and float(view.best.max()) >= IMBALANCE
    if is_constant(view, past):
        if past.has_learnt:
            return Finding("collapsed-after-learning", True)
        return Finding("imbalance" if is_imbalanced else "never-left", True)
    if view.learnt >= MAX_LEARNT or view.alignment >= ALIGNED:
        return Finding("healthy", False)
    is_one = signals.top_share >= ONE_CLASS
    return Finding("imbalance" if is_imbalanced and is_one else "slow", False)


def is_constant(view: View, past: Past) -> bool:
    """Return whether a window shows the constant answer."""
    signals = view.signals
    if view.learnt >= MAX_LEARNT:
        return False
    # A run that was hurt but gets some gradient may be getting out: its newest steps show it first, or its
    # logits begin to differ more than they ever did.
    is_moving = view.recent_alignment >= RECENT or view.spread > past.widest > 0.0
    if view.encoder_share > DEAD_SHARE and is_moving:
        return False
    if not MIN_ALIGNMENT < view.alignment < ALIGNED:
        return False
    is_starved = view.encoder_share < (MAX_SHARE_AFTER if past.has_learnt else MAX_ENCODER_SHARE)
    is_starved = is_starved and (past.has_learnt or view.encoder_norm < MAX_RATIO * view.head_norm)
    if is_starved and (view.spread < MAX_SPREAD or view.learnt < DIVERGED):
        return True
    # A head that begins with zeros has no spread either, but has never had one.
    if view.spread < NO_SPREAD < 0.1 * past.widest:
        return True
    # Where one class is nearly all there is, answering it says little.
    return past.has_learnt and signals.top_share >= ONE_CLASS and float(view.best.max()) < IMBALANCE


def shows_learning(view: View) -> bool:
    """Return whether a window shows that the logits go with the labels and pay off."""
    return view.learnt >= HAS_LEARNT and view.alignment >= HAS_ALIGNED


def is_sorted(view: View, label_shares: Floats | None) -> bool:
    """Return whether batches of one class are too many for rows in a random order."""
    signals = view.signals
    if signals.one_label_share < MOSTLY or signals.rows <= signals.num_batches:
        return False
    if label_shares is None:
        return int((signals.labels > 0).sum()) == 1
    one = float(
        (label_shares ** (signals.rows / signals.num_batches)).sum()
    )  # chance of a batch of one class
    choices = signals.num_batches * entropy(
        np.array([MOSTLY, 1.0 - MOSTLY])
    )  # at least the log of their number
    chance = signals.one_label_share * signals.num_batches * np.log(max(one, 1e-30)) + choices
    return bool(chance < np.log(SORTED_CHANCE))
