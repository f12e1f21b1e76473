"""Begin again with a far lower learning rate, reached slowly.

How much lower is measured the first time (`train/lr_probe.py`), not guessed: what divides a learning rate
that fails from one that learns differs by model and data. Where the measurement finds none, and when
the lowered one fails too, it is a quarter.
"""

from __future__ import annotations

from textmill.train.cures.cure import Situation, Treatment

_DIVISOR = 4.0
_MOST = 3
"""A measurement and two quarters reach from the commonest mistake, 1e-3, to the 1e-5 of large encoders."""
_GENTLE = 1e-7
"""Below this a learning rate is not the trouble."""


def lower_lr(situation: Situation) -> Treatment | None:
    """Return the treatment, at most three times in a run."""
    tried = situation.tried.count("lower-lr")
    train = situation.settings.train
    if tried >= _MOST or train.lr / _DIVISOR < _GENTLE:
        return None
    measured = situation.measure_lr() if tried == 0 and situation.measure_lr is not None else None
    lr = train.lr / _DIVISOR if measured is None else measured
    how = "a quarter of it" if measured is None else "at which a few rows are learnt fast, halved"
    return Treatment(
        f"begin again with the learning rate {lr:.2g} instead of {train.lr:.2g} ({how}), reached slowly",
        {"train.lr": lr, "train.warmup_share": max(0.1, train.warmup_share)},
    )
