"""A bundle on torch: the reference, and the runtime for GPUs.

Promises: the same answers as `runtime/onnx.py` to 1e-4 (each publish checks it).
What is not covered: several processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from textmill.core.types import Scores, Text
from textmill.encode.padding import Encoded
from textmill.encode.tokenizer import Tokenizer
from textmill.model.files import load
from textmill.model.predictor import TorchPredictor
from textmill.runtime.encoder import MODEL, TextEncoder
from textmill.runtime.predictor import scores_by_length


class TorchBundle:
    """Answers for a bundle by its safetensors."""

    def __init__(self, predictor: TorchPredictor, encoder: TextEncoder) -> None:
        """Put a predictor and its text side together; prefer `open_torch`."""
        self._predictor = predictor
        self._encoder = encoder

    @property
    def labels(self) -> tuple[str, ...]:
        """The C class names, in the order of the columns of the scores."""
        return self._encoder.labels

    @property
    def tokenizer(self) -> Tokenizer:
        """The bundle's tokenizer."""
        return self._encoder.tokenizer

    def encode(self, texts: Sequence[Text]) -> list[Encoded]:
        """Return the token ids of each text, cleaned and cut as in training."""
        return self._encoder.encode(texts)

    def scores_encoded(self, encoded: Sequence[Encoded]) -> Scores:
        """Return (B, C) float32 probabilities of B rows."""
        return self._predictor.scores_encoded(encoded)

    def scores(self, texts: Sequence[Text]) -> Scores:
        """Return (B, C) float32 probabilities in the order of `texts`; B = 0 gives (0, C)."""
        return scores_by_length(self.encode(texts), len(self.labels), self.scores_encoded)


def open_torch(bundle: Path, threads: int) -> TorchBundle:
    """Open a bundle on torch, on the CPU.

    Args:
        bundle: its folder; verified by the caller.
        threads: processors for one call; torch has one number for the whole process, which is set here.

    Raises:
        ModelError: the model folder cannot be read.
    """
    torch.set_num_threads(threads)
    classifier, tokenizer = load(bundle / MODEL)
    return TorchBundle(TorchPredictor(classifier, tokenizer), TextEncoder.open(bundle))
