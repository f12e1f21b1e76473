"""Write the README's table of figures from benchmarks/results/, between its two markers.

    python bench/readme.py           # write
    python bench/readme.py --check   # exit 1 if a README differs from the results

Promises: every number comes from a result file of a full run; a goal that was missed is shown as missed.
What is not covered: running the benchmarks (`bin/bench`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
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
NOTES: dict[str, dict[str, str]] = {
    "README.md": {
        "train": "Training is measured with each side's defaults, against `transformers.Trainer`: on this "
        "processor textmill computes in bf16, Trainer in fp32. With both in fp32 the ratios are "
        "{fp32_rows_per_s_vs_trainer:.2f} and {fp32_rows_per_s_vs_pad128:.2f} (below the goals); with Trainer's "
        "own bf16 switched on, {rows_per_s_vs_trainer_bf16:.2f}. Accuracy after one epoch, mean of three seeds: "
        "{ours_accuracy:.1f} % against {trainer_accuracy:.1f} %.",
        "serve": "Serving is in fp32 with 32 clients: {textmill_per_s:.0f} texts/s; ONNX Runtime alone in a plain "
        "loop reaches {runtime_alone_per_s:.0f}, which is the ceiling on this processor.",
        "swap": "Swapping: {swaps:.0f} swaps and {refused_corrupt:.0f} refused corrupt versions under load, "
        "{answered:,.0f} of {sent:,.0f} requests answered, each with the answer of the version it names.",
    },
    "README.zh-CN.md": {
        "train": "训练对比双方都用各自的默认设置（对手是 `transformers.Trainer`）：在这台处理器上 textmill 用 bf16 计算，"
        "Trainer 用 fp32。双方都用 fp32 时，比值为 {fp32_rows_per_s_vs_trainer:.2f} 和 "
        "{fp32_rows_per_s_vs_pad128:.2f}（未达目标）；Trainer 也打开 bf16 时为 {rows_per_s_vs_trainer_bf16:.2f}。"
        "一轮训练后的准确率（三个随机种子的平均）：{ours_accuracy:.1f} %，对手 {trainer_accuracy:.1f} %。",
        "serve": "服务用 fp32、32 个客户端：每秒 {textmill_per_s:.0f} 条文本；单独的 ONNX Runtime 在普通循环里每秒 "
        "{runtime_alone_per_s:.0f} 条，这是该处理器的上限。",
        "swap": "热更新：在负载下切换 {swaps:.0f} 次、拒绝损坏版本 {refused_corrupt:.0f} 次，{sent:,.0f} 个请求中 "
        "{answered:,.0f} 个得到回答，且每个回答都与其标明的版本一致。",
    },
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
    stale = []
    for name, words in READMES.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        made = insert(text, make_table(results, words, NOTES[name]))
        if made != text:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(made, encoding="utf-8")
    if stale:
        print(("differs from the results: " if "--check" in arguments else "written: ") + ", ".join(stale))
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
