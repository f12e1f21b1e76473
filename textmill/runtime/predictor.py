"""What every opened bundle answers to, whatever runtime is below.

Promises: `scores` answers in the order of the texts although it computes them sorted by length; the
answer for a text does not depend on the texts beside it (to 1e-4); a text in several windows gets the
pooled scores of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from textmill.core.decision import Decision
from textmill.core.types import Scores, Text
from textmill.encode.budget import batches_by_length
from textmill.encode.long_text import Cut
from textmill.encode.padding import Encoded, lengths_of
from textmill.encode.tokenizer import Tokenizer
from textmill.runtime.encoder import TextEncoder

OneBatch: TypeAlias = Callable[[Sequence[Encoded]], Scores]
"""B rows, at least one -> (B, C) float32 probabilities, computed as one batch."""

MAX_TOKENS = 512
"""Rows x longest of a batch on a CPU: larger ones leave its caches (512 gave 1.4 times the rate of 2,048)."""


class BundlePredictor:
    """An opened bundle: a Predictor whose two steps, cut and compute, can be called one by one."""

    def __init__(self, encoder: TextEncoder, one_batch: OneBatch) -> None:
        """Put the text side of a bundle and what computes together; prefer `open.open`."""
        self._encoder = encoder
        self._one_batch = one_batch

    @property
    def labels(self) -> tuple[str, ...]:
        """The C class names, in the order of the columns of the scores."""
        return self._encoder.labels

    @property
    def decision(self) -> Decision:
        """How the scores become classes."""
        return self._encoder.decision

    @property
    def tokenizer(self) -> Tokenizer:
        """The bundle's tokenizer."""
        return self._encoder.tokenizer

    def cut(self, texts: Sequence[Text]) -> Cut:
        """Return the rows of each text, cleaned and cut as in training: several for a text in windows."""
        return self._encoder.cut(texts)

    def scores_encoded(self, encoded: Sequence[Encoded]) -> Scores:
        """Return (B, C) float32 probabilities of B rows, computed as one batch; safe in several threads."""
        if not encoded:
            return np.empty((0, len(self.labels)), dtype=np.float32)
        return self._one_batch(encoded)

    def scores(self, texts: Sequence[Text]) -> Scores:
        """Return (B, C) float32 probabilities in the order of `texts`; B = 0 gives (0, C)."""
        rows, owner = self._encoder.cut(texts)
        return self._encoder.pool(scores_by_length(rows, len(self.labels), self.scores_encoded), owner)


def scores_by_length(
    encoded: Sequence[Encoded],
    num_labels: int,
    one_batch: OneBatch,
    max_tokens: int = MAX_TOKENS,
) -> Scores:
    """Return (B, C) scores in the order given, computed in batches of like lengths.

    Args:
        encoded: B rows.
        num_labels: C.
        one_batch: scores of a few rows.
        max_tokens: bound on rows x longest of a batch.
    """
    scores = np.empty((len(encoded), num_labels), dtype=np.float32)
    for rows in batches_by_length(lengths_of(encoded), max_tokens):
        scores[rows] = one_batch([encoded[row] for row in rows.tolist()])
    return scores
