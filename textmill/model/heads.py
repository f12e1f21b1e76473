"""Heads: from one vector a text to one number a class.

The three-layer head is Dropout, Linear, activation, twice, then Dropout, Linear. New weights are
drawn from a generator passed in: normal with the BERT deviation of 0.02 for `linear` (Devlin et
al. 2019), Xavier uniform (Glorot and Bengio 2010) for the mlp, whose depth needs the scale kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from textmill.model.config import Activation
from textmill.model.dropout import Dropout

_BERT_DEVIATION = 0.02
_ACTIVATIONS: dict[Activation, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh}


class Head(nn.Module):
    """Linear layers with dropout before each and an activation between them."""

    def __init__(
        self, sizes: Sequence[int], activation: Activation, dropout: float, generator: torch.Generator
    ) -> None:
        """Build the layers.

        Args:
            sizes: widths from the input to the C classes; two for a linear head.
            activation: relu, gelu or tanh.
            dropout: probability, 0 to below 1.
            generator: source of the new weights.
        """
        super().__init__()
        modules: list[nn.Module] = []
        for number, (width_in, width_out) in enumerate(itertools.pairwise(sizes)):
            if number:
                modules.append(_ACTIVATIONS[activation]())
            # No draw from the global generator: the layer is made without values and filled below.
            layer = nn.Linear(width_in, width_out, device="meta").to_empty(device="cpu")
            modules += [Dropout(dropout), layer]
        self.layers = nn.Sequential(*modules)
        self.reset(generator)

    def reset(self, generator: torch.Generator) -> None:
        """Draw all weights anew (a fresh head is one of the cures for a collapsed training)."""
        linears = [layer for layer in self.layers if isinstance(layer, nn.Linear)]
        with torch.no_grad():
            for layer in linears:
                if len(linears) == 1:
                    layer.weight.normal_(0.0, _BERT_DEVIATION, generator=generator)
                else:
                    nn.init.xavier_uniform_(layer.weight, generator=generator)
                layer.bias.zero_()

    def forward(self, pooled: Tensor) -> Tensor:
        """Return (B, C) logits from (B, D) vectors."""
        logits: Tensor = self.layers(pooled)
        return logits
