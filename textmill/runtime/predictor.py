"""What every opened bundle answers to, whatever runtime is below.

Promises: `scores` answers in the order of the texts although it computes them sorted by length; the
answer for a text does not depend on the texts beside it (to 1e-4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from textmill.core.types import Scores, Text
from textmill.encode.budget import batches_by_length
from textmill.encode.padding import Encoded, lengths_of
from textmill.encode.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_TOKENS = 512
"""Rows x longest of a batch on a CPU: larger ones leave its caches (512 gave 1.4 times the rate of 2,048)."""


@runtime_checkable
class BundlePredictor(Protocol):
    """An opened bundle: a Predictor whose two steps can be called one by one."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The C class names, in the order of the columns of the scores."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """The bundle's tokenizer."""
        ...

    def encode(self, texts: Sequence[Text]) -> list[Encoded]:
        """Return the token ids of each text, cleaned and cut as in training."""
        ...

    def scores_encoded(self, encoded: Sequence[Encoded]) -> Scores:
        """Return (B, C) float32 probabilities of B rows, computed as one batch; safe in several threads."""
        ...

    def scores(self, texts: Sequence[Text]) -> Scores:
        """Return (B, C) float32 probabilities in the order of `texts`; B = 0 gives (0, C)."""
        ...


def scores_by_length(
    encoded: Sequence[Encoded],
    num_labels: int,
    one_batch: Callable[[Sequence[Encoded]], Scores],
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


def softmax(logits: NDArray[np.float32]) -> Scores:
    """Return probabilities (B, C) of logits (B, C)."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    probabilities: Scores = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return probabilities
