"""Small real models of every shape: what they read, what they choose, and how long texts are cut."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.toy import toy_classifier, toy_examples
from textmill.core.decision import Decision
from textmill.core.types import Example, Task, Text
from textmill.data.config import CleanConfig
from textmill.encode.config import LongText, WindowPool
from textmill.encode.tokenizer import Tokenizer
from textmill.model.classifier import Classifier
from textmill.model.predictor import TorchPredictor
from textmill.runtime.assemble import prepare_bundle
from textmill.store.manifest import Facts

ODD = (
    "a great film",
    "",
    "the worst and most boring story " * 12,
    "[SEP] [PAD] </s>",
    "\u8fd9\u90e8\u7535\u5f71\u5f88\u597d \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "half of an emoji \ud83d here",
    "caf&eacute;",
    "x",
    "a great film",
)
"""Texts that real data may hold; the longest is longer than a small model reads."""
ODD_PAIRS = tuple(zip(ODD, (ODD[4], ODD[2], *ODD[1:2], "good", *ODD[2:6], "another"), strict=True))


@dataclass(frozen=True)
class Shape:
    """A kind of model."""

    task: Task = "classification"
    classes: int = 2
    long_text: LongText = "head"
    pool: WindowPool = "mean"
    max_length: int = 24

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the class names."""
        return tuple(f"class{index}" for index in range(self.classes))

    @property
    def odd_texts(self) -> list[Text]:
        """Return odd texts of the kind that the model reads."""
        return list(ODD_PAIRS if self.task == "pairs" else ODD)

    def examples(self, num: int, seed: int = 0) -> list[Example]:
        """Return rows of the shape's kind; of several labels every third row has two and some have none."""
        rows = toy_examples(num, classes=2, seed=seed)
        others = toy_examples(num, classes=2, seed=seed + 1)
        return [self._example(place, row, others[place]) for place, row in enumerate(rows)]

    def parts(self, seed: int = 0) -> tuple[Classifier, Tokenizer]:
        """Return an untrained model and its tokenizer; thresholds lie amid the scores of the odd texts."""
        classifier, tokenizer = toy_classifier(
            self.labels, max_length=self.max_length, seed=seed, task=self.task
        )
        tokenizer = tokenizer.with_long_text(self.long_text, 0.25, self.pool)
        if self.task == "multilabel":
            middle = np.median(TorchPredictor(classifier, tokenizer).scores(self.odd_texts), axis=0)
            classifier.decision = Decision(True, tuple(middle.round(6).tolist()))
        return classifier, tokenizer

    def prepare(self, folder: Path, *, seed: int = 0, num_gate_rows: int = 60) -> Facts:
        """Write the folder of a version."""
        classifier, tokenizer = self.parts(seed)
        rows = self.examples(num_gate_rows, seed=7)
        return prepare_bundle(
            folder,
            classifier,
            tokenizer,
            clean=CleanConfig(),
            golden_texts=[row.text for row in rows[:5]],
            gate_rows=rows,
            metrics={"accuracy": 0.5},
        )

    def _example(self, place: int, row: Example, other: Example) -> Example:
        text: Text = row.text
        if self.task == "pairs":
            text = (str(row.text), str(other.text))
        labels = tuple(label for label in row.labels if label in self.labels) or self.labels[:1]
        if self.task == "multilabel":
            labels = self.labels if place % 3 == 0 else labels if place % 4 else ()
        return Example(f"toy:{place}", text, labels)


SHAPES = {
    "single": Shape(),
    "multilabel": Shape("multilabel", classes=3),
    "multilabel, 1 class": Shape("multilabel", classes=1),
    "pairs": Shape("pairs"),
    "tail": Shape(long_text="tail"),
    "head-tail": Shape(long_text="head-tail"),
    "windows": Shape(long_text="windows"),
    "windows, max": Shape(long_text="windows", pool="max", max_length=16),
    "windows of pairs": Shape("pairs", long_text="windows"),
    "windows, multilabel": Shape("multilabel", classes=3, long_text="windows", pool="max"),
}
