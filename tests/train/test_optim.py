import math

import pytest
import torch

from tests.toy import toy_classifier
from textmill.train.config import TrainConfig
from textmill.train.optim import build_optimizer, lr_share, set_lr


def shares(num_steps, **changes):
    return [lr_share(step, num_steps, TrainConfig(**changes)) for step in range(num_steps)]


def test_linear_rises_to_one_and_falls_towards_zero():
    found = shares(20, warmup_share=0.2)
    assert found[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert found[4:] == sorted(found[4:], reverse=True)
    assert 0 < found[-1] < 0.1


def test_without_warm_up_the_first_step_has_the_full_rate():
    assert shares(10, warmup_share=0.0)[0] == 1.0


def test_cosine_is_half_way_down_in_the_middle():
    found = shares(100, warmup_share=0.0, schedule="cosine")
    assert found[50] == pytest.approx(0.5)
    assert found[25] == pytest.approx(0.5 * (1 + math.cos(math.pi / 4)))


def test_constant_stays_after_the_warm_up():
    assert set(shares(10, warmup_share=0.2, schedule="constant")[2:]) == {1.0}


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
@pytest.mark.parametrize("num_steps", [1, 2, 3, 50])
@pytest.mark.parametrize("warmup_share", [0.0, 0.1, 0.99])
def test_no_step_is_wasted_on_a_rate_of_zero(schedule, num_steps, warmup_share):
    found = shares(num_steps, schedule=schedule, warmup_share=warmup_share)
    assert all(0 < share <= 1 for share in found)


def test_biases_and_layer_norms_are_never_decayed():
    classifier, _ = toy_classifier()
    optimizer = build_optimizer(classifier, TrainConfig(weight_decay=0.1))
    decay = {id(p): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    for name, parameter in classifier.named_parameters():
        is_plain = name.endswith("bias") or "norm" in name.lower()
        assert decay[id(parameter)] == (0.0 if is_plain else 0.1), name
    assert len(decay) == len(list(classifier.parameters()))


def test_fused_adamw_moves_like_the_plain_one():
    first, _ = toy_classifier()
    second, _ = toy_classifier()
    fused = build_optimizer(first, TrainConfig(lr=1e-3))
    assert fused.defaults["fused"]
    plain = torch.optim.AdamW(second.parameters(), lr=1e-3, weight_decay=0.0, fused=False, foreach=False)
    for group in fused.param_groups:
        group["weight_decay"] = 0.0
    for _ in range(3):
        for model, optimizer in ((first, fused), (second, plain)):
            for parameter in model.parameters():
                parameter.grad = torch.cos(parameter.detach() * 7)
            optimizer.step()
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("name", ["adamw", "adam", "rmsprop"])
def test_the_rate_set_is_the_rate_used(name):
    classifier, _ = toy_classifier()
    optimizer = build_optimizer(classifier, TrainConfig(optimizer=name))
    set_lr(optimizer, 0.0)
    before = [p.detach().clone() for p in classifier.parameters()]
    for parameter in classifier.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(before, classifier.parameters(), strict=True))
