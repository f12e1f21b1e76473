import json

import pytest

from bench.figures import MISSED, Goal, Ledger, finish, median_ratio, take_turns


@pytest.mark.parametrize(
    ("op", "value", "met"),
    [(">=", 2.0, True), (">=", 1.9, False), ("<=", 2.0, True), ("<=", 2.1, False), ("==", 2.0, True)],
)
def test_a_goal_is_met_or_not(op, value, met):
    assert Goal("x", op, 2.0).is_met(value) is met


def test_a_figure_that_is_not_a_number_meets_no_goal():
    assert not any(Goal("x", op, 2.0).is_met(float("nan")) for op in (">=", "<=", "=="))


@pytest.mark.parametrize(("value", "code"), [(3.0, 0), (1.0, MISSED)])
def test_the_last_line_is_one_json_object_and_the_exit_code_judges(capsys, value, code):
    figures = {"ratio": value, "other": 7}
    assert finish("toy", figures, [Goal("ratio", ">=", 2.0)], quick=True, keep=False) == code
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(last) == ["bench", "quick", "machine", "figures", "goals"]
    assert last["goals"] == [{"name": "ratio", "value": value, "op": ">=", "goal": 2.0, "met": code == 0}]


def test_sides_take_turns_and_the_first_is_not_always_the_same():
    calls = []
    sides = {name: lambda repeat, name=name: calls.append((repeat, name)) or 1.0 for name in "ab"}
    assert take_turns(sides, 3) == {"a": [1.0] * 3, "b": [1.0] * 3}
    assert calls == [(0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a"), (2, "b")]


def test_turns_end_early_where_time_is_up():
    assert take_turns({"a": float}, 9, lambda repeat: repeat < 1) == {"a": [0.0, 1.0]}


def test_the_ratio_is_taken_round_by_round():
    assert median_ratio([4.0, 20.0, 6.0], [2.0, 10.0, 1.0]) == 2.0


def test_a_run_in_the_ledger_is_not_made_again(tmp_path):
    made = []

    def run():
        made.append(1)
        return {"accuracy": 0.5}

    for _ in range(2):
        assert Ledger(tmp_path / "runs.jsonl").once("seed=0", run)["accuracy"] == 0.5
    Ledger(tmp_path / "runs.jsonl").once("seed=1", run)
    assert len(made) == 2
