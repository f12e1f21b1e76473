"""What a rescue does when it was cut off between its attempts, or goes on with something else."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from tests.toy import toy_examples
from tests.train.parts import Said, make_splits, toy_splits
from tests.train.test_rescue import rescue
from textmill.core.errors import DataError, ProjectError, TrainingGaveUp
from textmill.model import files
from textmill.train.attempt import load_attempts, load_identity, save_attempts
from textmill.train.hooks import read_events
from textmill.train.result import load_result

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rescued(tmp_path_factory):
    """A run whose second attempt learnt: its folder and its result."""
    run_dir = tmp_path_factory.mktemp("rescued")
    return run_dir, rescue(run_dir, lr=0.1)


@pytest.fixture(scope="module")
def exhausted(tmp_path_factory):
    """A run whose one attempt ended by an alarm, and whose budget has no room for another."""
    run_dir = tmp_path_factory.mktemp("exhausted")
    with pytest.raises(TrainingGaveUp):
        rescue(run_dir, lr=0.1, max_cost=1.0)
    return run_dir


def copy_of(run_dir, folder):
    shutil.copytree(run_dir, folder / "run")
    return folder / "run"


def same_weights(one, other):
    ours, theirs = files.load(one)[0].state_dict(), files.load(other)[0].state_dict()
    return all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


@pytest.mark.parametrize("status", ["running", "healthy"])
def test_a_kill_before_the_winner_is_adopted_loses_nothing(tmp_path, rescued, status):
    run_dir, whole = rescued
    copy = copy_of(run_dir, tmp_path)
    (copy / "training.json").unlink()
    shutil.rmtree(copy / "model")
    first, second = load_attempts(copy)
    save_attempts(copy, [first, replace(second, status=status)], load_identity(copy))
    result = rescue(copy, lr=0.1, resume=True)
    assert result.best_metric == whole.best_metric
    assert (result.steps, result.epochs) == (whole.steps, whole.epochs)
    assert [a["status"] for a in result.attempts] == ["alarm", "healthy"]
    assert load_result(copy) is not None
    assert same_weights(copy / "model", run_dir / "model")
    assert len(read_events(copy / "attempts/02/events.jsonl")) == len(
        read_events(run_dir / "attempts/02/events.jsonl")
    )


def test_more_epochs_let_a_rescued_run_go_on(tmp_path, rescued):
    run_dir, whole = rescued
    copy = copy_of(run_dir, tmp_path)
    result = rescue(copy, lr=0.1, resume=True, epochs=3)
    assert result.epochs == 3
    assert result.new_steps == result.steps - whole.steps > 0
    with pytest.raises(ProjectError, match="steps left"):
        rescue(copy, lr=0.1, resume=True, epochs=3)


def test_other_data_or_settings_are_refused_between_two_attempts_too(tmp_path, exhausted):
    copy = copy_of(exhausted, tmp_path)
    fewer = toy_splits(640, 64)
    other = make_splits(fewer.train[5:], fewer.valid, labels=fewer.labels)
    with pytest.raises(DataError, match="640 rows before, 635 now"):
        rescue(copy, lr=0.1, splits=other, resume=True)
    with pytest.raises(ProjectError, match=r"train\.lr must not change"):
        rescue(copy, lr=0.01, resume=True)
    assert len(load_attempts(copy)) == 1


def test_a_larger_budget_lets_an_exhausted_run_go_on(tmp_path, exhausted):
    copy = copy_of(exhausted, tmp_path)
    result = rescue(copy, lr=0.1, max_cost=3.0, resume=True)
    assert [a["status"] for a in result.attempts] == ["alarm", "healthy"]


def test_the_best_healthy_state_is_kept_although_a_later_attempt_ended_well(tmp_path, rescued):
    run_dir, _ = rescued
    copy = copy_of(run_dir, tmp_path)
    (copy / "training.json").unlink()
    first, second = load_attempts(copy)
    better = {"valid_loss": 1e-9, "accuracy": 1.0, "f1_macro": 1.0}
    worse = {"valid_loss": 0.5, "accuracy": 0.8, "f1_macro": 0.8}
    tried = [replace(first, best=better, best_step=20, best_epochs=1), replace(second, best=worse)]
    save_attempts(copy, tried, load_identity(copy))
    said = Said()
    result = rescue(copy, lr=0.1, resume=True, progress=said)
    assert (result.best_metric, result.best_step) == (1.0, 20)
    assert any("attempt 1" in message and "1.000" in message for message in said.messages)


def test_a_training_that_flies_apart_only_where_it_is_validated_is_rescued(tmp_path):
    class Poisoned:
        """Breaks the weights after the last step of an epoch, as an overflow in them would."""

        has_struck = False

        def __init__(self, classifier):
            self.weights = classifier

        def on_step(self, event):
            if event.step == 20 and not self.has_struck:
                self.has_struck = True
                with torch.no_grad():
                    next(self.weights.head.parameters()).fill_(float("nan"))

        def on_evaluation(self, event):
            pass

        def close(self):
            pass

    result = rescue(tmp_path, lr=3e-3, warmup_share=0.1, poisoned_by=Poisoned, evaluate_every=20)
    first, second = load_attempts(tmp_path)
    assert first.verdict is not None
    assert (first.verdict.kind, second.status) == ("not-a-number", "healthy")
    assert result.best_metric is not None


def test_weights_that_are_no_numbers_get_no_cure(tmp_path):
    from tests.toy import toy_classifier

    splits = make_splits(toy_examples(64))
    classifier, _ = toy_classifier(splits.labels)
    with torch.no_grad():
        next(classifier.head.parameters()).fill_(float("nan"))
    with pytest.raises(TrainingGaveUp, match="not-a-number after 1 attempt"):
        rescue(tmp_path, splits=splits, classifier=classifier)
    assert json.loads((tmp_path / "attempts.json").read_text())["attempts"][0]["steps"] == 0
