"""Golden answers: texts with the scores that a bundle gave when it was made, kept inside it.

Promises: a bundle whose weights, tokenizer, cleaning or runtime give other answers than at publishing is
found before it answers anyone; the difference is told with the text. The answers come from torch, so that
they check ONNX as well.
What is not covered: whether the answers are right (the gate compares with the live version).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import Field, ValidationError

from textmill.core.config import Config
from textmill.core.errors import StoreError
from textmill.core.files import write_json
from textmill.core.types import Predictor, Task, Text
from textmill.store.bundle import Bundle

GOLDEN = "golden.json"
"""The file of a bundle with its golden answers."""
TOLERANCE = 1e-3
"""How far a probability may be off: float32 on other processors stays below 1e-4, a wrong weight does not."""
ODD_TEXTS: tuple[str, ...] = (
    "",
    "a",
    "[SEP] [PAD] </s>",
    "\u8fd9\u90e8\u7535\u5f71 mixed with English \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "caf&eacute; &amp; cafe\u0301",
    "a long text that goes on and on " * 100,
)
"""What real data may lack: no letter, one letter, special tokens as text, two scripts, entities, length."""


class GoldenRow(Config):
    """One text and its answer."""

    text: str | tuple[str, str]
    """The text, or a pair."""
    scores: tuple[float, ...]
    """The C probabilities."""


class Golden(Config):
    """All golden answers of a bundle."""

    labels: tuple[str, ...]
    """The C class names, in the order of the scores."""
    tolerance: float = Field(default=TOLERANCE, gt=0)
    """How far a probability may be off."""
    rows: tuple[GoldenRow, ...] = Field(min_length=1)
    """Texts with answers."""


def odd_texts(task: Task) -> list[Text]:
    """Return the odd texts as a model of the task reads them: pairs beside themselves and beside the next."""
    if task != "pairs":
        return list(ODD_TEXTS)
    return [*((text, text) for text in ODD_TEXTS), *itertools.pairwise(ODD_TEXTS)]


def make_golden(predictor: Predictor, texts: Sequence[Text]) -> Golden:
    """Return the answers of `predictor`.

    Args:
        predictor: the reference.
        texts: some of the user's own, of many lengths, and the odd ones.
    """
    scores = predictor.scores(texts)
    rows = [GoldenRow(text=text, scores=tuple(row)) for text, row in zip(texts, scores.tolist(), strict=True)]
    return Golden(labels=predictor.labels, rows=tuple(rows))


def write_golden(path: Path, golden: Golden) -> None:
    """Write the answers as JSON."""
    write_json(path, golden.model_dump(mode="json"))


def read_golden(path: Path) -> Golden:
    """Read golden answers.

    Raises:
        StoreError: no such file, or no golden answers in it.
    """
    try:
        return Golden.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError, ValidationError) as err:
        raise StoreError(
            "A bundle must hold golden answers",
            got=f"{path} ({' '.join(str(err).split())[:120]})",
            fix="Publish the version again.",
        ) from err


def check_golden(bundle: Bundle, predictor: Predictor) -> float:
    """Ask `predictor` the golden texts of its bundle and return the largest difference.

    Raises:
        StoreError: other labels, a score that is not a number, or a difference above the tolerance.
    """
    golden = read_golden(bundle.file(GOLDEN))
    if predictor.labels != golden.labels:
        raise StoreError(
            "The labels must be those of the golden answers",
            got=f"{', '.join(predictor.labels)} in place of {', '.join(golden.labels)}",
            fix="Publish the version again.",
        )
    expected = np.array([row.scores for row in golden.rows], dtype=np.float32)
    got = predictor.scores([row.text for row in golden.rows])
    differences = np.where(np.isfinite(got), np.abs(got - expected), np.inf).max(axis=1)
    worst = int(differences.argmax())
    if differences[worst] > golden.tolerance:
        row = golden.rows[worst]
        answer = f"{_shown(got[worst].tolist())} in place of {_shown(row.scores)}"
        raise StoreError(
            f"Version {bundle.version} must repeat its golden answers to {golden.tolerance:g}",
            got=f"{answer} for the text {str(row.text)[:60]!r}",
            fix="Runtime or libraries differ from those at publishing: publish the version again here.",
        )
    return float(differences[worst])


def _shown(scores: Sequence[float]) -> str:
    return "[" + ", ".join(f"{score:.4f}" for score in scores[:8]) + (", ...]" if len(scores) > 8 else "]")
