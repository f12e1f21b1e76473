import logging

import pytest
import torch
from transformers import BertForTokenClassification, Trainer

from tests.integrations.parts import rows, tiny_bert, trainer_for
from textmill.integrations.transformers import CollapseGuard, OrderedSampler


@pytest.mark.slow
def test_a_training_that_collapses_is_stopped_with_its_diagnosis(tmp_path, caplog):
    guard = CollapseGuard()
    trainer = trainer_for(tmp_path, [guard], learning_rate=0.1)
    with caplog.at_level(logging.WARNING, "textmill.integrations.transformers"):
        trainer.train()
    assert guard.verdict.kind == "never-left"
    assert trainer.state.global_step == guard.verdict.step <= 40
    assert guard.verdict.sentence in caplog.text
    assert not trainer.model._forward_hooks


@pytest.mark.slow
def test_a_healthy_training_goes_to_its_end_unchanged(tmp_path):
    guard = CollapseGuard()
    changes = {"gradient_accumulation_steps": 2, "num_train_epochs": 2}
    alone = trainer_for(tmp_path / "alone", [], **changes)
    losses = [alone.train().training_loss]
    watched = trainer_for(tmp_path / "watched", [guard], **changes)  # seeds the generators, as `alone` did
    losses.append(watched.train().training_loss)
    assert losses[0] == losses[1]
    assert watched.state.global_step == 60
    assert guard.verdict.kind == "healthy"
    assert guard.verdict.numbers["rows"] == 12 * 32
    for ours, theirs in zip(watched.model.parameters(), alone.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_without_stops_an_alarm_is_only_told(tmp_path):
    guard = CollapseGuard(stops=False)
    trainer = trainer_for(tmp_path, [guard], learning_rate=0.3, max_steps=45)
    trainer.train()
    assert trainer.state.global_step == 45
    assert guard.verdict.is_alarm


def test_labels_that_do_not_reach_the_model_are_said_and_nothing_breaks(tmp_path, caplog):
    guard = CollapseGuard()
    trainer = trainer_for(tmp_path, [guard], num=64, label_smoothing_factor=0.1)
    trainer.train()
    assert trainer.state.global_step == 4
    assert caplog.text.count("got none and does nothing") == 1
    assert guard.verdict.step == 0


def test_a_model_that_does_not_see_its_input_is_told_before_the_first_step(tmp_path, caplog):
    model = tiny_bert()
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight.zero_()
    trainer = trainer_for(tmp_path, [guard := CollapseGuard()], num=64, model=model)
    trainer.train()
    assert "nothing of the text reaches the head" in caplog.text
    assert guard.verdict.kind == "data-or-wiring"


def test_a_resumed_training_goes_on_with_the_guards_state(tmp_path):
    settings = {"num": 480, "save_strategy": "steps", "save_steps": 26, "max_steps": 30}
    first = CollapseGuard()
    trainer_for(tmp_path, [first], **settings).train()
    second = CollapseGuard()
    trainer = trainer_for(tmp_path, [second], restore_callback_states_from_checkpoint=True, **settings)
    trainer.train(resume_from_checkpoint=True)
    (resumed,) = [c for c in trainer.callback_handler.callbacks if isinstance(c, CollapseGuard)]
    assert resumed.verdict.step == first.verdict.step
    assert resumed.verdict.numbers == pytest.approx(first.verdict.numbers, rel=1e-4)


def test_several_labels_a_row_are_understood(tmp_path):
    model = tiny_bert(num_labels=3, problem_type="multi_label_classification")
    data = rows(128, classes=3)
    for row in data:
        row["labels"] = [float(row["labels"] == kind) for kind in range(3)]
    trainer = trainer_for(tmp_path, [guard := CollapseGuard()], model=model, num_train_epochs=3)
    trainer.train_dataset = data
    trainer.train()
    assert guard.verdict.numbers["constant_loss"] == pytest.approx(0.6365, abs=0.01)


class Recorder(Trainer):
    """Remembers which rows came, in which order they came."""

    sampler: OrderedSampler
    seen: list[int]

    def _get_train_sampler(self, train_dataset=None):
        return self.sampler

    def training_step(self, model, inputs, num_items_in_batch=None):
        self.seen += inputs["input_ids"][:, 0].tolist()
        return super().training_step(model, inputs, num_items_in_batch)


def recorder(folder, sampler, **changes):
    trainer = trainer_for(folder, [], kind=Recorder, num=64, num_train_epochs=2, **changes)
    for number, row in enumerate(trainer.train_dataset):
        row["input_ids"][0] = number  # 64 ids: the number of the row
    trainer.sampler, trainer.seen = sampler, []
    return trainer


def toy_sampler():
    texts = [f"{'good' if row % 2 else 'bad'} " + "word " * (row % 7 + 1) for row in range(64)]
    return OrderedSampler(texts, [row % 2 for row in range(64)], seed=1)


def test_trainer_takes_the_rows_in_the_samplers_order_epoch_by_epoch(tmp_path):
    sampler = toy_sampler()
    trainer = recorder(tmp_path, sampler)
    trainer.train()
    fresh = toy_sampler()
    assert trainer.seen == [*fresh, *fresh]


def test_a_resumed_trainer_goes_on_in_the_same_order(tmp_path):
    whole = recorder(tmp_path / "whole", toy_sampler())
    whole.train()
    changes = {"save_strategy": "steps", "save_steps": 3, "max_steps": 8}
    recorder(tmp_path / "part", toy_sampler(), **changes | {"max_steps": 3}).train()
    again = recorder(tmp_path / "part", toy_sampler(), **changes)
    again.train(resume_from_checkpoint=True)
    assert again.seen == whole.seen[3 * 16 :]


@pytest.mark.parametrize("kind", ["regression", "two numbers", "tokens"])
def test_a_training_without_classes_of_texts_is_left_alone(tmp_path, caplog, kind):
    if kind == "regression":
        model = tiny_bert(num_labels=1, problem_type="regression")
    else:
        numbers = {"num_labels": 2, "problem_type": "regression"}
        model = BertForTokenClassification(tiny_bert().config) if kind == "tokens" else tiny_bert(**numbers)
    trainer = trainer_for(tmp_path, [guard := CollapseGuard()], num=64, model=model)
    if kind == "tokens":
        trainer.train_dataset = [{**row, "labels": [-100, *([1] * 7)]} for row in rows(64)]
    if kind == "two numbers":
        trainer.train_dataset = [{**row, "labels": [0.5, 2.0]} for row in rows(64)]
    trainer.train()
    assert trainer.state.global_step == trainer.state.max_steps
    assert "does nothing" in caplog.text
    assert not guard.verdict.is_alarm
