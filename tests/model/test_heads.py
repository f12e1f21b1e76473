"""Heads."""

from __future__ import annotations

import torch
from torch import nn

from textmill.model.dropout import Dropout
from textmill.model.heads import Head


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_three_layers_have_two_activations_and_dropout_before_each():
    head = Head((8, 6, 5, 3), "tanh", 0.2, _generator())
    kinds = [type(layer) for layer in head.layers]
    assert kinds == [Dropout, nn.Linear, nn.Tanh, Dropout, nn.Linear, nn.Tanh, Dropout, nn.Linear]
    assert head(torch.ones(2, 8)).shape == (2, 3)


def test_weights_come_from_the_generator_and_leave_the_global_one_alone():
    before = torch.get_rng_state()
    first, second = Head((8, 8, 3), "gelu", 0.1, _generator()), Head((8, 8, 3), "gelu", 0.1, _generator())
    assert torch.equal(torch.get_rng_state(), before)
    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, two)
    other = Head((8, 8, 3), "gelu", 0.1, _generator(1))
    assert not torch.equal(first.layers[1].weight, other.layers[1].weight)


def test_a_linear_head_starts_with_the_deviation_of_bert():
    head = Head((512, 64), "gelu", 0.1, _generator())
    assert len([layer for layer in head.layers if isinstance(layer, nn.Linear)]) == 1
    assert 0.018 < float(head.layers[1].weight.detach().std()) < 0.022
    assert not head.layers[1].bias.detach().any()


def test_reset_draws_anew():
    head = Head((8, 3), "gelu", 0.1, _generator())
    before = head.layers[1].weight.detach().clone()
    head.reset(_generator(5))
    assert not torch.equal(before, head.layers[1].weight)
