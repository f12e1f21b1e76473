import json
import math

import pytest
import torch

from tests.train.guard.parts import Imagined, new_guard
from textmill.train.loss import Loss


def healthy_start(guard, **changes):
    run = Imagined(guard, **changes)
    run.go(4)
    return run


def test_the_constant_answer_is_an_alarm_within_40_steps_of_16():
    run = healthy_start(new_guard(labels=("neg", "pos")))
    alarm = run.go(36, bias=0.5, noise=0.02, encoder=0.01)
    assert alarm is not None
    assert alarm.kind == "never-left"
    assert alarm.step <= 40
    assert "'pos'" in alarm.sentence
    assert alarm.numbers["constant_loss"] == pytest.approx(math.log(2), abs=0.01)


@pytest.mark.parametrize("batch", [4, 16, 64, 512])
def test_the_rows_until_an_alarm_hardly_depend_on_the_batch_size(batch):
    run = healthy_start(new_guard(), batch=batch)
    alarm = run.go(400, noise=0.02, encoder=0.01)
    assert alarm is not None
    assert 480 <= alarm.step * batch <= max(640, 24 * batch)


def test_a_slow_start_is_told_but_is_no_alarm():
    run = Imagined(new_guard())
    assert run.go(300) is None
    verdict = run.guard.verdict()
    assert verdict.kind == "slow"
    assert "no collapse" in verdict.sentence


def test_learning_is_healthy_also_with_a_gradient_that_has_nearly_gone():
    run = healthy_start(new_guard())
    assert run.go(60, knows=1.0, noise=1.0) is None
    assert run.go(200, knows=12.0, noise=1.0, encoder=1e-4, head=1e-2) is None
    assert run.guard.verdict().kind == "healthy"


def test_first_gradients_that_were_inflated_do_not_make_an_encoder_look_starved():
    # As class weights do at first: a fifth of that is still nearly as much as the head gets.
    run = Imagined(new_guard(labels=("a", "b")))
    run.go(4, noise=0.3, encoder=5.0)
    assert run.go(60, bias=1.0, noise=0.2, encoder=0.9) is None


def test_logits_that_begin_to_differ_more_than_ever_are_no_alarm():
    run = Imagined(new_guard())
    run.go(4, encoder=1.0)
    assert all(run.go(4, noise=0.05 + 0.005 * part, encoder=0.13) is None for part in range(20))
    falling = Imagined(new_guard())
    falling.go(4, encoder=1.0)
    assert any(falling.go(4, noise=0.15 - 0.005 * part, encoder=0.13) for part in range(20))


def test_a_fall_after_learning_has_a_kind_of_its_own():
    run = healthy_start(new_guard())
    run.go(60, knows=3.0, noise=1.0)
    alarm = run.go(60, noise=0.02, encoder=0.01)
    assert alarm is not None
    assert alarm.kind == "collapsed-after-learning"
    assert alarm.step <= 64 + 40


def test_an_alarm_is_told_once_and_taken_back_only_by_learning():
    guard = new_guard()
    run = healthy_start(guard)
    assert run.go(40, noise=0.02, encoder=0.01) is not None
    assert run.go(40, noise=0.1) is None
    assert guard.verdict().is_alarm
    run.go(60, knows=2.0, noise=1.0)
    assert guard.verdict().kind == "healthy"


def test_a_moment_of_the_constant_answer_passes():
    run = healthy_start(new_guard())
    assert run.go(18, noise=0.02, encoder=0.01) is None
    assert run.go(100, knows=1.0, noise=0.5) is None


def test_imbalance_is_told_with_its_own_loss_and_not_ln_2():
    run = healthy_start(new_guard(labels=("rare", "usual")), shares=(1 / 21, 20 / 21))
    alarm = run.go(60, bias=3.0, noise=0.02, encoder=0.02)
    assert alarm is not None
    assert alarm.kind == "imbalance"
    assert alarm.numbers["constant_loss"] < 0.3
    assert "'usual'" in alarm.sentence
    assert "ln 2 = 0.693" in alarm.sentence


def test_the_majority_for_a_while_is_no_alarm():
    run = healthy_start(new_guard(), shares=(1 / 21, 20 / 21))
    assert run.go(200, bias=3.0, noise=0.3, encoder=0.5) is None
    assert run.guard.verdict().kind == "imbalance"


@pytest.mark.parametrize(
    ("loss", "encoder", "named"),
    [(math.nan, 1.0, "the loss"), (0.7, math.inf, "encoder's gradient")],
)
def test_what_is_not_a_number_is_an_alarm_at_once_and_named(loss, encoder, named):
    guard = new_guard()
    values = guard.measure(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])).tolist()
    verdict = guard.observe(7, loss, values, encoder, 1.0, 1e-3)
    assert verdict is not None
    assert (verdict.kind, verdict.is_alarm, verdict.step) == ("not-a-number", True, 7)
    assert named in verdict.sentence
    json.dumps(guard.state(), allow_nan=False)


def test_a_logit_that_is_not_a_number_is_found_without_its_loss():
    guard = new_guard()
    logits = torch.tensor([[0.0, math.nan], [0.0, 1.0]])
    verdict = guard.observe(1, 0.7, guard.measure(logits, torch.tensor([0, 1])).tolist(), 1.0, 1.0, 1e-3)
    assert verdict is not None
    assert verdict.kind == "not-a-number"


def test_rows_sorted_by_label_are_an_alarm_when_the_shares_are_known():
    guard = new_guard(labels=("a", "b"), label_shares=(0.5, 0.5))
    alarm = Imagined(guard).go(20, knows=1.0, label=0)
    assert alarm is not None
    assert alarm.kind == "data-or-wiring"
    assert "sorted by label" in alarm.sentence


def test_one_class_for_long_is_only_told_when_it_may_be_all_there_is():
    guard = new_guard()
    assert Imagined(guard).go(60, knows=1.0, label=0) is None
    assert guard.verdict().kind == "data-or-wiring"


def test_rare_classes_in_small_batches_are_not_sorted_rows():
    guard = new_guard(label_shares=(0.02, 0.98))
    assert Imagined(guard, shares=(0.02, 0.98), batch=4).go(400, bias=2.0, noise=0.3) is None
    assert guard.verdict().kind != "data-or-wiring"


def test_the_probe_finds_a_model_that_does_not_see_its_input():
    verdict = new_guard().probe(torch.tensor([[0.3, -0.2]] * 8) + 1e-8 * torch.randn(8, 1))
    assert verdict is not None
    assert (verdict.kind, verdict.is_alarm) == ("data-or-wiring", True)
    assert "attention mask" in verdict.sentence
    assert new_guard().probe(0.01 * torch.randn(8, 2, generator=torch.Generator().manual_seed(0))) is None


def test_a_frozen_encoder_is_not_a_vanished_gradient():
    run = Imagined(new_guard())
    assert run.go(200, encoder=0.0) is None
    run.go(60, knows=1.0, encoder=0.0)
    assert run.guard.verdict().kind == "healthy"


def test_weights_that_make_a_class_the_cheapest_answer_are_named():
    guard = new_guard(label_smoothing=0.1, class_weights=(1.0, 50.0), labels=("a", "b"))
    run = healthy_start(guard, loss=Loss(0.1, (1.0, 50.0)))
    alarm = run.go(60, bias=4.0, noise=0.02, encoder=0.01)
    assert alarm is not None
    assert alarm.kind == "imbalance"
    assert "'b'" in alarm.sentence
    assert "class weight is 50 times" in alarm.sentence
    assert "label smoothing 0.1" in alarm.sentence


def test_balanced_weights_make_no_imbalance_of_rare_classes():
    shares = (0.1, 0.9)
    guard = new_guard(class_weights=(5.0, 1 / 1.8))
    alarm = healthy_start(guard, shares=shares, loss=Loss(0.0, (5.0, 1 / 1.8))).go(
        60, noise=0.02, encoder=0.01
    )
    assert alarm is not None
    assert alarm.kind == "never-left"


def test_strong_label_smoothing_is_measured_against_its_own_floor():
    guard = new_guard(label_smoothing=0.5)
    run = healthy_start(guard, loss=Loss(0.5))
    assert run.go(200, knows=1.1, noise=0.1, encoder=0.01) is None
    verdict = guard.verdict()
    assert verdict.kind == "healthy"
    assert verdict.numbers["loss"] > 0.56
    assert verdict.numbers["learnt_share"] > 0.9


def test_a_restored_guard_says_the_same_as_one_that_never_stopped():
    whole, parts = new_guard(), new_guard()
    first, second = Imagined(whole, seed=3), Imagined(parts, seed=3)
    for run in (first, second):
        run.go(30, knows=1.0, noise=0.5)
        run.go(13, noise=0.02, encoder=0.01)
    again = new_guard()
    again.restore(json.loads(json.dumps(parts.state(), allow_nan=False)))
    second.guard = again
    told = [run.go(40, noise=0.02, encoder=0.01) for run in (first, second)]
    assert told[0] is not None
    assert told[0] == told[1]
    assert whole.verdict() == again.verdict()
    assert whole.state() == again.state()


def test_values_of_a_steps_batches_add_up():
    guard = new_guard(3)
    logits = torch.randn(12, 3, generator=torch.Generator().manual_seed(1))
    targets = torch.arange(12) % 3
    parts = guard.measure(logits[:4], targets[:4]) + guard.measure(logits[4:], targets[4:])
    assert parts[0] == 12
    assert parts[7:10].tolist() == [4.0, 4.0, 4.0]
    assert parts[10:].sum() == 12


def test_a_head_that_begins_with_zeros_is_neither_broken_nor_collapsed():
    guard = new_guard()
    assert guard.probe(torch.zeros(8, 2)) is None
    assert Imagined(guard).go(60, noise=1e-6, encoder=1e-6) is None


def test_a_dead_head_over_a_frozen_encoder_is_an_alarm():
    run = Imagined(new_guard())
    run.go(30, encoder=0.0)
    alarm = run.go(40, noise=0.0, encoder=0.0)
    assert alarm is not None
    assert alarm.kind == "never-left"
