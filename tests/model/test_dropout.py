import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.toy import toy_classifier, toy_examples
from textmill.encode.collate import Collator
from textmill.model.dropout import ATTENTION, Dropout, drop


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_the_share_that_is_dropped_and_the_mean_are_right(probability):
    values = torch.ones(200_003)
    dropped = drop(values, probability)
    share = (dropped == 0).float().mean().item()
    assert abs(share - probability) < 5 * np.sqrt(probability * (1 - probability) / len(values))
    kept = dropped[dropped != 0]
    assert torch.allclose(kept, torch.full_like(kept, 1 / (1 - probability)), rtol=1e-4)


def test_neighbours_are_dropped_independently():
    dropped = (drop(torch.ones(400_000), 0.5) == 0).float()
    for lag in (1, 2, 3, 4, 8):
        agree = (dropped[lag:] * dropped[:-lag]).mean().item()
        assert abs(agree - 0.25) < 0.01, lag


def test_the_mask_comes_from_torchs_generator():
    values = torch.ones(1000)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        first = drop(values, 0.3)
        state = torch.get_rng_state()
        second = drop(values, 0.3)
        torch.set_rng_state(state)
        assert torch.equal(drop(values, 0.3), second)
        torch.manual_seed(3)
        assert torch.equal(drop(values, 0.3), first)
    assert not torch.equal(first, second)


def test_the_gradient_goes_through_what_was_kept():
    values = torch.randn(4, 7, 3, requires_grad=True)
    dropped = drop(values, 0.4)
    dropped.sum().backward()
    expected = torch.where(dropped == 0, 0.0, dropped.detach() / values.detach())
    assert torch.allclose(values.grad, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_type_and_shape_stay(dtype):
    values = torch.ones(3, 5, dtype=dtype)
    assert drop(values, 0.2).dtype == dtype
    assert drop(values[:, ::2], 0.2).shape == (3, 3)
    assert drop(values[:0], 0.2).shape == (0, 5)


def test_nothing_is_dropped_in_evaluation_or_at_zero():
    values = torch.randn(100)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0).train()(values), values)
    assert torch.equal(drop(values, 0.0), values)


def test_a_classifier_drops_by_it_everywhere():
    classifier, _ = toy_classifier()
    assert not any(isinstance(module, nn.Dropout) for module in classifier.modules())
    assert classifier.encoder.config._attn_implementation == ATTENTION


def batch_of(tokenizer, num=6):
    examples = toy_examples(num)
    return Collator(tokenizer).batch(tokenizer.encode([example.text for example in examples]))


def attend_by(implementation, classifier, batch):
    classifier.encoder.set_attn_implementation(implementation)
    return classifier(batch.input_ids, batch.attention_mask, batch.token_type_ids)


def test_evaluation_gives_the_scores_of_transformers_own_attention():
    classifier, tokenizer = toy_classifier()
    classifier.eval()
    batch = batch_of(tokenizer)
    with torch.no_grad():
        ours = attend_by(ATTENTION, classifier, batch)
        assert torch.allclose(ours, attend_by("eager", classifier, batch), atol=1e-5)
        assert torch.equal(ours, attend_by("sdpa", classifier, batch))


def test_training_attention_without_dropped_weights_is_transformers_own():
    classifier, tokenizer = toy_classifier()
    classifier.train()
    for module in classifier.modules():
        if isinstance(module, Dropout):
            module.p = 1e-9  # too small for 16 bits: nothing is dropped, yet the training path is taken
    batch = batch_of(tokenizer)
    with torch.no_grad():
        ours = attend_by(ATTENTION, classifier, batch)
        assert torch.allclose(ours, attend_by("eager", classifier, batch), atol=1e-5)


def test_training_on_average_gives_what_torchs_dropout_gives():
    classifier, tokenizer = toy_classifier()
    classifier.train()
    batch = batch_of(tokenizer, num=2)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        ours = torch.stack([attend_by(ATTENTION, classifier, batch) for _ in range(300)])
        for module in list(classifier.modules()):
            for name, child in module.named_children():
                if isinstance(child, Dropout):
                    setattr(module, name, nn.Dropout(child.p))
        theirs = torch.stack([attend_by("eager", classifier, batch) for _ in range(300)])
    error = (ours.var(0) / 300 + theirs.var(0) / 300).sqrt()
    assert ((ours.mean(0) - theirs.mean(0)).abs() < 5 * error).all()
    ratio = ours.std(0) / theirs.std(0)
    assert ((ratio > 0.75) & (ratio < 1.33)).all()


def test_a_probability_that_16_bits_cannot_tell_is_torchs():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        expected = functional.dropout(torch.ones(50), 1e-7)
        torch.manual_seed(1)
        assert torch.equal(drop(torch.ones(50), 1e-7), expected)
