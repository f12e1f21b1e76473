"""Which cure gets a training out of the constant answer: failed runs by arm, on paired seeds.

    bin/bench collapse [--quick] [--part 0/2] [--seconds S] [--report]

Every run is one JSON line of `benchmarks/results/collapse-runs.jsonl`, and a run that is there is not made
again: the benchmark can be spread over days, and two processes can share it (`--part 0/2`, `--part 1/2`: each
takes every second seed; each run uses one thread). The most telling runs come first, so that a part of the
ledger gives all headline figures. `--report` only adds up what is there; `python -m bench.collapsing.table`
writes the table of docs/rescue.md. `collapsing/setting.py` says what is
trained, `collapsing/arms.py` what each arm does, `collapsing/sums.py` what counts as failed.

`good` is the reference: the default at a learning rate that was tuned once. `restart` begins again with
new seeds until it has read as many tokens as the ladder did at that seed. `quarter` begins again once,
at a quarter of the learning rate, when the guard raises its first alarm.
`--quick` trains a toy encoder from scratch on generated text, within a minute.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from bench.collapsing.arms import Job, make_run
from bench.collapsing.setting import Setting, generated, reviews
from bench.collapsing.sums import figures_of, is_failed
from bench.collapsing.table import LEDGER
from bench.figures import SCRATCH, Goal, Ledger, finish, say

STUCK = (2e-3, 5e-3)
"""Learning rates that make the default fail with 2 layers."""
STUCK_WHOLE = (1e-3, 2e-3)
"""The same with all 6 layers."""
GRID = (1e-4, 3e-4, 5e-4, 1e-3, 2e-3, 5e-3)
FIRST = ("shuffle", "ladder", "quarter", "restart", "warm-up", "ordered", "balanced")
CONTROLS = ("ordered-plain", "random-subset", "length-only", "clear-only", "hard-first", "label-sorted")
BANDS = ("shuffle", "ladder", "ordered", "balanced", "warm-up")
GOALS = [
    Goal("default_failed_share", ">=", 0.8),
    Goal("ladder_failed", "==", 0),
    Goal("ladder_accuracy_gap_points", ">=", -2.0),
    Goal("ladder_cost", "<=", 2.5),
]
QUICK_LR = 0.03


def all_jobs(setting: Setting) -> Iterator[Job]:
    """Yield all runs, the most telling first; `restart` after the ladder that it is measured by."""
    good = setting.good_lr
    for seed in range(25):
        yield Job("good", seed, good[2], 2)
        yield from (Job(arm, seed, lr, 2) for lr in STUCK for arm in FIRST)
        if seed < 10:
            yield from (Job(arm, seed, lr, 2) for lr in STUCK for arm in CONTROLS)
        if seed == 9:  # before the last seeds of the arms that are known by then
            yield from band_jobs()
    for seed in range(6):
        yield Job("good", seed, good[6], 6)
        arms = ("shuffle", "ladder", "ordered", "warm-up")
        yield from (Job(arm, seed, lr, 6) for lr in STUCK_WHOLE for arm in arms)


def band_jobs() -> Iterator[Job]:
    """Yield the runs that tell where each arm learns; at the highest rates the others tell it."""
    others = [lr for lr in GRID if lr not in STUCK]
    for seed in range(3):
        yield from (Job(arm, seed, lr, 2) for lr in others for arm in BANDS)


def quick_jobs(setting: Setting) -> Iterator[Job]:
    """Yield the runs of the quick benchmark."""
    for seed in range(2):
        yield Job("good", seed, setting.good_lr[2], 2)
        yield from (Job(arm, seed, QUICK_LR, 2) for arm in ("shuffle", "ladder"))


def make_runs(
    jobs: list[Job], setting: Setting, path: Path, part: tuple[int, int], until: float
) -> dict[str, dict[str, Any]]:
    """Make the runs of a part that are not in the ledger yet; return all records that it holds."""
    ledger = Ledger(path)
    mine = [job for job in jobs if job.seed % part[1] == part[0]]
    records: dict[str, dict[str, Any]] = {}
    for number, job in enumerate(mine, 1):
        if time.time() > until:
            say("The time is up; the other runs are for another day.")
            break
        ladder = records.get(Job("ladder", job.seed, job.lr, job.layers).key)
        allowed = int(ladder["tokens"]) if ladder else 0
        record = ledger.once(job.key, lambda job=job, allowed=allowed: make_run(job, setting, allowed))  # type: ignore[misc]
        records[job.key] = record
        how = "FAILED" if is_failed(record) else f"{record['accuracy']:.3f}"
        say(f"{number}/{len(mine)} {job.key}: {how} ({record['tokens']} tokens, {record['seconds']} s)")
    return records


def known_runs(path: Path, jobs: list[Job]) -> list[dict[str, Any]]:
    """Return the records of the ledger that belong to the benchmark as it is now."""
    ledger, wanted = Ledger(path), {job.key for job in jobs}
    return [record for record in ledger.records() if record["key"] in wanted]


def main(arguments: list[str]) -> int:
    """Measure, print, keep; return the exit code."""
    parser = argparse.ArgumentParser(prog="bin/bench collapse")
    parser.add_argument("--quick", action="store_true", help="a toy on generated text, within a minute")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th seed, from the K-th on")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after so long")
    parser.add_argument("--report", action="store_true", help="make no run; add up the ledger")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    until = time.time() + chosen.seconds
    if chosen.quick:
        setting = generated()
        jobs, path = list(quick_jobs(setting)), SCRATCH / "collapse-quick.jsonl"
        path.unlink(missing_ok=True)
        stuck: tuple[float, ...] = (QUICK_LR,)
    else:
        setting = reviews()
        jobs, path, stuck = list(all_jobs(setting)), LEDGER, STUCK
    if not chosen.report:
        index, _, num = chosen.part.partition("/")
        make_runs(jobs, setting, path, (int(index), int(num)), until)
    records = known_runs(path, jobs)
    figures = {**figures_of(records, stuck, GRID), "runs": len(records), "runs_planned": len(jobs)}
    is_whole = len(records) == len(jobs)
    return finish("collapse", figures, GOALS, quick=chosen.quick, keep=chosen.quick or is_whole)
