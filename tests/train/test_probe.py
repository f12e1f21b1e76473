import numpy as np
import pytest
import torch

from tests.toy import toy_classifier, toy_examples, toy_labels
from tests.train.parts import toy_config
from textmill.train.device import choose_hardware
from textmill.train.probe import auto_max_tokens, choose_max_tokens, probe_budgets
from textmill.train.rows import encode_rows


def parts():
    classifier, tokenizer = toy_classifier()
    rows = encode_rows(toy_examples(60), tokenizer, toy_labels())
    return classifier, rows, choose_hardware(toy_config())


def test_auto_is_batch_size_times_the_mean_length():
    assert auto_max_tokens(toy_config(batch_size=32), np.array([20, 34])) == 864
    assert auto_max_tokens(toy_config(batch_size=1), np.array([2, 3])) == 8


def test_a_number_is_taken_as_it_is():
    classifier, rows, hardware = parts()
    assert choose_max_tokens(toy_config(max_tokens=100), classifier, rows, hardware) == 100


@pytest.mark.parametrize("budget", [8, 200, 10_000])
def test_probing_measures_and_changes_neither_classifier_nor_gradients(budget):
    classifier, rows, hardware = parts()
    before = {name: tensor.clone() for name, tensor in classifier.state_dict().items()}
    speeds = probe_budgets(toy_config(), classifier, rows, hardware, [budget], seconds=0.01)
    assert speeds[budget] > 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in classifier.state_dict().items())
    assert all(parameter.grad is None for parameter in classifier.parameters())
