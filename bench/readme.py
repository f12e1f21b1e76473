"""Write the README's table of figures from benchmarks/results/, between its two markers.

    python bench/readme.py           # write
    python bench/readme.py --check   # exit 1 if a README differs from the results

Promises: every number comes from a result file of a full run; a goal that was missed is shown as missed.
What is not covered: running the benchmarks (`bin/bench`).
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
NOTES = ROOT / "benchmarks" / "notes.toml"
"""README -> benchmark -> what is said under the table, with figures in braces."""
BEGIN, END = "<!-- figures -->\n", "<!-- /figures -->"

Words = dict[str, str]
ENGLISH: Words = {
    "title": "## Figures",
    "columns": "| benchmark | figure | measured | goal | met |",
    "yes": "yes",
    "no": "**no**",
    "machine": "Measured on: {machine}. Each is made again by `bin/bench NAME`; whole results lie in "
    "[benchmarks/results](benchmarks/results).",
}
CHINESE: Words = {
    "title": "## 实测数据",
    "columns": "| 基准 | 指标 | 实测 | 目标 | 达到 |",
    "yes": "是",
    "no": "**否**",
    "machine": "测试机器：{machine}。用 `bin/bench NAME` 可以重新测量；完整结果在 "
    "[benchmarks/results](benchmarks/results)。",
}
READMES: dict[str, Words] = {"README.md": ENGLISH, "README.zh-CN.md": CHINESE}


def read_results(folder: Path) -> list[dict[str, Any]]:
    """Return the results of all full runs, by name of the benchmark."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return [result for result in results if not result["quick"]]


def make_table(results: list[dict[str, Any]], words: Words, notes: Mapping[str, str]) -> str:
    """Return the section with heading, table, notes and machine; nothing without results."""
    if not results:
        return ""
    lines = [words["title"], "", words["columns"], "|---|---|---:|---:|---|"]
    for result in results:
        for goal in result["goals"]:
            met = words["yes"] if goal["met"] else words["no"]
            lines.append(
                f"| {result['bench']} | `{goal['name']}` | {_number(goal['value'])} "
                f"| {goal['op']} {_number(goal['goal'])} | {met} |"
            )
    machines = sorted({_machine(result["machine"]) for result in results})
    for result in results:
        if result["bench"] in notes:
            lines += ["", notes[result["bench"]].format(**result["figures"])]
    return "\n".join([*lines, "", words["machine"].format(machine="; ".join(machines)), ""])


def insert(text: str, table: str) -> str:
    """Return a README's text with the part between the markers replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table + END + after


def _number(value: float) -> str:
    return f"{value:,.3g}" if isinstance(value, float) else f"{value:,}"


def _machine(machine: dict[str, Any]) -> str:
    return "{processor}, {cpus} cores, {memory_gib} GiB, Python {python}".format(**machine)


def main(arguments: list[str]) -> int:
    """Write or check both READMEs; return the exit code."""
    results = read_results(RESULTS)
    notes = tomllib.loads(NOTES.read_text(encoding="utf-8"))
    stale = []
    for name, words in READMES.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        made = insert(text, make_table(results, words, notes[name]))
        if made != text:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(made, encoding="utf-8")
    if stale:
        print(("differs from the results: " if "--check" in arguments else "written: ") + ", ".join(stale))
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
