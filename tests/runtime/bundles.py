"""Bundles of a tiny real model, made once for all tests of a module."""

from __future__ import annotations

from pathlib import Path

from tests.toy import toy_classifier, toy_examples
from textmill.data.config import CleanConfig
from textmill.runtime.assemble import prepare_bundle
from textmill.store.manifest import Facts


def prepare_toy_bundle(folder: Path, num_gate_rows: int = 60, *, classes: int = 2, **changes) -> Facts:
    """Write the folder of a tiny, untrained model; `changes` go to `toy_classifier`."""
    labels = tuple(f"class{index}" for index in range(classes))
    classifier, tokenizer = toy_classifier(labels, **changes)
    examples = toy_examples(num_gate_rows, classes=classes)
    return prepare_bundle(
        folder,
        classifier,
        tokenizer,
        clean=CleanConfig(),
        golden_texts=[example.text for example in examples[:5]],
        gate_rows=examples,
        metrics={"accuracy": 0.5},
    )
