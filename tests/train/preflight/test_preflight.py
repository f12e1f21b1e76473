from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.toy import toy_examples, toy_labels, toy_model_config
from tests.train.parts import make_splits, toy_config
from textmill.core.types import Example
from textmill.encode.config import EncodeConfig
from textmill.model.build import build
from textmill.order.config import OrderConfig
from textmill.train.preflight.preflight import Preflight, PreflightLimits, look_over
from textmill.train.preflight.wiring import probe_wiring
from textmill.train.rows import encode_rows

EXAMPLES = toy_examples(160)
ENCODE = EncodeConfig(max_length=64)
LIMITS = PreflightLimits(steps=25, seconds=4.0)


def built(**model: Any):
    return build(toy_model_config(**model), toy_labels(), ENCODE, 0)


def looked_over(
    parts=None,
    examples=EXAMPLES,
    *,
    order: str = "shuffle",
    model: dict[str, Any] | None = None,
    limits: PreflightLimits = LIMITS,
    **train: Any,
) -> Preflight:
    classifier, tokenizer, notes = parts or built(**(model or {}))
    return look_over(
        classifier,
        tokenizer,
        notes,
        make_splits(examples, labels=toy_labels()),
        toy_config(**{"lr": 5e-3, **train}),
        OrderConfig(strategy=order),  # type: ignore[arg-type]
        limits=limits,
    )


def kinds(result: Preflight) -> set[str]:
    return {finding.kind for finding in result.findings}


def probed(parts) -> set[str]:
    classifier, tokenizer, _ = parts
    batch = encode_rows(EXAMPLES[:16], tokenizer, toy_labels()).batch(np.arange(16))
    return {finding.kind for finding in probe_wiring(classifier.eval(), batch, torch.device("cpu")).findings}


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"pooling": "cls"},
        {"pooling": "max"},
        {"pooling": "last"},
        {"pooling": "flatten"},
        {"head": "linear"},
        {"activation": "relu"},
        {"activation": "tanh"},
    ],
)
def test_a_sound_model_has_no_findings(model: dict[str, Any]) -> None:
    result = looked_over(model=model)
    assert result.findings == ()
    assert result.numbers["first_loss"] == pytest.approx(result.numbers["expected_first_loss"], abs=0.3)
    assert json.dumps(result.as_json(), allow_nan=False)
    assert [table.title for table in result.as_tables()] == [f"Preflight ({result.seconds:.1f} s)"]


@pytest.mark.parametrize("order", ["ordered", "balanced", "competence", "random-subset"])
def test_orders_that_mix_the_classes_have_no_findings(order: str) -> None:
    assert looked_over(order=order).findings == ()


def test_several_labels_a_row_have_no_findings() -> None:
    both = [Example(e.id, e.text, e.labels if n % 3 else ()) for n, e in enumerate(EXAMPLES)]
    classifier, tokenizer, notes = build(toy_model_config(), toy_labels(), ENCODE, 0, "multilabel")
    result = look_over(
        classifier,
        tokenizer,
        notes,
        make_splits(both, labels=toy_labels()),
        toy_config(lr=5e-3),
        OrderConfig(),
        is_multilabel=True,
        limits=LIMITS,
    )
    assert result.findings == ()
    assert result.numbers["expected_first_loss"] == pytest.approx(0.6931, abs=1e-4)


def test_nothing_is_left_behind() -> None:
    classifier, tokenizer, _ = parts = built()
    before = {name: weight.clone() for name, weight in classifier.state_dict().items()}
    numbers, threads = torch.get_rng_state(), torch.get_num_threads()
    tokenizer_file = tokenizer.json_bytes
    looked_over(parts, lr=0.5)
    assert all(torch.equal(weight, before[name]) for name, weight in classifier.state_dict().items())
    assert all(weight.grad is None for weight in classifier.parameters())
    assert not classifier.training
    assert torch.equal(torch.get_rng_state(), numbers)
    assert torch.get_num_threads() == threads
    assert tokenizer.json_bytes == tokenizer_file


def test_a_rate_that_throws_the_weights_about_is_found_with_one_that_works() -> None:
    found = {finding.kind: finding for finding in looked_over(lr=0.1).findings}
    assert set(found) == {"lr_high", "lr_too_large"}
    assert found["lr_too_large"].level == "error"
    assert found["lr_too_large"].fix == "Set train.lr = 0.01."


def test_a_rate_that_moves_nothing_is_found_with_one_that_works() -> None:
    found = {finding.kind: finding for finding in looked_over(lr=1e-6).findings}
    assert set(found) == {"lr_low", "lr_too_small"}
    assert "at 0.0001" in found["lr_too_small"].message or "at 1e-05" in found["lr_too_small"].message


def test_a_frozen_encoder_is_found() -> None:
    parts = built()
    parts[0].encoder.requires_grad_(False)
    assert "frozen_encoder" in probed(parts)


def test_a_frozen_head_is_found() -> None:
    parts = built()
    parts[0].head.requires_grad_(False)
    assert "frozen_head" in probed(parts)


def test_a_model_frozen_as_a_whole_cannot_learn() -> None:
    parts = built()
    parts[0].requires_grad_(False)
    assert {"frozen_encoder", "frozen_head"} <= kinds(looked_over(parts))


class Meddled(nn.Module):
    """An encoder between which and the classifier something went wrong."""

    def __init__(self, encoder: nn.Module, fault: str) -> None:
        super().__init__()
        self.inner, self.fault = encoder, fault
        self.config = encoder.config

    def get_input_embeddings(self) -> nn.Module:
        return self.inner.get_input_embeddings()

    def forward(self, input_ids, attention_mask, token_type_ids=None, position_ids=None):
        if self.fault == "inverted mask":
            attention_mask = 1 - attention_mask
        if self.fault == "lost mask":
            attention_mask = torch.ones_like(attention_mask)
        if self.fault == "lost ids":
            input_ids = torch.full_like(input_ids, 7)
        output = self.inner(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        if self.fault == "detached":
            output.last_hidden_state = output.last_hidden_state.detach()
        if self.fault == "looks backwards":
            # What a decoder sees at its first token, whatever comes later.
            output.last_hidden_state = self.inner.embeddings(input_ids)
        return output


def meddled(fault: str, **model: Any):
    classifier, tokenizer, notes = built(**model)
    classifier.encoder = Meddled(classifier.encoder, fault)
    return classifier, tokenizer, notes


@pytest.mark.parametrize(
    ("fault", "model", "kind"),
    [
        ("inverted mask", {}, "padding"),
        ("lost mask", {}, "padding"),
        ("lost ids", {}, "blind"),
        ("detached", {}, "frozen_encoder"),
        ("looks backwards", {"pooling": "cls"}, "same_answer"),
    ],
)
def test_a_fault_between_tokenizer_and_head_is_found(fault: str, model: dict[str, Any], kind: str) -> None:
    assert kind in probed(meddled(fault, **model))


def test_weights_that_are_not_numbers_are_found_and_stop_the_rest() -> None:
    parts = built()
    with torch.no_grad():
        next(parts[0].encoder.parameters())[3, 3] = torch.nan
    assert kinds(looked_over(parts)) == {"not_finite"}


def test_a_head_far_too_large_is_found_by_the_first_loss() -> None:
    parts = built()
    with torch.no_grad():
        for weight in parts[0].head.parameters():
            weight.mul_(30)
    assert "first_loss" in probed(parts)


def test_a_head_whose_units_are_dead_is_found() -> None:
    parts = built(activation="relu")
    with torch.no_grad():
        parts[0].head.layers[1].bias.fill_(-100)
    assert "dead_units" in probed(parts)


def test_batches_of_one_class_are_found_under_an_order_that_makes_them() -> None:
    # label-sorted is the control arm for exactly this fault.
    found = [f for f in looked_over(order="label-sorted").findings if f.kind == "one_class_batches"]
    assert len(found) == 1
    assert "label-sorted" in found[0].message
    assert "shuffle" in found[0].fix


def test_a_file_sorted_by_label_is_no_fault_where_the_order_shuffles() -> None:
    by_label = sorted(EXAMPLES, key=lambda example: example.labels)
    result = looked_over(examples=by_label)
    assert result.findings == ()
    assert result.numbers["file_order"] < 0.05


def test_labels_that_have_nothing_to_do_with_the_texts_are_still_learnt_by_heart() -> None:
    # One batch can be learnt whatever its labels: that is the audit's finding (no_signal), not this one's.
    swapped = [Example(e.id, e.text, (toy_labels()[(n // 3) % 2],)) for n, e in enumerate(EXAMPLES)]
    assert "cannot_learn" not in kinds(looked_over(examples=swapped))


def test_a_model_whose_hidden_vectors_are_constant_cannot_learn() -> None:
    parts = built()
    for module in parts[0].encoder.modules():
        if isinstance(module, nn.LayerNorm):
            module.requires_grad_(False)
            module.weight.data.zero_()
    result = looked_over(parts, limits=PreflightLimits(steps=8, seconds=2.0))
    assert {"same_answer", "cannot_learn"} <= kinds(result)
