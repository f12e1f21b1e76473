"""The few types on which everything hangs.

Shape letters used in all comments of this project: B rows of a batch, T tokens of the longest row,
C classes, H hidden size, N rows of a data set.

What is not covered: how these are made (`data/`, `encode/`) or used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

    from textmill.core.decision import Decision

Task: TypeAlias = Literal["classification", "pairs", "multilabel"]
"""What a classifier does: one class a text, one class a pair of texts, any number of classes a text."""
Text: TypeAlias = str | tuple[str, str]
"""What a model reads: one text, or a pair of texts."""


@dataclass(frozen=True, slots=True)
class Example:
    """One row of data: an id that never changes, its text, and the names of its labels."""

    id: str
    """The user's own id, or file and row number."""
    text: Text
    """One string, or a pair for sentence-pair tasks."""
    labels: tuple[str, ...] = ()
    """Class names: one for single-label tasks; for multi-label any number, sorted, each once.

    In multi-label data a row without a name is a labelled row to which no class applies; rows that
    nobody labelled never become examples of a split.
    """


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows padded to one length, ready for a model."""

    input_ids: torch.Tensor  # (B, T) int64
    attention_mask: torch.Tensor  # (B, T) int64, 1 where a token is
    token_type_ids: torch.Tensor | None  # (B, T) int64, for backbones that have them
    labels: torch.Tensor | None  # (B,) int64 class index, or (B, C) float32 for multi-label
    ids: tuple[str, ...]  # B example ids
    lengths: torch.Tensor  # (B,) int64, tokens before padding
    weights: torch.Tensor | None = None  # (B,) float32, how much a row counts; None: each 1


Scores: TypeAlias = "npt.NDArray[np.float32]"
"""(B, C) probabilities; rows sum to 1 for single-label tasks, each stands alone for multi-label."""


@runtime_checkable
class Predictor(Protocol):
    """Anything that answers for classification: a model, an ONNX session, an ensemble, a baseline."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The C class names, in the order of the columns of `scores`."""
        ...

    @property
    def decision(self) -> Decision:
        """How the scores become classes."""
        ...

    def scores(self, texts: Sequence[Text]) -> Scores:
        """Return (B, C) float32 probabilities in the order of `texts`; B = 0 gives (0, C)."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a generated text has to stop."""

    max_new_tokens: int = 256
    stop: tuple[str, ...] = ()


@runtime_checkable
class Generator(Protocol):
    """Anything that answers with text."""

    def stream(self, prompt: str, limits: Limits) -> Iterator[str]:
        """Yield pieces of text whose concatenation is the answer."""
        ...
