"""The benchmarks' goals are judged, and their results shown, as they are."""

import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parent.parent / "bench"

MACHINE = {"processor": "A Processor", "cpus": 2, "memory_gib": 8.0, "system": "Linux", "python": "3.11.7"}


def result(*goals: tuple[str, float, bool], quick: bool = False) -> dict[str, object]:
    """Return what a benchmark prints last."""
    listed = [{"name": name, "value": value, "op": ">=", "goal": 2, "met": met} for name, value, met in goals]
    return {"bench": "toy", "quick": quick, "machine": MACHINE, "figures": {}, "goals": listed}


def verdict(code: str) -> subprocess.CompletedProcess[str]:
    """Judge a small benchmark of one line."""
    command = [sys.executable, str(BENCH / "verdict.py"), sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def printing(value: object, code: int) -> str:
    """Return the program of a benchmark that prints `value` and leaves with `code`."""
    return f"import sys; print('a table'); print({json.dumps(value)!r}); sys.exit({code})"


@pytest.fixture(scope="module")
def readme() -> ModuleType:
    """Return bench/readme.py as a module."""
    spec = importlib.util.spec_from_file_location("bench_readme", BENCH / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_missed_goal_of_speed_is_only_said():
    done = verdict(printing(result(("rows_per_s_vs_trainer", 1.5, False)), 5))
    assert done.returncode == 0
    assert "Warning: rows_per_s_vs_trainer = 1.5, goal >= 2" in done.stdout


@pytest.mark.parametrize("name", ["failed", "wrong", "accuracy_gap_points"])
def test_a_missed_goal_of_correctness_fails(name):
    done = verdict(printing(result((name, 1, False)), 5))
    assert done.returncode == 1
    assert f"Missed: {name} = 1" in done.stdout


def test_goals_that_are_met_pass_and_the_output_is_shown():
    done = verdict(printing(result(("failed", 0, True)), 0))
    assert done.returncode == 0
    assert "a table" in done.stdout


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "print('no result')", "print('[]')", "pass"])
def test_a_benchmark_that_breaks_fails(code):
    assert verdict(code).returncode == 1


def test_the_table_shows_a_missed_goal_as_missed(readme):
    table = readme.make_table([result(("a", 2.5, True), ("b", 1, False))], readme.ENGLISH, {})
    assert "| toy | `a` | 2.5 | >= 2 | yes |" in table
    assert "| toy | `b` | 1 | >= 2 | **no** |" in table
    assert "A Processor, 2 cores" in table


def test_quick_runs_are_no_results(readme, tmp_path):
    (tmp_path / "toy.json").write_text(json.dumps(result(("a", 3, True), quick=True)))
    assert readme.read_results(tmp_path) == []
    assert readme.make_table([], readme.ENGLISH, {}) == ""


def test_only_what_stands_between_the_markers_changes(readme):
    text = f"before\n{readme.BEGIN}old\n{readme.END}\nafter\n"
    assert readme.insert(text, "new\n") == f"before\n{readme.BEGIN}new\n{readme.END}\nafter\n"


def test_both_readmes_have_notes_on_the_same_benchmarks(readme):
    notes = tomllib.loads(readme.NOTES.read_text(encoding="utf-8"))
    assert notes.keys() == readme.READMES.keys()
    english, chinese = notes.values()
    assert english.keys() == chinese.keys()
