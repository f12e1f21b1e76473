"""Let rows of rare classes count more, where the model answers with the frequent class only.

For trainings whose loss lies at the entropy of unbalanced labels.
"""

from __future__ import annotations

from textmill.train.cures.cure import Situation, Treatment


def class_weights(situation: Situation) -> Treatment | None:
    """Return the treatment, where imbalance is the diagnosis and no weights are in use."""
    if situation.verdict.kind != "imbalance" or situation.settings.train.class_weights == "balanced":
        return None
    return Treatment(
        'let rows of rare classes count more (train.class_weights = "balanced")',
        {"train.class_weights": "balanced"},
    )
