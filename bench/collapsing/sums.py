"""What the runs of the collapse benchmark add up to.

Failed run: accuracy <= that of the most frequent class + 1 point, or >= 98 % of the answers are one class.
Shares carry Wilson intervals; two arms are compared on the seeds that both have, by the exact McNemar test.
A ledger that is not complete gives the figures that it holds.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from scipy.stats import binomtest

Record = dict[str, Any]


def is_failed(record: Record) -> bool:
    """Return whether a run has failed."""
    is_constant = record["top_share"] >= 0.98
    return bool(is_constant or record["accuracy"] <= record["majority"] + 0.01)


def sum_up_arm(records: Sequence[Record], healthy_tokens: float, healthy_s: float) -> dict[str, Any]:
    """Return the figures of one arm at one learning rate, costs in healthy runs."""
    failed = sum(is_failed(record) for record in records)
    interval = binomtest(failed, len(records)).proportion_ci(method="wilson")
    accuracies = [record["accuracy"] for record in records]
    return {
        "runs": len(records),
        "failed": failed,
        "failed_low": round(float(interval.low), 3),
        "failed_high": round(float(interval.high), 3),
        "accuracy_mean": round(statistics.fmean(accuracies), 4),
        "accuracy_min": round(min(accuracies), 4),
        "tokens": round(statistics.fmean(r["tokens"] for r in records) / healthy_tokens, 2),
        "seconds": round(statistics.fmean(r["step_seconds"] for r in records) / healthy_s, 2),
    }


def compare(one: Iterable[Record], two: Iterable[Record]) -> dict[str, Any]:
    """Return on how many pairs only one of two arms has failed, and the exact McNemar test."""
    ours = {(r["lr"], r["seed"]): is_failed(r) for r in one}
    theirs = {(r["lr"], r["seed"]): is_failed(r) for r in two}
    pairs = [(ours[key], theirs[key]) for key in ours.keys() & theirs.keys()]
    first = sum(a and not b for a, b in pairs)
    second = sum(b and not a for a, b in pairs)
    p = binomtest(first, first + second).pvalue if first + second else 1.0
    return {"pairs": len(pairs), "only_first": first, "only_second": second, "p": round(float(p), 5)}


def rungs_that_helped(ladder: Iterable[Record]) -> dict[str, int]:
    """Return how many failures each cure has resolved: the cure of the last, healthy attempt."""
    helped = Counter(
        record["attempts"][-1]["cure"]
        for record in ladder
        if len(record["attempts"]) > 1 and not is_failed(record)
    )
    return dict(helped.most_common())


def widest_band(records: Iterable[Record], lrs: Sequence[float]) -> dict[str, Any]:
    """Return the widest run of neighbouring learning rates without a failed run.

    Args:
        records: the runs of an arm.
        lrs: the grid, ascending.
    """
    failed: dict[float, bool] = defaultdict(bool)
    seen = set()
    for record in records:
        seen.add(record["lr"])
        failed[record["lr"]] |= is_failed(record)
    best: list[float] = []
    current: list[float] = []
    for lr in lrs:
        current = [*current, lr] if lr in seen and not failed[lr] else []
        if current and (not best or current[-1] / current[0] > best[-1] / best[0]):
            best = current
    return {"low": best[0], "high": best[-1]} if best else {"low": None, "high": None}


def figures_of(records: Sequence[Record], stuck: Sequence[float], grid: Sequence[float]) -> dict[str, Any]:
    """Return all figures; those of goals stand first.

    Args:
        records: the ledger.
        stuck: the learning rates at which the default is expected to fail.
        grid: those of the bands.
    """
    small = [record for record in records if record["layers"] == 2]
    good = [record for record in small if record["arm"] == "good"]
    tokens = statistics.fmean(r["tokens"] for r in good)
    at = {arm: [r for r in small if r["arm"] == arm and r["lr"] in stuck] for arm in _arms(small)}
    default, ladder = at["shuffle"], at["ladder"]
    gap = statistics.fmean(r["accuracy"] for r in ladder) - statistics.fmean(r["accuracy"] for r in good)
    figures: dict[str, Any] = {
        "default_failed_share": statistics.fmean(is_failed(r) for r in default),
        "ladder_failed": sum(is_failed(r) for r in ladder),
        "ladder_runs": len(ladder),
        "ladder_accuracy_gap_points": 100.0 * gap,
        "ladder_cost": statistics.fmean(r["tokens"] for r in ladder) / tokens,
        "rungs_that_helped": rungs_that_helped(ladder),
    }
    for rival in ("restart", "quarter"):
        if at.get(rival):
            figures[f"ladder_vs_{rival}"] = compare(ladder, at[rival])
            theirs = statistics.fmean(r["accuracy"] for r in at[rival])
            figures[f"ladder_ahead_of_{rival}_points"] = 100.0 * (
                statistics.fmean(r["accuracy"] for r in ladder) - theirs
            )
    for arm in sorted(at.keys() - {"shuffle", "good"}):
        if at[arm]:
            figures[f"default_vs_{arm}"] = compare(default, at[arm])
    for layers, lr, arm in sorted({(r["layers"], r["lr"], r["arm"]) for r in records}):
        chosen = [r for r in records if (r["layers"], r["lr"], r["arm"]) == (layers, lr, arm)]
        beside = [r for r in records if r["layers"] == layers and r["arm"] == "good"] or good
        figures[f"{arm} layers={layers} lr={lr:g}"] = sum_up_arm(
            chosen,
            statistics.fmean(r["tokens"] for r in beside),
            statistics.fmean(r["step_seconds"] for r in beside),
        )
    for arm in ("shuffle", "ordered", "balanced", "warm-up", "ladder"):
        figures[f"band {arm}"] = widest_band([r for r in small if r["arm"] == arm], grid)
    return figures


def _arms(records: Sequence[Record]) -> list[str]:
    return sorted({record["arm"] for record in records})
