"""What all benchmarks share: goals, taking turns, the ledger of runs, the table and the last line.

Promises: the last line is one JSON object; exit code 0 when all goals are met, 5 when not; only
full runs are written to `benchmarks/results/`; a ledger line is written whole or not at all, so that
a long benchmark goes on where it was stopped.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from textmill.core.files import append_line, write_json
from textmill.core.machine import describe_machine

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SCRATCH = ROOT / ".bench"
MISSED = 5
"""Exit code when a goal is not met."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure should be."""

    name: str
    """The figure's name."""
    op: Literal[">=", "<=", "=="]
    goal: float

    def is_met(self, value: float) -> bool:
        """Return whether `value` is good enough; one that is not a number never is."""
        return {">=": value >= self.goal, "<=": value <= self.goal, "==": value == self.goal}[self.op]


def finish(
    bench: str,
    figures: Mapping[str, Any],
    goals: Sequence[Goal],
    *,
    quick: bool,
    keep: bool = True,
    machine: Mapping[str, Any] | None = None,
) -> int:
    """Print the table and the last line, keep the result, and return the exit code.

    Args:
        bench: the benchmark's name.
        figures: everything measured, by name; each goal's value is among them.
        goals: what is judged.
        quick: whether this was a quick run, which is kept in `.bench/` only.
        keep: False for a part of a benchmark that must not stand as its result.
        machine: facts beside `describe_machine()`, such as the versions of libraries.
    """
    judged = [
        {
            "name": g.name,
            "value": figures[g.name],
            "op": g.op,
            "goal": g.goal,
            "met": g.is_met(figures[g.name]),
        }
        for g in goals
    ]
    result = {
        "bench": bench,
        "quick": quick,
        "machine": {**describe_machine(), **(machine or {})},
        "figures": dict(figures),
        "goals": judged,
    }
    _print_table(bench, figures, judged)
    if keep:
        write_json((SCRATCH if quick else RESULTS) / f"{bench}.json", result)
    print(json.dumps(result, ensure_ascii=False, allow_nan=False))
    return 0 if all(goal["met"] for goal in judged) else MISSED


def take_turns(
    sides: Mapping[str, Callable[[int], float]], repeats: int, after: Callable[[int], bool] | None = None
) -> dict[str, list[float]]:
    """Call every side once a repeat, in turn; the order is reversed from repeat to repeat.

    A slow moment of the machine then hits all sides alike, and none is always the first.

    Args:
        sides: name -> a measurement, which gets the number of the repeat (from 0).
        repeats: how many rounds at most.
        after: is asked after each round (with its number) whether another one may begin.

    Returns:
        Side -> one value a round.
    """
    values: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(repeats):
        for name in sides if repeat % 2 == 0 else reversed(list(sides)):
            values[name].append(sides[name](repeat))
        if after is not None and not after(repeat):
            break
    return values


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios round by round."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


class Ledger:
    """One JSON line a run, in `.bench/`; a run that is in it is not made again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                record = json.loads(line)
                self._known[record["key"]] = record

    def once(self, key: str, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the record of the run called `key`; make the run if there is none yet.

        The key holds everything that the run depends on, so that a change makes it new.
        """
        if key not in self._known:
            record = {"key": key, **run()}
            append_line(self._path, json.dumps(record, ensure_ascii=False))
            self._known[key] = record
        return self._known[key]

    def records(self) -> list[dict[str, Any]]:
        """Return the records of all runs, in the order in which they were made."""
        return list(self._known.values())


def say(text: str) -> None:
    """Print a line for whoever waits, before the table."""
    print(text, flush=True)


def _print_table(bench: str, figures: Mapping[str, Any], judged: Sequence[Mapping[str, Any]]) -> None:
    by_name = {goal["name"]: goal for goal in judged}
    table = Table("figure", "value", "goal", "met", title=bench)
    for name, value in figures.items():
        goal = by_name.get(name)
        shown = f"{value:,.4g}" if isinstance(value, float) else str(value)
        met = "" if goal is None else ("yes" if goal["met"] else "NO")
        table.add_row(name, shown, "" if goal is None else f"{goal['op']} {goal['goal']:g}", met)
    Console(width=max(100, Console().width)).print(table)
