"""Writes the table of docs/rescue.md from the ledger of the collapse benchmark, between its two markers.

python -m bench.collapsing.table           # write
python -m bench.collapsing.table --check   # exit 1 if the page differs from the ledger
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.collapsing.sums import Record, is_failed, sum_up_arm
from bench.figures import RESULTS, ROOT

LEDGER = RESULTS / "collapse-runs.jsonl"
PAGE = ROOT / "docs" / "rescue.md"
BEGIN, END = "<!-- collapse -->\n", "<!-- /collapse -->"
ARMS = {
    "good": "a learning rate tuned once",
    "shuffle": "default",
    "ladder": "guard and ladder",
    "restart": "new seeds for as many tokens",
    "quarter": "a quarter of it at the first alarm",
    "warm-up": "warm-up of 10 %",
    "ordered": "ordered",
    "balanced": "balanced",
    "ordered-plain": "ordered-plain",
    "random-subset": "random-subset",
    "length-only": "length-only",
    "clear-only": "clear-only",
    "hard-first": "hard-first",
    "label-sorted": "label-sorted",
}
"""In the order of the table -> what it is called there."""


def read_ledger(path: Path) -> list[Record]:
    """Return the runs that are on record."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def make_table(records: Sequence[Record]) -> str:
    """Return the table as Markdown: a row for each depth, learning rate and arm."""
    lines = [
        "| layers | learning rate | arm | failed | of | 95 % | accuracy | lowest | tokens |",
        "|---:|---:|---|---:|---:|---|---:|---:|---:|",
    ]
    for layers, lr in sorted({(record["layers"], record["lr"]) for record in records}):
        healthy = [r for r in records if r["layers"] == layers and r["arm"] == "good" and not is_failed(r)]
        if not healthy:
            continue
        tokens = statistics.fmean(record["tokens"] for record in healthy)
        seconds = statistics.fmean(record["step_seconds"] for record in healthy)
        for arm, name in ARMS.items():
            runs = [r for r in records if (r["layers"], r["lr"], r["arm"]) == (layers, lr, arm)]
            if runs:
                lines.append(_line(layers, lr, name, sum_up_arm(runs, tokens, seconds)))
    return "\n".join(lines) + "\n"


def _line(layers: int, lr: float, name: str, found: dict[str, Any]) -> str:
    interval = f"{found['failed_low']:.0%} to {found['failed_high']:.0%}"
    return (
        f"| {layers} | {lr:g} | {name} | {found['failed']} | {found['runs']} | {interval} "
        f"| {found['accuracy_mean']:.3f} | {found['accuracy_min']:.3f} | {found['tokens']:.2f} |"
    )


def insert(text: str, table: str) -> str:
    """Return the page with the part between the markers replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table + END + after


def main(arguments: list[str]) -> int:
    """Write or check the page; return the exit code."""
    text = PAGE.read_text(encoding="utf-8")
    made = insert(text, make_table(read_ledger(LEDGER)))
    if "--check" in arguments:
        return int(made != text)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
