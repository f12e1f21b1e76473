"""The bounds against the loss in use, minimised by brute force."""

import math

import numpy as np
import pytest
import torch

from textmill.train.guard.constant import ConstantAnswer
from textmill.train.loss import Loss


def lowest_constant(loss, targets, num_classes):
    """Return the loss of the best logits that are the same for all rows, found by descent."""
    logits = torch.zeros(num_classes, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, tolerance_grad=1e-9, tolerance_change=1e-12)

    def closure():
        optimizer.zero_grad()
        value = loss(logits.expand(len(targets), -1), targets, len(targets))
        value.backward()
        return value

    optimizer.step(closure)
    return closure().item()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("weights", [None, (1.0, 50.0, 2.0)])
def test_the_constant_answer_is_the_lowest_loss_without_reading(smoothing, weights):
    targets = torch.tensor([0] * 7 + [1] * 4 + [2] * 2)
    answer = ConstantAnswer(3, label_smoothing=smoothing, class_weights=weights)
    bounds = answer.bounds(np.bincount(targets.numpy()).astype(float), len(targets))
    assert bounds.constant == pytest.approx(lowest_constant(Loss(smoothing, weights), targets, 3), abs=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weights", [None, (1.0, 5.0, 0.5)])
def test_so_it_is_with_several_labels_a_row(smoothing, weights):
    targets = torch.tensor([[1.0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1], [1, 0, 0]])
    answer = ConstantAnswer(3, label_smoothing=smoothing, class_weights=weights, is_multilabel=True)
    bounds = answer.bounds(targets.sum(0).double().numpy(), len(targets))
    loss = Loss(smoothing, weights, is_multilabel=True)
    assert bounds.constant == pytest.approx(lowest_constant(loss, targets, 3), abs=1e-5)


def test_it_is_ln_c_for_balanced_classes_and_the_entropy_otherwise():
    assert ConstantAnswer(4).bounds(np.full(4, 8.0), 32).constant == pytest.approx(math.log(4))
    rare = ConstantAnswer(2).bounds(np.array([1.0, 20.0]), 21)
    assert rare.constant == pytest.approx(-(1 / 21) * math.log(1 / 21) - (20 / 21) * math.log(20 / 21))
    assert rare.floor == 0.0


def test_label_smoothing_of_one_half_leaves_a_floor_of_0_562():
    bounds = ConstantAnswer(2, label_smoothing=0.5).bounds(np.array([8.0, 8.0]), 16)
    assert bounds.floor == pytest.approx(0.562, abs=5e-4)
    assert bounds.constant == pytest.approx(math.log(2))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_floor_is_the_loss_of_a_perfect_model(smoothing):
    targets = torch.tensor([0, 0, 1, 2, 2, 2])
    probabilities = (1 - smoothing) * torch.eye(3)[targets] + smoothing / 3
    loss = Loss(smoothing, (1.0, 4.0, 2.0))(torch.log(probabilities + 1e-12), targets, 6).item()
    answer = ConstantAnswer(3, label_smoothing=smoothing, class_weights=(1.0, 4.0, 2.0))
    assert answer.bounds(np.array([2.0, 1.0, 3.0]), 6).floor == pytest.approx(loss, abs=1e-5)
