import pytest
import torch

from tests.toy import toy_classifier
from tests.train.parts import toy_config, toy_splits
from textmill.train.lr_probe import fastest_lr, probe_lr


def test_a_probe_finds_a_learning_rate_that_learns_and_changes_nothing():
    splits = toy_splits(64, 8)
    classifier, tokenizer = toy_classifier(splits.labels)
    before = {name: tensor.clone() for name, tensor in classifier.state_dict().items()}
    state, mode = torch.get_rng_state(), classifier.training
    one, two = (probe_lr(classifier, tokenizer, splits, toy_config(lr=0.5)) for _ in range(2))
    assert one.lr is not None
    assert 1e-3 < one.lr < 0.1
    assert (one.lr, one.losses) == (two.lr, two.losses)
    assert one.steps == 16 * len(one.losses)
    assert one.rows == 16 * one.steps
    assert torch.equal(state, torch.get_rng_state())
    assert classifier.training is mode
    for name, tensor in classifier.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_the_fastest_learning_rate_lies_between_those_that_were_tried():
    means = {4e-3: 0.7, 2e-3: 0.5, 1e-3: 0.4, 5e-4: 0.6}
    # Through (-1, 0.6), (0, 0.4), (1, 0.5) in octaves: lowest at 0.5 x 0.1 / 0.3.
    assert fastest_lr(means, 1e-3) == pytest.approx(1e-3 * 2 ** (0.5 * 0.1 / 0.3))
    assert fastest_lr({2e-3: 0.5, 1e-3: 0.4}, 1e-3) == 1e-3
    assert fastest_lr({2e-3: 0.5, 1e-3: 0.6}, 2e-3) == 2e-3
