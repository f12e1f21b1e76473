import pytest

from textmill.order.config import OrderConfig
from textmill.train.config import TrainConfig
from textmill.train.cures.config import RescueConfig
from textmill.train.cures.cure import Settings, Situation
from textmill.train.cures.ladder import choose
from textmill.train.guard.verdict import Verdict

LADDER = RescueConfig().ladder


def situation(kind="never-left", *, order="shuffle", train=None, **changes):
    values = {"lr": 2e-5, "batch_size": 16, "warmup_share": 0.0, **(train or {})}
    return Situation(
        **{
            "verdict": Verdict(kind, 40, {}, "stuck", True),
            "settings": Settings(TrainConfig(**values), OrderConfig(strategy=order)),
            "num_rows": 4000,
            "num_layers": 12,
            **changes,
        }
    )


def rung_of(found):
    chosen = choose(found, LADDER)
    return None if chosen is None else chosen[0]


def test_a_fault_of_data_or_wiring_gets_no_cure():
    assert choose(situation("data-or-wiring"), LADDER) is None


def test_a_high_learning_rate_is_lowered_first():
    assert rung_of(situation(train={"lr": 2e-3})) == "lower-lr"
    assert rung_of(situation(train={"lr": 2e-5})) == "ordered"
    assert rung_of(situation(train={"lr": 5e-4}, is_pretrained=False)) == "ordered"


def test_the_measured_learning_rate_is_used_and_reached_slowly():
    rung, treatment = choose(situation(train={"lr": 2e-3}, measure_lr=lambda: 3e-4), LADDER)
    assert (rung, treatment.changes) == ("lower-lr", {"train.lr": 3e-4, "train.warmup_share": 0.1})
    again = situation(train={"lr": 3e-4}, measure_lr=lambda: 1e-9, tried=("lower-lr",))
    assert choose(again, LADDER)[1].changes["train.lr"] == pytest.approx(3e-4 / 4)


def test_what_had_learned_goes_back_to_its_best_state():
    rung, treatment = choose(situation("collapsed-after-learning", healthy=1, healthy_epochs=2), LADDER)
    assert rung == "roll-back"
    assert (treatment.start.attempt, treatment.start.epochs_done) == (1, 2)
    assert rung_of(situation("collapsed-after-learning")) == "lower-lr"


def test_imbalance_gets_class_weights_once():
    assert rung_of(situation("imbalance")) == "class-weights"
    assert rung_of(situation("imbalance", train={"class_weights": "balanced"})) == "ordered"
    assert rung_of(situation("never-left", tried=("ordered",))) == "warm-up"


def test_every_rung_is_reached_and_the_ladder_ends():
    reached, found = [], situation()
    while (chosen := choose(found, LADDER)) is not None:
        reached.append(chosen[0])
        found = situation(tried=tuple(reached), order="ordered", train={"warmup_share": 0.3})
        assert len(reached) < 20
    assert {"ordered", "lower-lr", "larger-batch", "fresh-layers", "new-seed"} <= set(reached)


def test_only_rungs_of_the_ladder_are_tried():
    assert choose(situation(train={"lr": 2e-3}), ()) is None
    assert choose(situation(train={"lr": 2e-3}), ("new-seed",))[0] == "new-seed"
