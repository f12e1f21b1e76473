"""How long an epoch will take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.toy import BACKBONE, toy_classifier, toy_examples
from tests.train.parts import toy_config
from textmill.encode.compare import compare
from textmill.model.config import ArchitectureConfig
from textmill.train.step_time import EpochClock, StepTime, epoch_predictor, fit_step_time, verify_prediction

TEXTS = [str(example.text) for example in toy_examples(120)]
TINY = ArchitectureConfig(layers=1, hidden_size=16, heads=2, intermediate_size=32, max_positions=64)


def test_the_three_parts_are_found_again():
    rng = np.random.default_rng(0)
    rows, lengths = rng.integers(1, 64, 20).astype(float), rng.integers(8, 512, 20).astype(float)
    true = StepTime(0.02, 1e-5, 3e-8)
    seconds = np.array([true.seconds(r[None], n[None]) for r, n in zip(rows, lengths, strict=True)])
    found = fit_step_time(rows, lengths, seconds)
    assert found.per_step == pytest.approx(true.per_step)
    assert found.per_token == pytest.approx(true.per_token)
    assert found.per_pair == pytest.approx(true.per_pair)
    assert true.seconds(rows, lengths) == pytest.approx(seconds.sum())


def test_no_part_falls_below_zero_and_steps_alike_are_enough():
    found = fit_step_time(np.array([10.0, 10.0]), np.array([20.0, 20.0]), np.array([0.1, 0.3]))
    assert min(found.per_step, found.per_token, found.per_pair) >= 0
    # Least squares of the relative error: the sum of (1 - t/0.1)^2 and (1 - t/0.3)^2 is least at 0.12.
    assert found.seconds(np.array([10.0]), np.array([20.0])) == pytest.approx(0.12)


def test_an_epoch_is_predicted_for_more_rows_than_were_looked_at():
    classifier, tokenizer = toy_classifier()
    state = torch.get_rng_state()
    clock = EpochClock(classifier, tokenizer, TEXTS, toy_config())
    found = clock.predict(num_rows=1200, seconds=0.01)
    assert torch.equal(torch.get_rng_state(), state)
    assert found.seconds == pytest.approx(10 * found.sample_s)
    assert found.num_steps > 1
    assert clock.measure() > 0


def test_a_tokenizer_without_weights_is_timed_with_an_encoder_from_scratch(tmp_path: Path):
    found = compare(["wordpiece:400"], TEXTS, tmp_path, max_length=64)
    candidate = found.compared[0].candidate
    seconds = epoch_predictor(toy_config(), TINY, 0.01)(candidate, TEXTS[:40], 40)
    assert seconds > 0
    checked = verify_prediction(candidate, TEXTS[:40], toy_config(), TINY, 0.01)
    assert checked.rows == 40
    assert checked.error == abs(checked.predicted_s - checked.measured_s) / checked.measured_s


@pytest.mark.slow
def test_the_prediction_is_of_the_right_size():
    # How near it is shows `bin/bench tokenizers` on a quiet machine; here the machine may be busy.
    classifier, tokenizer = toy_classifier(backbone=BACKBONE)
    clock = EpochClock(classifier, tokenizer, TEXTS * 5, toy_config())
    predicted, measured = clock.predict(seconds=1.0).seconds, clock.measure()
    assert 0.3 < predicted / measured < 3
