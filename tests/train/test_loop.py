import json
from typing import get_args

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.toy import toy_classifier, toy_examples
from tests.train.parts import Recorder, make_splits, toy_config, toy_splits, toy_train
from textmill.core.errors import DataError, ModelError, ProjectError, TrainingGaveUp
from textmill.model import files
from textmill.model.predictor import TorchPredictor
from textmill.order.config import OrderConfig, Strategy
from textmill.order.difficulty_file import load_difficulty
from textmill.order.sampler import BatchPlan
from textmill.train.feed import plan_steps
from textmill.train.guard.config import GuardConfig
from textmill.train.hooks import read_events
from textmill.train.loop import train
from textmill.train.result import load_result


def test_a_toy_task_is_learnt_and_the_best_state_answers_from_its_folder(tmp_path):
    splits = toy_splits(120, 40)
    result = toy_train(tmp_path, splits, epochs=6, lr=5e-3)
    assert result.best_metric is not None
    assert result.best_metric > 0.9
    predictor = TorchPredictor(*files.load(tmp_path / "model"))
    scores = predictor.scores([example.text for example in splits.valid])
    answers = [splits.labels[index] for index in scores.argmax(axis=1)]
    assert np.mean([a == e.labels[0] for a, e in zip(answers, splits.valid, strict=True)]) > 0.9


def test_the_same_seed_gives_the_same_losses_and_another_seed_others(tmp_path):
    runs = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        recorder = Recorder()
        toy_train(tmp_path / name, seed=seed, hooks=[recorder])
        runs.append([step.loss for step in recorder.steps])
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_training_leaves_global_random_state_and_threads_as_they_were(tmp_path):
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    toy_train(tmp_path, epochs=1)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(("batches", "steps"), [(7, 2), (3, 1), (8, 2), (1, 1)])
def test_the_tail_of_accumulation_is_a_step(batches, steps):
    plan = BatchPlan(np.full(batches * 4, 10), max_tokens=40, max_rows=4)
    assert [len(step) for step in plan_steps(plan, 0, 4)][:-1] == [4] * (steps - 1)
    assert len(plan_steps(plan, 0, 4)) == steps


def test_accumulation_that_exceeds_an_epoch_still_makes_a_step_each_epoch(tmp_path):
    recorder = Recorder()
    result = toy_train(tmp_path, accumulate=100, hooks=[recorder])
    assert (result.steps, result.epochs) == (2, 2)
    assert [step.rows for step in recorder.steps] == [64, 64]


def test_33_rows_run_and_the_validation_loss_is_the_mean_over_rows(tmp_path):
    examples = toy_examples(66)
    splits = make_splits(examples[:33], examples[33:])
    recorder = Recorder()
    toy_train(tmp_path, splits, batch_size=32, epochs=1, hooks=[recorder])
    classifier, tokenizer = files.load(tmp_path / "model")
    scores = TorchPredictor(classifier, tokenizer).scores([e.text for e in splits.valid])
    truth = torch.tensor([splits.labels.index(e.labels[0]) for e in splits.valid])
    expected = functional.nll_loss(torch.from_numpy(scores).double().log(), truth)
    assert recorder.evaluations[-1].valid_loss == pytest.approx(float(expected), abs=1e-6)


def test_the_event_log_has_a_line_a_step_and_a_line_an_evaluation(tmp_path):
    recorder = Recorder()
    result = toy_train(tmp_path, evaluate_every=3, hooks=[recorder])
    events = read_events(tmp_path / "events.jsonl")
    steps = [e for e in events if e["event"] == "step"]
    assert [e["step"] for e in steps] == list(range(1, result.steps + 1))
    assert {"step", "epoch", "loss", "lr", "grad_norm", "rows", "tokens", "seconds"} <= steps[0].keys()
    assert [e["step"] for e in events if e["event"] == "evaluation"] == [e.step for e in recorder.evaluations]
    assert sum(int(str(e["rows"])) for e in steps) == 2 * 64
    assert recorder.evaluations[-1].step == result.steps


def test_the_result_is_kept_with_the_run(tmp_path):
    result = toy_train(tmp_path, epochs=1)
    assert load_result(tmp_path) == result
    assert json.loads((tmp_path / "training.json").read_text())["max_tokens"] == result.max_tokens
    assert 0 <= result.padding_share < 0.5
    assert result.rows_per_s > 0


def test_a_later_state_that_is_only_equal_does_not_replace_the_best(tmp_path):
    recorder = Recorder()
    # A learning rate of nearly nothing: every evaluation gives the same accuracy.
    result = toy_train(tmp_path, lr=1e-12, metric="accuracy", epochs=3, hooks=[recorder])
    assert [e.is_best for e in recorder.evaluations] == [True, False, False]
    assert result.best_step == recorder.evaluations[0].step


def test_patience_ends_a_run_without_gain(tmp_path):
    result = toy_train(tmp_path, lr=1e-12, metric="accuracy", epochs=9, patience=2)
    assert (result.epochs, result.stopped_early) == (3, True)


def test_the_classifier_holds_the_best_state_afterwards(tmp_path):
    splits = toy_splits()
    classifier, tokenizer = toy_classifier(splits.labels)
    config = toy_config(lr=1e-12, metric="accuracy", epochs=3)
    train(classifier, tokenizer, splits, config, OrderConfig(), tmp_path)
    kept, _ = files.load(tmp_path / "model")
    assert all(torch.equal(a, kept.state_dict()[name]) for name, a in classifier.state_dict().items())
    assert not classifier.training


def test_without_validation_rows_the_last_state_is_kept(tmp_path):
    result = toy_train(tmp_path, make_splits(toy_examples(32)))
    assert result.best_metric is None
    assert result.best_step == result.steps
    assert (tmp_path / "model" / "textmill.json").exists()


def test_a_loss_that_is_not_a_number_ends_the_run_and_keeps_the_best_state(tmp_path):
    class Poison(Recorder):
        """Puts an infinity into the classifier after the first epoch."""

        def on_evaluation(self, event):
            with torch.no_grad():
                next(classifier.head.parameters()).fill_(torch.inf)

    splits = toy_splits()
    classifier, tokenizer = toy_classifier(splits.labels)
    with pytest.raises(TrainingGaveUp, match=r"step \d+ with learning rate .*model.*train\.lr") as caught:
        train(classifier, tokenizer, splits, toy_config(), OrderConfig(), tmp_path, hooks=[Poison()])
    assert caught.value.exit_code == 4
    kept, _ = files.load(tmp_path / "model")
    assert all(torch.isfinite(tensor).all() for tensor in kept.state_dict().values())
    assert all(np.isfinite(e["loss"]) for e in read_events(tmp_path / "events.jsonl") if "loss" in e)


def test_a_used_run_folder_is_refused_and_left_alone(tmp_path):
    toy_train(tmp_path, epochs=1)
    before = (tmp_path / "events.jsonl").read_bytes()
    with pytest.raises(ProjectError, match="--resume"):
        toy_train(tmp_path, epochs=1)
    assert (tmp_path / "events.jsonl").read_bytes() == before


def test_unusable_input_is_refused_before_the_run_folder_is_touched(tmp_path):
    examples = toy_examples(8)
    run_dir = tmp_path / "run"
    with pytest.raises(DataError, match="rows to train on"):
        toy_train(run_dir, make_splits([], examples))
    with pytest.raises(DataError, match="two classes"):
        toy_train(run_dir, make_splits(examples[::2], examples[::2]))
    classifier, tokenizer = toy_classifier(("class0", "other"))
    with pytest.raises(ModelError, match="classes"):
        train(classifier, tokenizer, toy_splits(), toy_config(), OrderConfig(), run_dir)
    assert not run_dir.exists()


def test_bf16_on_request_trains_on_a_cpu(tmp_path):
    result = toy_train(tmp_path, epochs=1, precision="bf16")
    assert result.precision == "bf16"


def test_tensorboard_files_are_written_on_request(tmp_path):
    pytest.importorskip("tensorboard")
    toy_train(tmp_path, epochs=1, tensorboard=True)
    assert list((tmp_path / "tensorboard").glob("events.*"))


def test_an_ordered_training_begins_with_short_texts_and_keeps_its_difficulties(tmp_path):
    recorder = Recorder()
    order = OrderConfig(strategy="ordered", ordered_share=0.4)
    toy_train(tmp_path, toy_splits(96, 32), epochs=1, max_rows=8, hooks=[recorder], order=order)
    per_row = [step.tokens / step.rows for step in recorder.steps]
    assert np.mean(per_row[:3]) < 0.8 * np.mean(per_row)
    assert load_difficulty(tmp_path / "difficulty.parquet").seen.epochs.tolist() == [1.0] * 96


@pytest.mark.parametrize("strategy", get_args(Strategy))
def test_every_strategy_trains(tmp_path, strategy):
    result = toy_train(tmp_path, epochs=1, order=OrderConfig(strategy=strategy))
    assert result.steps > 0


def test_an_alarm_of_the_guard_ends_the_training_with_its_diagnosis(tmp_path):
    with pytest.raises(TrainingGaveUp, match="never-left at step") as caught:
        toy_train(
            tmp_path, toy_splits(640, 32), lr=0.03, batch_size=16, warmup_share=0.0, guard=GuardConfig()
        )
    assert caught.value.exit_code == 4
    last = read_events(tmp_path / "events.jsonl")[-1]
    assert (last["event"], last["kind"], last["is_alarm"]) == ("verdict", "never-left", True)


def test_the_gradient_is_told_in_two_parts(tmp_path):
    recorder = Recorder()
    toy_train(tmp_path, epochs=1, hooks=[recorder])
    for step in recorder.steps:
        assert min(step.encoder_norm, step.head_norm) > 0
        assert step.grad_norm == pytest.approx((step.encoder_norm**2 + step.head_norm**2) ** 0.5)


def test_a_model_that_the_text_does_not_reach_is_refused_before_the_first_step(tmp_path):
    splits = toy_splits()
    classifier, tokenizer = toy_classifier(splits.labels)
    with torch.no_grad():
        classifier.head.layers[1].weight.zero_()
        classifier.head.layers[7].bias[0] = 0.5
    with pytest.raises(TrainingGaveUp, match="data-or-wiring at step 0"):
        train(classifier, tokenizer, splits, toy_config(), OrderConfig(), tmp_path, guard=GuardConfig())
    assert [event["event"] for event in read_events(tmp_path / "events.jsonl")] == ["verdict"]
