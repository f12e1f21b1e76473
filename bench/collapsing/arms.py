"""One run of the collapse benchmark: an arm, a seed, a learning rate, a number of layers.

Every arm trains with the library's own functions in a run folder that lies in memory where the system has
such a place, so that checkpoints cost next to nothing. What counts is the state that the user would get.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.collapsing.setting import Setting
from textmill.core.errors import TrainingGaveUp
from textmill.data.prepare import Splits
from textmill.model import files
from textmill.model.build import build
from textmill.model.classifier import Classifier
from textmill.model.predictor import TorchPredictor
from textmill.order.config import OrderConfig, Strategy
from textmill.train.cures.config import RescueConfig
from textmill.train.guard.config import GuardConfig
from textmill.train.hooks import Evaluated, StepDone
from textmill.train.loop import train
from textmill.train.rescue import train_with_rescue

ORDERS: dict[str, Strategy] = {
    "shuffle": "shuffle",
    "good": "shuffle",
    "warm-up": "shuffle",
    "ordered": "ordered",
    "balanced": "balanced",
    "ordered-plain": "ordered-plain",
    "random-subset": "random-subset",
    "length-only": "length-only",
    "clear-only": "clear-only",
    "hard-first": "hard-first",
    "label-sorted": "label-sorted",
}
"""Arms that are one training in some order."""
_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Job:
    """What is run."""

    arm: str
    seed: int
    lr: float
    layers: int

    @property
    def key(self) -> str:
        """All that a run depends on."""
        return f"v1 {self.arm} layers={self.layers} lr={self.lr:g} seed={self.seed}"


@dataclass(slots=True)
class Tally:
    """A hook that counts what was read, over all attempts."""

    steps: int = 0
    rows: int = 0
    tokens: int = 0
    seconds: float = 0.0
    last: Evaluated | None = field(default=None)

    def on_step(self, event: StepDone) -> None:
        """Count a step."""
        self.steps += 1
        self.rows += event.rows
        self.tokens += event.tokens
        self.seconds += event.seconds

    def add(self, attempts: Sequence[dict[str, Any]]) -> None:
        """Count the measurements between attempts, which no hook sees."""
        self.steps += sum(attempt["probe_steps"] for attempt in attempts)
        self.rows += sum(attempt["probe_rows"] for attempt in attempts)
        self.tokens += sum(attempt["probe_tokens"] for attempt in attempts)
        self.seconds += sum(attempt["probe_seconds"] for attempt in attempts)

    def on_evaluation(self, event: Evaluated) -> None:
        """Keep the last one."""
        self.last = event

    def close(self) -> None:
        """Nothing is open."""


def make_run(job: Job, setting: Setting, tokens_allowed: int) -> dict[str, Any]:
    """Make a run and return its record.

    Args:
        job: the run.
        setting: where.
        tokens_allowed: what the arm `restart` may read; others ignore it.
    """
    splits, tally, begin = setting.rows(job.seed), Tally(), time.perf_counter()
    parent = str(_MEMORY) if _MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="collapse-", dir=parent))
    try:
        if job.arm in ORDERS:
            found = _once(job, setting, splits, folder, tally)
        else:
            special: dict[str, Callable[[], dict[str, Any]]] = {
                "ladder": lambda: _ladder(job, setting, splits, folder, tally),
                "quarter": lambda: _quarter(job, setting, splits, folder, tally),
                "restart": lambda: _restart(job, setting, splits, folder, tally, tokens_allowed),
            }
            found = special[job.arm]()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    counted = {"steps": tally.steps, "rows": tally.rows, "tokens": tally.tokens}
    times = {"step_seconds": round(tally.seconds, 2), "seconds": round(time.perf_counter() - begin, 2)}
    facts = {"arm": job.arm, "layers": job.layers, "lr": job.lr, "seed": job.seed}
    return {**facts, **found, **counted, **times}


def _once(job: Job, setting: Setting, splits: Splits, folder: Path, tally: Tally) -> dict[str, Any]:
    classifier, tokenizer, _ = build(setting.model(job.layers), splits.labels, setting.encode, job.seed)
    config = setting.config(job.seed, job.lr, 0.1 if job.arm == "warm-up" else 0.0)
    order = OrderConfig(strategy=ORDERS[job.arm])
    try:
        train(classifier, tokenizer, splits, config, order, folder / "run", hooks=[tally])
    except TrainingGaveUp as err:
        return {**_judge(classifier, tokenizer, splits), "gave_up": err.got}
    return _judge(classifier, tokenizer, splits)


def _ladder(job: Job, setting: Setting, splits: Splits, folder: Path, tally: Tally) -> dict[str, Any]:
    classifier, tokenizer, _ = build(setting.model(job.layers), splits.labels, setting.encode, job.seed)
    run_dir, gave_up = folder / "run", None
    try:
        train_with_rescue(
            classifier,
            tokenizer,
            splits,
            setting.config(job.seed, job.lr),
            OrderConfig(),
            run_dir,
            guard=GuardConfig(),
            rescue=RescueConfig(),
            hooks=[tally],
        )
    except TrainingGaveUp as err:
        gave_up = err.got
        if (run_dir / "model").exists():
            classifier, tokenizer = files.load(run_dir / "model")
    attempts = json.loads((run_dir / "attempts.json").read_text())["attempts"]
    told = [
        {
            "cure": attempt["cure"],
            "status": attempt["status"],
            "steps": attempt["steps"],
            "lr": attempt["changes"].get("train.lr", job.lr),
            "probe_steps": attempt["probe_steps"],
            "verdict": (attempt["verdict"] or {}).get("kind"),
        }
        for attempt in attempts
    ]
    tally.add(attempts)
    found = {**_judge(classifier, tokenizer, splits), "attempts": told}
    return found if gave_up is None else {**found, "gave_up": gave_up}


def _quarter(job: Job, setting: Setting, splits: Splits, folder: Path, tally: Tally) -> dict[str, Any]:
    """Train; at the first alarm begin again once, with a quarter of the learning rate and nothing else."""
    alarm = False
    for lr, guard in ((job.lr, GuardConfig()), (job.lr / 4, None)):
        classifier, tokenizer, _ = build(setting.model(job.layers), splits.labels, setting.encode, job.seed)
        config = setting.config(job.seed, lr)
        run_dir = folder / f"{lr:g}"
        try:
            train(classifier, tokenizer, splits, config, OrderConfig(), run_dir, guard=guard, hooks=[tally])
            break
        except TrainingGaveUp:
            alarm = True
    return {**_judge(classifier, tokenizer, splits), "alarm": alarm}


def _restart(
    job: Job, setting: Setting, splits: Splits, folder: Path, tally: Tally, tokens_allowed: int
) -> dict[str, Any]:
    """Train with new seeds as long as tokens are left; the best by the validation rows is kept."""
    best: tuple[float, dict[str, Any]] | None = None
    tries = 0
    while best is None or tally.tokens < tokens_allowed:
        seed = job.seed + 1000 * tries
        classifier, tokenizer, _ = build(setting.model(job.layers), splits.labels, setting.encode, seed)
        config = setting.config(seed, job.lr)
        try:
            train(classifier, tokenizer, splits, config, OrderConfig(), folder / f"{tries}", hooks=[tally])
        except TrainingGaveUp:
            tally.last = None
        value = tally.last.accuracy if tally.last else 0.0
        if best is None or value > best[0]:
            best = value, _judge(classifier, tokenizer, splits)
        shutil.rmtree(folder / f"{tries}", ignore_errors=True)
        tries += 1
    return {**best[1], "tries": tries}


def _judge(classifier: Classifier, tokenizer: Any, splits: Splits) -> dict[str, Any]:
    """Return accuracy, the share of the class that is answered most, and that of the most frequent class."""
    scores = TorchPredictor(classifier.eval(), tokenizer).scores([row.text for row in splits.test])
    answers = np.nan_to_num(scores).argmax(axis=1)
    truth = np.array([splits.labels.index(row.labels[0]) for row in splits.test])
    num_classes = len(splits.labels)
    return {
        "accuracy": float((answers == truth).mean()),
        "top_share": float(np.bincount(answers, minlength=num_classes).max() / len(answers)),
        "majority": float(np.bincount(truth, minlength=num_classes).max() / len(truth)),
    }
