"""Draw head and order anew: with another seed the same settings may learn (Dodge et al. 2020)."""

from __future__ import annotations

from textmill.train.cures.cure import Situation, Start, Treatment

_MOST = 2


def new_seed(situation: Situation) -> Treatment | None:
    """Return the treatment, at most twice in a run."""
    if situation.tried.count("new-seed") >= _MOST:
        return None
    seed = (situation.settings.train.seed + 1) % 2**32
    return Treatment(
        f"draw the head and the order anew, with seed {seed}",
        {"train.seed": seed},
        Start(fresh_head=True),
    )
