"""Real small versions in a store, and their right answers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from tests.toy import toy_classifier, toy_examples
from textmill.core.types import Scores
from textmill.data.config import CleanConfig
from textmill.runtime.assemble import prepare_bundle
from textmill.runtime.open import open as open_bundle
from textmill.serve.load import Expected
from textmill.store.bundle import Bundle
from textmill.store.manifest import Facts
from textmill.store.registry import Store

MODEL = "m"
TEXTS = tuple(str(example.text) for example in toy_examples(64, seed=5))


@cache
def _source(folder: Path, seed: int) -> tuple[Path, Facts]:
    source = folder / f"seed-{seed}"
    classifier, tokenizer = toy_classifier(seed=seed)
    facts = prepare_bundle(
        source,
        classifier,
        tokenizer,
        clean=CleanConfig(),
        golden_texts=list(TEXTS[:8]),
        gate_rows=toy_examples(16, seed=6),
        metrics={"accuracy": 0.5},
    )
    return source, facts


class Shelf:
    """A store for one test, and the prepared folders that all tests share."""

    def __init__(self, sources: Path, root: Path) -> None:
        self._sources = sources
        self.root = root
        self.store = Store(root, MODEL)

    def publish(self, seed: int, *, live: bool = False) -> int:
        """Publish the toy model of a seed; different seeds answer differently."""
        source, facts = _source(self._sources, seed)
        version = self.store.publish(source, facts)
        if live:
            self.store.set_live(version, "for a test")
        return version

    def corrupt(self, version: int) -> None:
        """Change one byte in the middle of a version's graph."""
        path = self.store.bundle(version).path / "model.onnx"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.chmod(0o644)
        path.write_bytes(bytes(content))

    def expected(self, *versions: int) -> dict[int, Expected]:
        """Return the right answers of versions to `TEXTS`."""
        return {version: expected_of(self.store.bundle(version)) for version in versions}


def expected_of(bundle: Bundle) -> Expected:
    """Return a bundle's answers to `TEXTS`, one text at a time."""
    predictor = open_bundle(bundle.path, "onnx", threads=1)
    rows: list[Scores] = [predictor.scores([text]) for text in TEXTS]
    return Expected(tuple(predictor.labels), np.concatenate(rows))
