"""Begin with short and clear texts, each batch class-balanced; then shuffle."""

from __future__ import annotations

from textmill.train.cures.cure import Situation, Treatment


def ordered(situation: Situation) -> Treatment | None:
    """Return the treatment, where the order is another one yet."""
    if situation.settings.order.strategy == "ordered":
        return None
    return Treatment(
        "begin with short and clear texts in class-balanced batches, then shuffle",
        {"order.strategy": "ordered"},
    )
