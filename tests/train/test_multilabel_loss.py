"""Binary cross-entropy of several labels a row."""

import math

import numpy as np
import pytest
import torch

from textmill.train.config import TrainConfig
from textmill.train.loss import MAX_POS_WEIGHT, Loss, build_loss, pos_weights
from textmill.train.rows import balance_class

LOGITS = torch.tensor([[2.0, -1.0, 0.5], [-3.0, 0.0, 1.0], [0.2, 0.1, -0.3]])
TARGETS = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])


def test_a_constant_half_costs_ln_2_however_many_classes():
    loss = Loss(is_multilabel=True)
    assert torch.allclose(loss.per_row(torch.zeros(3, 3), TARGETS), torch.full((3,), math.log(2)))


def test_the_loss_of_a_row_is_the_mean_over_its_classes():
    probability = torch.sigmoid(LOGITS)
    naive = -(TARGETS * probability.log() + (1 - TARGETS) * (1 - probability).log()).mean(dim=1)
    assert torch.allclose(Loss(is_multilabel=True).per_row(LOGITS, TARGETS), naive, atol=1e-6)


def test_smoothing_moves_targets_towards_a_half():
    loss = Loss(0.2, is_multilabel=True)
    smoothed = TARGETS * 0.8 + 0.1
    expected = torch.nn.functional.binary_cross_entropy_with_logits(LOGITS, smoothed)
    assert torch.isclose(loss(LOGITS, TARGETS, 3), expected, atol=1e-6)


def test_weights_count_where_a_class_applies_and_not_its_smoothed_share():
    weighted = Loss(0.2, [5.0, 1.0, 1.0], is_multilabel=True)
    plain, counted = weighted.rows(LOGITS, TARGETS)
    assert torch.equal(plain[1:], counted[1:])  # the first class applies to the first row alone
    assert counted[0] > plain[0]
    same = torch.nn.functional.binary_cross_entropy_with_logits(
        LOGITS, TARGETS, pos_weight=torch.tensor([5.0, 1, 1])
    )
    assert torch.isclose(Loss(0.0, [5.0, 1.0, 1.0], is_multilabel=True)(LOGITS, TARGETS, 3), same, atol=1e-6)


def test_balanced_weights_are_rows_without_over_rows_with_and_bounded():
    targets = np.zeros((1000, 4), dtype=np.float32)
    targets[:500, 0] = 1
    targets[:100, 1] = 1
    targets[:2, 2] = 1
    assert pos_weights(targets) == pytest.approx([1.0, 9.0, MAX_POS_WEIGHT, 1.0])
    built = build_loss(TrainConfig(class_weights="balanced"), targets, 4)
    assert built.is_multilabel
    assert built.weights is not None


def test_the_gradient_does_not_depend_on_how_a_step_is_cut():
    weights = torch.tensor([0.5, 2.0, 0.5])
    loss = Loss(0.1, [2.0, 1.0, 1.0], is_multilabel=True)
    whole, cut = LOGITS.clone().requires_grad_(), LOGITS.clone().requires_grad_()
    loss(whole, TARGETS, 3, weights).backward()
    for part in (slice(0, 1), slice(1, 3)):
        loss(cut[part], TARGETS[part], 3, weights[part]).backward()
    assert torch.allclose(whole.grad, cut.grad, atol=1e-7)


def test_batches_are_balanced_by_the_rarest_label_of_a_row():
    targets = torch.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    assert balance_class(targets).tolist() == [1, 0, 0, 2]
    assert balance_class(torch.tensor([1, 0])).tolist() == [1, 0]
