from __future__ import annotations

import json

from textmill.evaluate.curve import read_curve


def _write(path, *lines: object) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_steps_and_evaluations_are_told_apart_and_the_last_best_is_kept(tmp_path):
    path = tmp_path / "events.jsonl"
    figures = {"valid_loss": 0.6, "accuracy": 0.7, "f1_macro": 0.6}
    _write(
        path,
        {"event": "step", "step": 1, "epoch": 1, "loss": 0.7, "rows": 8, "seconds": 1.5},
        {"event": "evaluation", "step": 1, "epoch": 1, "is_best": True, **figures},
        {"event": "step", "step": 2, "epoch": 2, "loss": 0.5, "rows": 7, "seconds": 1.0},
        {"event": "evaluation", "step": 2, "epoch": 2, "is_best": True, **figures},
        {"event": "evaluation", "step": 3, "epoch": 2, "is_best": False, **figures},
        {"event": "something new"},
    )
    curve = read_curve(path)
    assert curve is not None
    assert curve.losses.tolist() == [0.7, 0.5]
    assert curve.valid_steps.tolist() == [1, 2, 3]
    assert curve.best_step == 2
    assert (curve.epochs, curve.rows, curve.seconds) == (2, 15, 2.5)


def test_a_last_line_cut_by_a_kill_is_left_out(tmp_path):
    path = tmp_path / "events.jsonl"
    _write(path, {"event": "step", "step": 1, "epoch": 1, "loss": 0.7, "rows": 8, "seconds": 1})
    with open(path, "a") as file:
        file.write('{"event": "step", "step": 2, "lo')
    curve = read_curve(path)
    assert curve is not None
    assert len(curve.steps) == 1


def test_no_steps_is_no_curve(tmp_path):
    assert read_curve(tmp_path / "missing.jsonl") is None
    (tmp_path / "empty.jsonl").write_text("")
    assert read_curve(tmp_path / "empty.jsonl") is None
