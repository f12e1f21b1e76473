"""Dropout whose random numbers cost little on a CPU.

torch draws one number of its serial generator for each element: a fifth of a training step of a
6-layer BERT on two cores. Here each 64-bit number decides four elements (16 bits each), which
takes a sixth of the time. Probabilities are exact to 1 / 131,072.

Promises: the numbers come from torch's own generator, so that a seed or a saved state gives the same
masks; nothing is dropped in evaluation; other devices get torch's own dropout, as do probabilities
that 16 bits cannot tell from 0.
What is not covered: the masks of `torch.nn.Dropout` bit by bit.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION = "textmill"
"""Name of the attention below among transformers' attention functions."""
_LEVELS = 1 << 16


def drop(values: Tensor, probability: float) -> Tensor:
    """Return `values` with each element zero at `probability`, the others scaled up to keep the mean.

    Args:
        values: any shape.
        probability: 0 to below 1.
    """
    level = round(probability * _LEVELS)
    if values.device.type != "cpu" or not 0 < level < _LEVELS:
        return functional.dropout(values, probability)
    num = values.numel()
    words = torch.empty((num + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None)
    draws = words.view(torch.int16)[:num].view(values.shape)  # uniform, -32,768 to 32,767
    keep = (draws >= level - _LEVELS // 2) * (_LEVELS / (_LEVELS - level))
    return values * keep.to(values.dtype)


class Dropout(nn.Module):
    """Drops elements in training; stands where `torch.nn.Dropout` stood."""

    def __init__(self, p: float) -> None:
        """Set the probability; the name is torch's, since encoders read it."""
        super().__init__()
        assert 0 <= p < 1, p
        self.p = p

    def forward(self, values: Tensor) -> Tensor:
        """Return `values`, in training with some of them dropped."""
        return drop(values, self.p) if self.training and self.p else values


def replace_dropout(encoder: nn.Module) -> None:
    """Let a transformers encoder drop by `drop`, in its layers and in its attention."""
    for module in list(encoder.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout and child.p < 1:
                setattr(module, name, Dropout(child.p).train(child.training))
    config: Any = encoder.config
    if config._attn_implementation == "sdpa":
        AttentionInterface.register(ATTENTION, _attend)
        AttentionMaskInterface.register(ATTENTION, sdpa_mask)
        encoder.set_attn_implementation(ATTENTION)  # type: ignore[operator]


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attend as transformers' sdpa does; where that would draw a mask on a CPU, draw it by `drop`.

    Args:
        module: the attention layer.
        query: (B, heads, T, width); key and value likewise.
        key: see query.
        value: see query.
        attention_mask: (B, 1, T, T), true where a token may look; None: everywhere.
        dropout: probability; 0 in evaluation.
        scaling: of the scores; None: 1 / sqrt(width).
        others: what only some architectures give.

    Returns:
        (B, T, heads, width), and None for the weights.
    """
    has_more = any(each is not None and each is not False for each in others.values())
    is_plain = not has_more and not getattr(module, "is_causal", True) and key.shape[1] == query.shape[1]
    if dropout == 0 or query.device.type != "cpu" or not is_plain:
        answer: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **others
        )
        return answer
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if attention_mask is not None:
        is_bool = attention_mask.dtype == torch.bool
        scores = scores.masked_fill(~attention_mask, -torch.inf) if is_bool else scores + attention_mask
    weights = drop(scores.softmax(-1), dropout)
    return (weights @ value).transpose(1, 2).contiguous(), None
