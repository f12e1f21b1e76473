"""Does the guard tell collapsed runs from hard ones, how soon, and what does it cost?

    bin/bench detector [--quick] [--only runs|cost]

Every run is a real training to its end by a plain loop that nothing stops. Its outcome decides what it
was: failed means an accuracy on held-out rows no more than a point above the majority's, or 98 % of them
given one class. Random labels are the exception: there the constant answer is right, so that no alarm is
due. The guard then judges what was kept of each step. Its limits were set on trials and on runs with the
seeds 0 and 1; the figures are of all, and those of seed 2, which had no say, are told apart.

A full run keeps every training in `benchmarks/results/detector-runs.jsonl`, and makes only those that are
not in it; `python -m bench.detecting.table` then writes the table of docs/guard.md.
Steps to an alarm count from the end of the warm-up, or from the last steps that showed learning.
What is not covered: GPUs; runs longer than some hundred steps.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from bench.detecting.cases import Case, collapsing, hard, quick
from bench.detecting.replay import Judged, replay
from bench.detecting.runs import key_of, run
from bench.detecting.table import KINDS, by_kind
from bench.figures import RESULTS, SCRATCH, Goal, Ledger, finish, say
from textmill.core.files import write_atomic
from textmill.encode.config import EncodeConfig
from textmill.model.build import build
from textmill.model.config import ModelConfig
from textmill.train.guard.config import GuardConfig
from textmill.train.guard.guard import Guard

SEEDS = (0, 1, 2)
RUN_GOALS = [Goal("missed", "==", 0), Goal("false_alarms", "==", 0), Goal("steps_to_alarm_max", "<=", 40)]
COST_GOAL = Goal("guard_cost_share", "<=", 0.01)
LEDGER = RESULTS / "detector-runs.jsonl"


def judge_runs(cases: Sequence[Case], seeds: Sequence[int], ledger: Path) -> list[Judged]:
    """Make the runs that are missing in the ledger, and judge all."""
    ledger.parent.mkdir(exist_ok=True)
    kept = Ledger(ledger)
    found = []
    for seed in seeds:
        for case in cases:
            record = kept.once(key_of(case, seed), lambda case=case, seed=seed: run(case, seed))  # type: ignore[misc]
            judged = replay(case, record)
            wrong = "MISSED" if judged.is_missed else "FALSE ALARM" if judged.is_false_alarm else ""
            alarm = f"{judged.alarm.kind} at step {judged.alarm.step}" if judged.alarm else "no alarm"
            outcome = "failed" if judged.has_failed else "came to something"
            say(f"{case.kind} ({case.encoder}, seed {seed}): {outcome}, {alarm} {wrong}")
            found.append(judged)
    return found


def figures_of(found: Sequence[Judged]) -> dict[str, Any]:
    """Return what the goals are about."""
    late = [judged for judged in found if judged.seed == SEEDS[-1]]
    steps = [judged.steps_to_alarm for judged in found if judged.steps_to_alarm is not None]
    return {
        "runs": len(found),
        "failed_runs": sum(judged.has_failed for judged in found),
        "missed": sum(judged.is_missed for judged in found),
        "false_alarms": sum(judged.is_false_alarm for judged in found),
        "missed_unseen_seed": sum(judged.is_missed for judged in late),
        "false_alarms_unseen_seed": sum(judged.is_false_alarm for judged in late),
        "steps_to_alarm_max": max(steps, default=0),
        "steps_to_alarm_median": statistics.median(steps) if steps else 0,
    }


def measure_cost(steps: int) -> dict[str, float]:
    """Return the guard's share of a step of the packaged encoder, batch 16 of 32 tokens.

    Steps with and without it take turns. Its own time within a step is timed too, and is the figure: a
    hundredth of a step drowns in the noise between two steps.
    """
    classifier, _, _ = build(ModelConfig(), ["a", "b"], EncodeConfig(max_length=32), 0)
    optimizer = torch.optim.AdamW(classifier.parameters(), lr=1e-5)
    guard = Guard(GuardConfig(), 2)
    ids, targets = torch.randint(1000, 20000, (16, 32)), torch.arange(16) % 2
    mask = torch.ones_like(ids)
    times: dict[bool, list[float]] = {True: [], False: []}
    own: list[float] = []
    for step in range(2 * steps):
        is_on = step % 2 == 0
        begin = time.perf_counter()
        logits = classifier(ids, mask, torch.zeros_like(ids))
        loss = functional.cross_entropy(logits, targets)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        encoder = torch.nn.utils.get_total_norm(
            [p.grad for p in classifier.encoder.parameters() if p.grad is not None]
        )
        head = torch.nn.utils.get_total_norm(
            [p.grad for p in classifier.head.parameters() if p.grad is not None]
        )
        told = torch.stack([loss.detach(), encoder, head])
        if is_on:
            begin_own = time.perf_counter()
            told = torch.cat([told, guard.measure(logits, targets)])
            value, encoder_norm, head_norm, *sums = told.tolist()
            guard.observe(step + 1, value, sums, encoder_norm, head_norm, 1e-5)
            own.append(time.perf_counter() - begin_own)
        else:
            told.tolist()
        optimizer.step()
        times[is_on].append(time.perf_counter() - begin)
    on, off = (statistics.median(times[is_on]) for is_on in (True, False))
    return {
        "guard_cost_share": statistics.median(own) / off,
        "on_off_share": on / off - 1.0,
        "guard_us": 1e6 * statistics.median(own),
    }


def main(arguments: list[str]) -> int:
    """Run, judge, measure, keep; return the exit code."""
    parser = argparse.ArgumentParser(prog="bin/bench detector")
    parser.add_argument("--quick", action="store_true", help="a dozen tiny runs, about a minute")
    parser.add_argument("--only", choices=("runs", "cost"), help="a part, which is not kept as a result")
    chosen = parser.parse_args(arguments)
    figures: dict[str, Any] = {}
    goals: list[Goal] = []
    if chosen.only != "cost":
        torch.set_num_threads(1)  # a tiny model gains nothing from more
        if chosen.quick:
            SCRATCH.mkdir(exist_ok=True)
            ledger = SCRATCH / "detector-runs.jsonl"
            ledger.unlink(missing_ok=True)  # a check makes its runs
            found = judge_runs(quick(), SEEDS[:1], ledger)
        else:
            found = judge_runs(collapsing() + hard(), SEEDS, LEDGER)
            write_atomic(KINDS, "".join(json.dumps(row) + "\n" for row in by_kind(found)))
        figures |= figures_of(found)
        goals += RUN_GOALS
    if chosen.only != "runs":
        figures |= measure_cost(10 if chosen.quick else 100)
        goals.append(COST_GOAL)
    machine = {"torch": torch.__version__}
    return finish("detector", figures, goals, quick=chosen.quick, keep=chosen.only is None, machine=machine)
