"""Go back to the best healthy state and go on from there, more gently.

For trainings that had learned and fell back: what they knew is in a state that was kept (anchored in
reports of large models whose early checkpoint was good, huggingface/transformers#936).
"""

from __future__ import annotations

from textmill.train.cures.cure import Situation, Start, Treatment

_DIVISOR = 4.0
"""The learning rate at which it fell is too high, but it was learning at it, so it is not far off."""


def roll_back(situation: Situation) -> Treatment | None:
    """Return the treatment, where there is a healthy state."""
    if situation.healthy is None:
        return None
    lr = situation.settings.train.lr / _DIVISOR
    return Treatment(
        f"go back to the best state of attempt {situation.healthy} and go on at a quarter of the learning "
        f"rate, {lr:.2g}, which is reached slowly",
        {"train.lr": lr, "train.warmup_share": max(0.1, situation.settings.train.warmup_share)},
        Start(attempt=situation.healthy, epochs_done=situation.healthy_epochs),
    )
