"""Which cure comes next: the diagnosis first, then the order of the ladder.

Promises: a fault of data or wiring gets no cure, which could only hide it; each choice can be read off the
verdict and the settings, so that a run that was killed chooses again as it did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textmill.train.cures.class_weights import class_weights
from textmill.train.cures.config import Rung
from textmill.train.cures.cure import Situation, Treatment
from textmill.train.cures.fresh_layers import fresh_layers
from textmill.train.cures.larger_batch import larger_batch
from textmill.train.cures.lower_lr import lower_lr
from textmill.train.cures.new_seed import new_seed
from textmill.train.cures.ordered import ordered
from textmill.train.cures.roll_back import roll_back
from textmill.train.cures.warm_up import warm_up

CURES: dict[Rung, Callable[[Situation], Treatment | None]] = {
    "roll-back": roll_back,
    "class-weights": class_weights,
    "ordered": ordered,
    "warm-up": warm_up,
    "lower-lr": lower_lr,
    "larger-batch": larger_batch,
    "fresh-layers": fresh_layers,
    "new-seed": new_seed,
}

_REPEATABLE: tuple[Rung, ...] = ("lower-lr", "new-seed", "warm-up")
HIGH_LR = 5e-5
"""The highest learning rate of BERT's own grid for fine-tuning (Devlin et al. 2019, appendix A.3). Above it a
pretrained encoder's learning rate is the first suspect: of 36 public reports of this collapse 13 had one."""
HIGH_LR_FROM_SCRATCH = 1e-3


def choose(situation: Situation, ladder: Sequence[Rung]) -> tuple[Rung, Treatment] | None:
    """Return the next cure of the ladder that fits, or None when there is none left.

    Args:
        situation: the training that has ended.
        ladder: the cures that may be tried.
    """
    if situation.verdict.kind == "data-or-wiring":
        return None
    if situation.verdict.kind == "not-a-number" and situation.verdict.step == 0:
        return None  # before the first step: weights that are no numbers stay so whatever is tried
    preferred = [rung for rung in _preferred(situation) if rung in ladder]
    for rung in [*preferred, *(rung for rung in ladder if rung not in preferred)]:
        if rung in situation.tried and rung not in _REPEATABLE:
            continue
        treatment = CURES[rung](situation)
        if treatment is not None:
            return rung, treatment
    return None


def high_lr(is_pretrained: bool) -> float:
    """Return the learning rate above which it is the first suspect."""
    return HIGH_LR if is_pretrained else HIGH_LR_FROM_SCRATCH


def _preferred(situation: Situation) -> Sequence[Rung]:
    high = high_lr(situation.is_pretrained)
    match situation.verdict.kind:
        case "imbalance":
            return ("class-weights",)
        case "collapsed-after-learning" | "not-a-number":
            return ("roll-back", "lower-lr")
        case "never-left" if situation.settings.train.lr > high:
            return ("lower-lr",)
    return ()
