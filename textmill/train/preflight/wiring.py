"""Whether a model reads what it should: logits, mask, both ends of a text, gradients, the head's units.

Each probe is a few forward passes over 16 rows in evaluation mode (no dropout), with numbers that a sound
model passes by orders of magnitude. What is not covered: whether the answers are any good (`learning.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from textmill.core.types import Batch
from textmill.data.findings.finding import Finding
from textmill.model.classifier import Classifier
from textmill.train.rows import logits_of

_PADDING_MOVES = 1e-2
"""Of the spread of logits over rows. A sound model in fp32 stays below 1e-4; ConvBERT, whose convolutions
see padding, moves by 1e-3; a mask that is lost or inverted moves by 0.1 and more."""
_SAME = 1e-6  # relative to the size of the logits
_DEAD_SHARE = 0.9
_FROZEN_SHARE = 0.5


@dataclass(slots=True)
class Wiring:
    """What the probes found, with their numbers."""

    findings: list[Finding] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)

    def add(self, kind: str, message: str, fix: str, *, is_error: bool = True) -> None:
        """Note a finding."""
        self.findings.append(Finding(kind, "error" if is_error else "warning", message, fix))


def probe_wiring(classifier: Classifier, batch: Batch, device: torch.device) -> Wiring:
    """Return what is wrong between ids and logits, and back.

    Args:
        classifier: in evaluation mode, on `device`; its gradients are cleared afterwards.
        batch: B training rows of all classes, padded.
        device: where to compute.
    """
    found = Wiring()
    broken = [
        name for name, weight in classifier.named_parameters() if not bool(torch.isfinite(weight).all())
    ]
    if broken:
        fix = "Copy the checkpoint again, or take another one."
        found.add("not_finite", f"{len(broken)} weights hold numbers that are not finite: {broken[0]}", fix)
        return found
    _check_targets(found, batch, len(classifier.labels))
    if found.findings:
        return found
    with torch.no_grad():
        logits = logits_of(classifier, batch, device).cpu()  # (B, C)
    if not bool(torch.isfinite(logits).all()):
        fix = (
            'Set train.precision = "fp32" and look at the attention mask: a row without any token gives this.'
        )
        found.add("not_finite", "the logits of an untrained pass are not finite", fix)
        return found
    _check_first_loss(found, logits, batch)
    _check_same_answer(found, logits)
    _check_padding(found, classifier, batch, logits, device)
    _check_both_ends(found, classifier, batch, device)
    _check_gradients(found, classifier, batch, device)
    _check_units(found, classifier, batch, device)
    return found


def plain_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean loss without smoothing and weights: of (B,) classes, or of (B, C) yes and no."""
    if targets.ndim == 2:
        return functional.binary_cross_entropy_with_logits(logits, targets)
    return functional.cross_entropy(logits, targets)


def _check_targets(found: Wiring, batch: Batch, num_classes: int) -> None:
    targets = batch.labels
    fix = "Labels must be (B,) int64 classes below C, or (B, C) float32 of 0 and 1 with several labels a row."
    if targets is None:
        found.add("labels", "the batch has no labels", fix)
    elif targets.ndim == 1 and (
        targets.dtype != torch.int64 or int(targets.min()) < 0 or int(targets.max()) >= num_classes
    ):
        what = f"{targets.dtype} from {targets.min()} to {targets.max()} for {num_classes} classes"
        found.add("labels", f"the labels of a batch are {what}", fix)
    elif targets.ndim == 2 and (
        targets.dtype != torch.float32
        or targets.shape[1] != num_classes
        or not bool(((targets == 0) | (targets == 1)).all())
    ):
        what = f"{targets.dtype} of shape {tuple(targets.shape)} for {num_classes} classes"
        found.add("labels", f"the labels of a batch are {what}", fix)


def _check_first_loss(found: Wiring, logits: Tensor, batch: Batch) -> None:
    assert batch.labels is not None
    loss = float(plain_loss(logits, batch.labels))
    is_multilabel = batch.labels.ndim == 2
    expected = math.log(2) if is_multilabel else math.log(logits.shape[1])
    found.numbers |= {"first_loss": loss, "expected_first_loss": expected}
    if loss > 1.5 * expected + 0.5:
        what = "ln 2" if is_multilabel else f"ln {logits.shape[1]}"
        message = f"the first loss is {loss:.3f}, where a new head should give about {what} = {expected:.3f}"
        fix = "The head's weights or the encoder's outputs are far too large: look at the checkpoint."
        found.add("first_loss", message, fix, is_error=False)


def _check_same_answer(found: Wiring, logits: Tensor) -> None:
    spread = float((logits - logits.mean(0)).abs().max())
    found.numbers["logit_spread"] = spread
    if spread <= _SAME * max(1.0, float(logits.abs().max())):
        message = f"{len(logits)} different texts get the same logits (they differ by {spread:.1e})"
        fix = "The ids or the mask do not reach the encoder: check the tokenizer, the mask and the pooling."
        found.add("same_answer", message, fix)


def _check_padding(
    found: Wiring, model: Classifier, batch: Batch, logits: Tensor, device: torch.device
) -> None:
    """Compare the shortest row in the padded batch with the same row alone."""
    row = int(batch.lengths.argmin())
    num_tokens, longest = int(batch.lengths[row]), batch.input_ids.shape[1]
    columns = (
        slice(0, num_tokens) if bool(batch.attention_mask[row, 0]) else slice(longest - num_tokens, longest)
    )
    if num_tokens == longest:
        return
    types = batch.token_type_ids
    with torch.no_grad():
        alone = model(
            batch.input_ids[row : row + 1, columns].to(device),
            batch.attention_mask[row : row + 1, columns].to(device),
            None if types is None else types[row : row + 1, columns].to(device),
        ).cpu()
    moved = float((alone[0] - logits[row]).abs().max())
    share = moved / max(found.numbers["logit_spread"], 1e-9)
    found.numbers["padding_moves"] = moved
    if share > _PADDING_MOVES and moved > 1e-5:
        message = (
            f"padding changes the answer: a row of {num_tokens} tokens moves by {moved:.2g} when it is "
            f"padded to {longest} ({share:.0%} of the spread between texts)"
        )
        found.add("padding", message, "The attention mask is lost or inverted on its way to the encoder.")


def _check_both_ends(found: Wiring, model: Classifier, batch: Batch, device: torch.device) -> None:
    """Change the first and the last word of the longest row: both must move the answer."""
    row = int(batch.lengths.argmax())
    num = int(batch.lengths[row])
    begin = int(batch.attention_mask[row].argmax())
    if num < 6:
        return
    ids = batch.input_ids[row].clone()
    moves = {}
    for name, place in (("beginning", begin + 1), ("end", begin + num - 2)):
        changed = ids.clone()
        # Another word of the same text, so that it is an ordinary one.
        changed[place] = next(
            (int(i) for i in ids[begin + 1 : begin + num - 1] if i != ids[place]), int(ids[place])
        )
        both = torch.stack([ids, changed])
        mask = batch.attention_mask[row].expand(2, -1)
        types = None if batch.token_type_ids is None else batch.token_type_ids[row].expand(2, -1).to(device)
        with torch.no_grad():
            logits = model(both.to(device), mask.to(device), types).cpu()
        moves[name] = float((logits[0] - logits[1]).abs().max())
        if torch.equal(ids, changed):
            return
        found.numbers[f"{name}_moves"] = moves[name]
    least = _SAME * max(1.0, found.numbers["logit_spread"])
    blind = [name for name, move in moves.items() if move <= least]
    if not blind or found.numbers["logit_spread"] <= _SAME:
        return  # without any spread, `same_answer` has said it
    message = f"another word at the {' or the '.join(blind)} of a text does not move the answer"
    fix = "The ids do not reach the encoder: check the tokenizer and what lies between it and the encoder."
    if len(blind) == 1:
        message += f" (pooling {model.config.pooling!r})"
        fix = 'The pooled token does not see it: set model.pooling = "mean", or "last" for a decoder.'
    found.add("blind", message, fix)


def _check_gradients(found: Wiring, model: Classifier, batch: Batch, device: torch.device) -> None:
    assert batch.labels is not None
    model.zero_grad(set_to_none=True)
    loss = plain_loss(logits_of(model, batch, device), batch.labels.to(device))
    if loss.requires_grad:
        torch.autograd.backward(loss)
    for part, module in (("encoder", model.encoder), ("head", model.head)):
        reached = total = 0
        square = 0.0
        for weight in module.parameters():
            total += weight.numel()
            size = 0.0 if weight.grad is None else float(weight.grad.float().norm())
            reached += weight.numel() if size > 0 else 0
            square += size**2
        found.numbers[f"{part}_gradient"] = math.sqrt(square)
        if not math.isfinite(square):
            found.add(
                "not_finite", f"the gradient of the {part} is not finite", 'Set train.precision = "fp32".'
            )
        elif total and reached < (1 - _FROZEN_SHARE) * total:
            message = f"no gradient reaches {1 - reached / total:.0%} of the {part}'s {total:,} weights"
            fix = "Set requires_grad on them, and let nothing detach the encoder's output from the head."
            found.add(f"frozen_{part}", message, fix, is_error=reached == 0)
    model.zero_grad(set_to_none=True)


def _check_units(found: Wiring, model: Classifier, batch: Batch, device: torch.device) -> None:
    """Count hidden units of the head that stand still whatever the text."""
    outputs: list[tuple[str, Tensor]] = []
    hooks = [
        layer.register_forward_hook(
            lambda module, _, output: outputs.append((type(module).__name__, output.detach().float().cpu()))
        )
        for layer in model.head.layers
        if isinstance(layer, nn.ReLU | nn.GELU | nn.Tanh)
    ]
    try:
        with torch.no_grad():
            logits_of(model, batch, device)
    finally:
        for hook in hooks:
            hook.remove()
    for number, (name, output) in enumerate(outputs, 1):
        is_dead = (output.abs() > 0.999).all(0) if name == "Tanh" else (output.abs() < 1e-4).all(0)
        share = float(is_dead.float().mean())
        found.numbers[f"dead_units_{number}"] = share
        if share > _DEAD_SHARE:
            units = f"{output.shape[1]} units of the head's layer {number}"
            message = f"{share:.0%} of the {units} stand still for all texts"
            fix = 'Draw the head anew (another train.seed), or set model.activation = "gelu".'
            found.add("dead_units", message, fix, is_error=share == 1.0)
