"""Begin again with a far lower learning rate, reached slowly."""

from __future__ import annotations

from textmill.train.cures.cure import Situation, Treatment

_DIVISOR = 4.0
_MOST = 3
"""A factor of 64 in all: from the commonest mistake, 1e-3, to what large encoders need, 1.6e-5."""
_GENTLE = 1e-7
"""Below this a learning rate is not the trouble."""


def lower_lr(situation: Situation) -> Treatment | None:
    """Return the treatment, at most twice in a run."""
    lr = situation.settings.train.lr / _DIVISOR
    if situation.tried.count("lower-lr") >= _MOST or lr < _GENTLE:
        return None
    return Treatment(
        f"begin again with a quarter of the learning rate, {lr:.2g}, which is reached slowly",
        {"train.lr": lr, "train.warmup_share": max(0.1, situation.settings.train.warmup_share)},
    )
