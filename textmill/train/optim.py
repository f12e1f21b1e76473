"""The optimizer and the learning rate of each step.

Promises: the learning rate is a pure function of (step, number of steps), so that a resumed run
needs no scheduler state; biases and layer norms are never decayed.
Adam's bias correction matters: without it fine-tuning falls into the constant answer far more often
(Mosbach, Andriushchenko, Klakow 2021, "On the Stability of Fine-tuning BERT").
"""

from __future__ import annotations

import math

import torch
from torch import nn

from textmill.model.classifier import Classifier
from textmill.train.config import TrainConfig


def build_optimizer(classifier: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Return the optimizer over all parameters that want a gradient.

    On CPU and CUDA Adam and AdamW are fused: one pass over each tensor instead of a dozen; on two
    CPU cores and 22.7 million weights it takes a third of the time of the plain one.
    """
    groups = _decay_groups(classifier, config.weight_decay)
    if config.optimizer == "rmsprop":
        return torch.optim.RMSprop(groups, lr=config.lr)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    device = next(classifier.parameters()).device
    return kind(groups, lr=config.lr, fused=device.type in ("cpu", "cuda"))


def lr_share(step: int, num_steps: int, config: TrainConfig) -> float:
    """Return the share of `config.lr` that step `step` (from 0) of `num_steps` uses, in (0, 1].

    It rises evenly over the warm-up steps, the first of which is not zero, and then falls to zero
    just after the last step (linear or cosine) or stays. When a finished run gets more epochs, the
    steps that follow use the learning rates of the longer run.
    """
    assert 0 <= step < num_steps, f"step {step} of {num_steps}"
    num_warmup = math.ceil(config.warmup_share * num_steps) if config.warmup_share else 0
    if step < num_warmup:
        return (step + 1) / (num_warmup + 1)
    done = (step - num_warmup) / max(1, num_steps - num_warmup)
    if config.schedule == "linear":
        return 1.0 - done
    if config.schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * done))
    return 1.0


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Use `lr` for the next step."""
    for group in optimizer.param_groups:
        group["lr"] = lr


def clip_gradient(classifier: Classifier, max_norm: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Shorten the whole gradient to at most `max_norm`, in one pass over it.

    Returns:
        The length of the encoder's part and of the rest's (the head's) before that, on the device. They
        tell a dead encoder from a dead head; the root of their squares' sum is the whole length.
    """
    parts = split_parameters(classifier)
    lengths = [torch.nn.utils.get_total_norm([p.grad for p in part if p.grad is not None]) for part in parts]
    encoder, head = (length.to(next(classifier.parameters()).device) for length in lengths)
    torch.nn.utils.clip_grads_with_norm_([*parts[0], *parts[1]], max_norm, torch.hypot(encoder, head))
    return encoder, head


def split_parameters(classifier: Classifier) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the encoder's parameters and all others."""
    encoder = list(classifier.encoder.parameters())
    known = {id(parameter) for parameter in encoder}
    return encoder, [parameter for parameter in classifier.parameters() if id(parameter) not in known]


def _decay_groups(classifier: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    norms = {
        id(parameter)
        for module in classifier.modules()
        if "norm" in type(module).__name__.lower()
        for parameter in module.parameters(recurse=False)
    }
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for parameter in classifier.parameters():
        if parameter.requires_grad:
            is_plain = parameter.ndim < 2 or id(parameter) in norms
            (plain if is_plain else decayed).append(parameter)
    groups: list[dict[str, object]] = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
