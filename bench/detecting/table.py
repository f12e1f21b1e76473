"""Writes the table of docs/guard.md from the results of the detector benchmark, between its two markers.

python -m bench.detecting.table           # write
python -m bench.detecting.table --check   # exit 1 if the page differs from the results
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from bench.detecting.replay import Judged
from bench.figures import RESULTS, ROOT

KINDS = RESULTS / "detector-kinds.jsonl"
PAGE = ROOT / "docs" / "guard.md"
BEGIN, END = "<!-- detector -->\n", "<!-- /detector -->"


def by_kind(found: Sequence[Judged]) -> list[dict[str, Any]]:
    """Return one row a kind of run, in the order of the cases."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for judged in found:
        groups[judged.kind].append(judged)
    return [
        {
            "kind": kind,
            "runs": len(group),
            "failed": sum(judged.has_failed for judged in group),
            "alarms": sum(judged.alarm is not None for judged in group),
            "wrong": sum(judged.is_missed or judged.is_false_alarm for judged in group),
            "verdicts": sorted({(judged.alarm or judged.last).kind for judged in group}),
            "steps": max((j.steps_to_alarm for j in group if j.steps_to_alarm is not None), default=None),
        }
        for kind, group in groups.items()
    ]


def make_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table as Markdown."""
    lines = [
        "| run | runs | failed | alarms | missed or false | verdict | steps to the alarm, at most |",
        "|---|---:|---:|---:|---:|---|---:|",
    ]
    for row in rows:
        steps = "" if row["steps"] is None else str(row["steps"])
        lines.append(
            f"| {row['kind']} | {row['runs']} | {row['failed']} | {row['alarms']} | {row['wrong']} "
            f"| {', '.join(row['verdicts'])} | {steps} |"
        )
    return "\n".join(lines) + "\n"


def insert(text: str, table: str) -> str:
    """Return the page with the part between the markers replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table + END + after


def main(arguments: list[str]) -> int:
    """Write or check the page; return the exit code."""
    rows = [json.loads(line) for line in KINDS.read_text(encoding="utf-8").splitlines()]
    text = PAGE.read_text(encoding="utf-8")
    made = insert(text, make_table(rows))
    if "--check" in arguments:
        return int(made != text)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
