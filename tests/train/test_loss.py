import pytest
import torch
from torch.nn import functional

from tests.toy import toy_classifier, toy_examples, toy_labels
from textmill.core.seeds import torch_generator
from textmill.train.config import TrainConfig
from textmill.train.loss import Loss, build_loss
from textmill.train.rows import encode_rows, logits_of

LABELS = torch.tensor([0, 2, 1, 1, 0])


def some_logits():
    return torch.randn(5, 3, generator=torch_generator(0, "logits"))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_of_a_step_is_the_mean_over_its_rows(smoothing):
    logits = some_logits()
    expected = functional.cross_entropy(logits, LABELS, label_smoothing=smoothing)
    loss = Loss(smoothing)
    assert loss(logits, LABELS, 5) == pytest.approx(float(expected), abs=1e-6)
    parts = loss(logits[:4], LABELS[:4], 5) + loss(logits[4:], LABELS[4:], 5)
    assert float(parts) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("sizes", [(4, 4, 4, 1), (13,), (1, 12), (2, 3, 8)])
def test_the_gradient_does_not_depend_on_how_a_step_is_cut(sizes):
    classifier, tokenizer = toy_classifier(dropout=0.0)
    classifier.eval()
    rows = encode_rows(toy_examples(13), tokenizer, toy_labels())
    loss, device = Loss(0.1, [0.5, 1.5]), torch.device("cpu")
    positions = torch.arange(13)

    def gradient(parts):
        classifier.zero_grad()
        for part in parts:
            logits = logits_of(classifier, rows.batch(part.numpy()), device)
            loss(logits, rows.targets[part], 13).backward()
        return torch.cat([p.grad.flatten() for p in classifier.parameters() if p.grad is not None])

    whole, cut = gradient([positions]), gradient(positions.split(list(sizes)))
    assert float((whole - cut).abs().max()) < 1e-6


def test_balanced_weights_have_a_mean_of_one_over_the_rows():
    loss = build_loss(TrainConfig(class_weights="balanced"), LABELS.numpy(), 3)
    assert loss.weights is not None
    assert float(loss.weights[LABELS].mean()) == pytest.approx(1.0)
    assert loss.weights[2] > loss.weights[0]


def test_a_weight_counts_for_a_row_and_not_for_the_smoothed_mass():
    # Two rows alike but for their class: the gradient of a row only scales with its own weight.
    logits = some_logits()[:1].requires_grad_()
    plain = torch.autograd.grad(Loss(0.1)(logits, LABELS[:1], 1), logits)[0]
    weighted = torch.autograd.grad(Loss(0.1, [2.0, 1.0, 50.0])(logits, LABELS[:1], 1), logits)[0]
    assert torch.allclose(weighted, 2.0 * plain)


def test_without_class_weights_there_are_none():
    assert build_loss(TrainConfig(), LABELS.numpy(), 3).weights is None
