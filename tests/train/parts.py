"""Splits and trainings of the toy classifier, and hooks that record or stop one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.toy import toy_classifier, toy_examples, toy_labels
from textmill.core.progress import SilentProgress
from textmill.core.types import Example
from textmill.data.fingerprint import print_side, print_splits
from textmill.data.labels import survey_labels
from textmill.data.prepare import Splits
from textmill.data.report import DataReport
from textmill.order.config import OrderConfig
from textmill.train.config import TrainConfig
from textmill.train.guard.config import GuardConfig
from textmill.train.hooks import Evaluated, Hook, StepDone
from textmill.train.loop import train
from textmill.train.result import TrainResult


def make_splits(
    train_rows: Sequence[Example],
    valid_rows: Sequence[Example] = (),
    test_rows: Sequence[Example] = (),
    labels: tuple[str, ...] | None = None,
) -> Splits:
    rows = {"train": list(train_rows), "valid": list(valid_rows), "test": list(test_rows)}
    prints = {side: print_side(examples) for side, examples in rows.items()}
    found = labels or tuple(sorted({e.labels[0] for examples in rows.values() for e in examples}))
    report = DataReport(sources={}, labels=survey_labels([]), sides={}, fingerprints=prints)
    return Splits(rows["train"], rows["valid"], rows["test"], found, report, print_splits(prints))


def toy_splits(num_train: int = 64, num_valid: int = 32, classes: int = 2) -> Splits:
    examples = toy_examples(num_train + num_valid, classes)
    return make_splits(examples[:num_train], examples[num_train:], labels=toy_labels(classes))


def toy_config(**changes: Any) -> TrainConfig:
    values: dict[str, Any] = {"epochs": 2, "lr": 2e-3, "batch_size": 8, "threads": 1, "device": "cpu"}
    return TrainConfig(**{**values, **changes})


def toy_train(
    run_dir: Path,
    splits: Splits | None = None,
    *,
    resume: bool = False,
    hooks: Sequence[Hook] = (),
    progress: SilentProgress | None = None,
    model: dict[str, Any] | None = None,
    order: OrderConfig | None = None,
    guard: GuardConfig | None = None,
    **changes: Any,
) -> TrainResult:
    splits = splits or toy_splits()
    classifier, tokenizer = toy_classifier(splits.labels, **(model or {}))
    return train(
        classifier,
        tokenizer,
        splits,
        toy_config(**changes),
        order or OrderConfig(),
        run_dir,
        guard=guard,
        resume=resume,
        progress=progress or SilentProgress(),
        hooks=hooks,
    )


class Recorder:
    """Keeps all events."""

    def __init__(self) -> None:
        self.steps: list[StepDone] = []
        self.evaluations: list[Evaluated] = []

    def on_step(self, event: StepDone) -> None:
        self.steps.append(event)

    def on_evaluation(self, event: Evaluated) -> None:
        self.evaluations.append(event)

    def close(self) -> None:
        pass


class PulledPlugError(Exception):
    """What `PulledPlug` raises."""


class PulledPlug(Recorder):
    """Ends a training right after a step was logged, before anything else is written."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.last = step

    def on_step(self, event: StepDone) -> None:
        super().on_step(event)
        if event.step == self.last:
            raise PulledPlugError


class Said(SilentProgress):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def say(self, message: str) -> None:
        self.messages.append(message)
