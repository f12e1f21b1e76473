from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from textmill.evaluate.metrics import reliability
from textmill.evaluate.pictures import (
    display_width,
    draw_attempts,
    draw_calibration,
    draw_confusion,
    draw_lengths,
    draw_loss,
    draw_metrics,
    shorten,
)

ONE = np.array([1.0])


def test_drawing_twice_gives_equal_bytes_and_leaves_matplotlib_as_it_was():
    before = dict(mpl.rcParams)
    matrix = np.array([[5, 1], [2, 8]])
    assert draw_confusion(matrix, ["差评", "好评"]) == draw_confusion(matrix, ["差评", "好评"])
    assert dict(mpl.rcParams) == before


def test_one_step_and_one_evaluation_can_be_drawn():
    none = np.array([])
    assert "ln 3 = 1.099" in draw_loss(ONE, ONE, none, none, 3)
    assert "ln 2 = 0.693" in draw_loss(ONE, ONE, ONE, ONE, 2)
    assert "kept" in draw_metrics(ONE, ONE, ONE, 1)


@pytest.mark.parametrize("num_steps", [3, 5000])
def test_a_long_run_gives_a_small_picture(num_steps):
    steps = np.arange(1, num_steps + 1, dtype=float)
    losses = 1 / np.sqrt(steps)
    assert len(draw_loss(steps, losses, steps[-1:], losses[-1:], 2)) < 40_000


@pytest.mark.parametrize(
    ("lengths", "limit", "shown"),
    [
        ([5], 512, "limit 512 →"),
        ([0, 0], 8, "limit 8"),
        (list(range(1, 60)), 32, "limit 32<"),
        ([10] * 500 + [90_000], 512, "limit 512"),
    ],
)
def test_the_limit_is_shown_whether_near_or_far(lengths, limit, shown):
    assert shown in draw_lengths(np.array(lengths), limit)


def test_calibration_of_one_row_and_of_many_classes_can_be_drawn():
    sure = reliability(np.array([0]), np.array([[1.0, 0.0]]))
    assert "confidence" in draw_calibration(sure, 2)
    flat = reliability(np.array([3]), np.full((1, 40), 1 / 40))
    assert "confidence" in draw_calibration(flat, 40)


def test_a_text_is_cut_to_what_the_eye_sees():
    assert display_width("ab好评") == 6
    assert shorten("short", 16) == "short"
    assert shorten("two\nlines\t here", 40) == "two lines here"
    assert shorten("与主题无关的很长的类别名称", 16) == "与主题无关的很…"
    assert display_width(shorten("x" * 50, 16)) == 16


def test_an_attempt_that_exploded_does_not_press_the_others_flat():
    exploded, learnt = np.geomspace(0.7, 120.0, 30), np.linspace(0.7, 0.2, 60)
    picture = draw_attempts([exploded, learnt], label_entropy=0.69, num_classes=2)
    assert "the highest loss is 120" in picture
    assert "the highest loss" not in draw_attempts([learnt, learnt], label_entropy=0.69, num_classes=2)


def test_all_attempts_stand_on_one_axis_with_the_constant_answers_drawn_in():
    stuck, learnt = np.full(40, 0.69), np.linspace(0.7, 0.1, 80)
    picture = draw_attempts([stuck, learnt], label_entropy=0.4, num_classes=2)
    assert "ln 2 = 0.693" in picture
    assert "H(y) = 0.400" in picture
    assert "H(y)" not in draw_attempts([stuck, learnt], label_entropy=0.69, num_classes=2)
