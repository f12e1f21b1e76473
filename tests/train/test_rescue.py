import json

import numpy as np
import pytest
import torch

from tests.toy import toy_classifier, toy_examples
from tests.train.parts import PulledPlug, PulledPlugError, Recorder, Said, make_splits, toy_config, toy_splits
from textmill.core.errors import TrainingGaveUp
from textmill.model import files
from textmill.order.config import OrderConfig
from textmill.train.attempt import load_attempts
from textmill.train.cures.config import RescueConfig
from textmill.train.guard.config import GuardConfig
from textmill.train.hooks import read_events
from textmill.train.rescue import constant_f1, train_with_rescue
from textmill.train.result import load_result

STUCK = {"lr": 0.03, "batch_size": 16, "epochs": 2, "warmup_share": 0.0}
"""Of these the first attempt ends at one answer for every text; a tenth of the learning rate learns."""


def rescue(
    run_dir,
    *,
    splits=None,
    ladder=("lower-lr",),
    max_cost=3.0,
    resume=False,
    hooks=(),
    progress=None,
    classifier=None,
    poisoned_by=None,
    **changes,
):
    splits = splits or toy_splits(640, 64)
    fresh, tokenizer = toy_classifier(splits.labels)
    classifier = classifier or fresh
    hooks = [*hooks, poisoned_by(classifier)] if poisoned_by else hooks
    return train_with_rescue(
        classifier,
        tokenizer,
        splits,
        toy_config(**{**STUCK, **changes}),
        OrderConfig(),
        run_dir,
        guard=GuardConfig(),
        rescue=RescueConfig(ladder=ladder, max_cost=max_cost),
        resume=resume,
        progress=progress or Said(),
        hooks=hooks,
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run that was stuck and got away: its folder, its result, what was said."""
    run_dir, said = tmp_path_factory.mktemp("saved"), Said()
    return run_dir, rescue(run_dir, progress=said), said


@pytest.mark.slow
def test_a_healthy_run_is_one_attempt(tmp_path):
    result = rescue(tmp_path, lr=3e-3, warmup_share=0.1)
    assert [attempt.status for attempt in load_attempts(tmp_path)] == ["healthy"]
    assert len(result.attempts) == 1
    assert not (tmp_path / "attempts").exists()


@pytest.mark.slow
def test_a_stuck_run_gets_away_and_every_attempt_is_kept(saved):
    run_dir, result, said = saved
    first, second = load_attempts(run_dir)
    assert (first.status, second.status) == ("alarm", "healthy")
    assert first.verdict is not None
    assert first.verdict.kind == "never-left"
    assert second.cure == "lower-lr"
    assert second.probe_steps > 0
    assert 1e-4 < second.changes["train.lr"] <= 0.03 / 4
    assert result.best_metric is not None
    assert result.best_metric > 0.9
    assert [attempt["number"] for attempt in result.attempts] == [1, 2]
    kept = load_result(run_dir)
    assert kept is not None
    assert (kept.best_metric, len(kept.attempts)) == (result.best_metric, 2)
    assert first.steps == len([e for e in read_events(run_dir / "events.jsonl") if e["event"] == "step"])
    assert min(first.rows, first.tokens, first.seconds) > 0
    told = [message.split(" ")[:2] for message in said.messages]
    assert told[:3] == [["Attempt", "1"], ["Measuring", "which"], ["Attempt", "2"]]
    assert "has helped" in said.messages[-1]


@pytest.mark.slow
def test_the_state_that_is_kept_is_that_of_the_attempt_that_helped(saved):
    run_dir, _, _ = saved
    ours, _ = files.load(run_dir / "model")
    theirs, _ = files.load(run_dir / "attempts" / "02" / "model")
    for name, tensor in ours.state_dict().items():
        assert torch.equal(tensor, theirs.state_dict()[name])


@pytest.mark.slow
@pytest.mark.parametrize("attempt", [1, 2])
def test_a_killed_run_goes_on_in_the_right_attempt(tmp_path, saved, attempt):
    run_dir, whole, _ = saved

    class Plug(PulledPlug):
        """Pulled at a step of one attempt."""

        begun = 0

        def on_step(self, event):
            self.begun += event.step == 1
            if self.begun == attempt:
                super().on_step(event)

    with pytest.raises(PulledPlugError):
        rescue(tmp_path, hooks=[Plug(20)], checkpoint_every=7)
    result = rescue(tmp_path, resume=True, checkpoint_every=7)
    assert result.best_metric == whole.best_metric
    for mine, theirs in zip(load_attempts(tmp_path), load_attempts(run_dir), strict=True):
        assert (mine.steps, mine.rows, mine.cure, mine.best) == (
            theirs.steps,
            theirs.rows,
            theirs.cure,
            theirs.best,
        )
    for folder in (".", "attempts/02"):
        mine_events = [e["loss"] for e in read_events(tmp_path / folder / "events.jsonl") if "loss" in e]
        assert mine_events == [
            e["loss"] for e in read_events(run_dir / folder / "events.jsonl") if "loss" in e
        ]


@pytest.mark.slow
def test_without_a_ladder_the_diagnosis_is_the_end(tmp_path):
    recorder = Recorder()
    with pytest.raises(
        TrainingGaveUp, match=r"never-left after 1 attempt .*No attempt.*rescue\.ladder"
    ) as caught:
        rescue(tmp_path, ladder=(), hooks=[recorder])
    assert caught.value.exit_code == 4
    assert [attempt.status for attempt in load_attempts(tmp_path)] == ["alarm"]
    assert len(recorder.steps) == load_attempts(tmp_path)[0].steps


@pytest.mark.slow
def test_no_attempt_begins_that_the_budget_has_no_room_for(tmp_path):
    with pytest.raises(TrainingGaveUp, match=r"rescue\.max_cost"):
        rescue(tmp_path, max_cost=1.0)
    assert len(load_attempts(tmp_path)) == 1
    with pytest.raises(TrainingGaveUp):
        rescue(tmp_path, max_cost=1.0, resume=True)
    assert len(load_attempts(tmp_path)) == 1
    assert json.loads((tmp_path / "attempts.json").read_text())["format"] == 1


@pytest.mark.slow
def test_strong_smoothing_is_no_collapse(tmp_path):
    # The floor of the loss is 0.562 here, where ln 2 is 0.693.
    rescue(tmp_path, lr=3e-3, warmup_share=0.1, label_smoothing=0.5)
    (only,) = load_attempts(tmp_path)
    assert only.status == "healthy"
    assert only.best["f1_macro"] > 0.9


@pytest.mark.slow
def test_weights_of_rare_classes_under_smoothing_do_not_make_the_rare_class_the_answer(tmp_path):
    examples = [e for row, e in enumerate(toy_examples(2000)) if row % 2 == 0 or row % 50 == 1]
    splits = make_splits(examples[:800], examples[800:])
    changes = {"lr": 1.5e-3, "warmup_share": 0.1, "epochs": 4}
    rescue(tmp_path, splits=splits, label_smoothing=0.1, class_weights="balanced", **changes)
    (only,) = load_attempts(tmp_path)
    assert only.status == "healthy"
    assert only.best["f1_macro"] > 0.7, "one answer for all is at 0.49"


def test_the_bar_of_a_healthy_state_is_the_best_constant_answer():
    splits = toy_splits(8, 40)
    assert constant_f1(splits) == pytest.approx(1 / 3)  # of two equal classes: 2 x 0.5 / 1.5 / 2
    assert np.isfinite(constant_f1(toy_splits(8, 0)))
