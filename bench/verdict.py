"""Run a benchmark and judge its goals as a check: correctness binds, speed is only said.

    python bench/verdict.py bin/bench serve --quick

Exit 0 when every goal of correctness is met, 1 when one is missed or the benchmark broke.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

BINDING = {
    "failed",
    "wrong",
    "accuracy_gap_points",
    "missed",
    "false_alarms",
    "steps_to_alarm_max",
    "ladder_failed",
}
"""Goals that hold on any machine, however busy; every other goal is a matter of speed."""


def judge(result: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the missed goals of a benchmark's last line: (binding, of speed)."""
    binding: list[str] = []
    speed: list[str] = []
    for goal in result["goals"]:
        if not goal["met"]:
            text = f"{goal['name']} = {goal['value']}, goal {goal['op']} {goal['goal']}"
            (binding if goal["name"] in BINDING else speed).append(text)
    return binding, speed


def last_object(output: str) -> dict[str, Any] | None:
    """Return the JSON object on the last line that is not empty, or None."""
    lines = [line for line in output.splitlines() if line.strip()]
    try:
        result = json.loads(lines[-1])
    except (IndexError, json.JSONDecodeError):
        return None
    return result if isinstance(result, dict) and "goals" in result else None


def main(command: list[str]) -> int:
    """Run the benchmark with its output shown; return the exit code of the check."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    result = last_object(done.stdout)
    if done.returncode not in (0, 5) or result is None:
        print(f"The benchmark broke (exit {done.returncode}).")
        return 1
    binding, speed = judge(result)
    for text in speed:
        print(f"Warning: {text} (speed is not a check on a shared machine)")
    for text in binding:
        print(f"Missed: {text}")
    return 1 if binding else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
