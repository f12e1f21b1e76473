"""A verdict's numbers, and the same in words for somebody at the end of a long day.

Each sentence says what is seen, in numbers; why that is so, as far as it is known; what to try.
What is not covered: reaching the verdict (`judge.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from textmill.train.guard.judge import ONE_CLASS, Finding
from textmill.train.guard.window import View


@dataclass(frozen=True, slots=True)
class Setting:
    """What the sentences need to know of the training."""

    labels: tuple[str, ...]
    label_smoothing: float
    class_weights: tuple[float, ...] | None
    is_multilabel: bool


def numbers_of(view: View, slope: float) -> dict[str, float]:
    """Return the numbers behind a verdict, by name."""
    signals = view.signals
    return {
        "loss": view.loss,
        "constant_loss": view.bounds.constant,
        "loss_floor": view.bounds.floor,
        "learnt_share": view.learnt,
        "loss_slope": slope,
        "rows": signals.rows,
        "alignment": view.alignment,
        "logit_spread": view.spread,
        "top_share": signals.top_share,
        "classes_predicted": float(signals.num_predicted),
        "encoder_norm": view.encoder_norm,
        "head_norm": view.head_norm,
        "encoder_share": view.encoder_share,
        "one_class_batches": signals.one_label_share,
        "lr": view.lr,
    }


def sentence_of(finding: Finding, view: View, setting: Setting) -> str:
    """Return what was found in words."""
    if finding.is_sorted:
        return _of_sorted(view, setting)
    if finding.kind == "healthy":
        return f"The model learns: {_loss(view)}, {_learnt(view)}."
    if not finding.is_alarm:
        return _of_patience(finding, view, setting)
    starts = {
        "never-left": f"The model still gives every text the same answer after {view.step} steps",
        "collapsed-after-learning": f"The model had learnt and fell back to one answer by step {view.step}",
        "imbalance": f"The model gives every text the answer that is cheapest on average (step {view.step})",
    }
    return f"{starts[finding.kind]}: {_evidence(view, setting)}. {_cause(finding, view, setting)}"


def not_a_number(what: Sequence[str], step: int, lr: float) -> str:
    """Return the sentence for numbers that are infinite or not a number."""
    if step == 0:
        return (
            f"Before the first step {' and '.join(what)} is not a number: a weight of the model is not. "
            "Fetch or convert the backbone again; no setting of the training helps."
        )
    first = " At step 1 it is in the weights or the data, not in the training." if step == 1 else ""
    return (
        f"At step {step} {' and '.join(what)} {'is' if len(what) == 1 else 'are'} not a number, with "
        f"learning rate {lr:.3g}.{first} Lower the learning rate to a third, warm up longer, or compute "
        "in fp32."
    )


def same_for_all(spread: float) -> str:
    """Return the sentence for a model that does not see its input."""
    return (
        f"Before the first step the model already gives different texts the same logits (they differ by "
        f"{spread:.1g}): nothing of the text reaches the head. Look for an attention mask of zeros, a "
        "tokenizer that does not belong to the model (all words unknown), or weights that were not loaded."
    )


def _evidence(view: View, setting: Setting) -> str:
    signals = view.signals
    parts = [_loss(view)]
    if not setting.is_multilabel and signals.top_share >= ONE_CLASS:
        label = setting.labels[int(signals.predicted.argmax())]
        parts.append(f"{signals.top_share:.0%} of the predictions are {label!r}")
    else:
        parts.append(f"the logits do not go with the labels ({view.alignment:+.1f} standard errors)")
    parts.append(f"the encoder gets {view.encoder_share:.0%} of the gradient it had at first")
    return ", ".join(parts[:-1]) + f", and {parts[-1]}"


def _cause(finding: Finding, view: View, setting: Setting) -> str:
    rate = f"the learning rate ({view.lr:.2g} now)"
    if finding.kind == "imbalance":
        return _of_imbalance(view, setting)
    if finding.kind == "collapsed-after-learning":
        return f"As a rule {rate} became too high; go back to the last good state with a quarter of it."
    swing = " The loss swings far above it, so the steps are too long." if view.learnt < -0.2 else ""
    return (
        f"As a rule {rate} is too high for these weights.{swing} Try a quarter of it, a warm-up of a tenth "
        "of the steps, or larger batches."
    )


def _of_imbalance(view: View, setting: Setting) -> str:
    best = int(view.best.argmax())
    share = float(view.signals.labels[best] / view.signals.rows)
    label = setting.labels[best]
    weights = setting.class_weights
    if weights is not None and share < 0.5 + 0.5 / len(setting.labels):
        light = min(weights)
        smoothing = (
            f" together with label smoothing {setting.label_smoothing:g}" if setting.label_smoothing else ""
        )
        return (
            f"{label!r} is {share:.0%} of the labels, but its class weight is {weights[best] / light:.3g} "
            f"times the smallest one: the weights{smoothing} make it the cheapest answer. Use smaller class "
            "weights or none."
        )
    return (
        f"{share:.0%} of the labels are {label!r}, so answering only that costs {view.bounds.constant:.3g} "
        f"and not ln {len(setting.labels)} = {math.log(len(setting.labels)):.3g}. Lower the learning rate, "
        "and give the rare classes more weight or an equal share of every batch."
    )


def _of_patience(finding: Finding, view: View, setting: Setting) -> str:
    if finding.kind == "imbalance":
        best = int(view.best.argmax())
        return (
            f"So far every answer is {setting.labels[best]!r} and {_loss(view)}; the encoder still gets its "
            "gradient, so the rare classes may come later. If they do not, weigh them or balance the batches."
        )
    return (
        f"Nothing is learnt at step {view.step}: {_loss(view)}. The encoder still gets its gradient "
        f"({view.encoder_share:.0%} of the first), so this is no collapse but a slow start (learning rate "
        f"{view.lr:.2g}), or labels that the texts do not explain."
    )


def _of_sorted(view: View, setting: Setting) -> str:
    seen = np.flatnonzero(view.signals.labels)
    names = ", ".join(repr(setting.labels[index]) for index in seen[:3])
    return (
        f"{view.signals.one_label_share:.0%} of the last {view.signals.num_batches:.0f} batches hold rows of "
        f"one class only ({names}): the rows seem to be sorted by label. Shuffle them; otherwise the model "
        "learns whichever class it saw last."
    )


def _loss(view: View) -> str:
    return f"the loss is {view.loss:.4g} where answering without reading costs {view.bounds.constant:.4g}"


def _learnt(view: View) -> str:
    return f"{max(view.learnt, 0.0):.0%} of the way down to {max(view.bounds.floor, 0.0):.3g}"
