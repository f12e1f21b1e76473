"""Rows tokenised once, before the first step.

Promise: an epoch costs no tokenisation, and a batch only its padding; ids stay int32 until then.
What is not covered: data larger than memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from textmill.core.types import Batch, Example
from textmill.encode.collate import Collator
from textmill.encode.padding import Encoded, lengths_of
from textmill.encode.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """The rows of one side of a split."""

    collator: Collator
    encoded: list[Encoded]  # N
    class_index: torch.Tensor  # (N,) int64
    lengths: npt.NDArray[np.int64]  # (N,) tokens
    ids: Sequence[str]  # N example ids

    def __len__(self) -> int:
        return len(self.encoded)

    def batch(self, positions: npt.NDArray[np.int64]) -> Batch:
        """Return the rows at `positions` (B,), padded to the longest of them, on the CPU."""
        rows = [self.encoded[position] for position in positions.tolist()]
        ids = [self.ids[position] for position in positions.tolist()]
        return self.collator.batch(rows, self.class_index[torch.from_numpy(positions)], ids)


def encode_rows(examples: Sequence[Example], tokenizer: Tokenizer, labels: Sequence[str]) -> EncodedRows:
    """Tokenise examples that have one label each.

    Raises:
        DataError: an example without a label, with several, or with one that is not among `labels`.
    """
    collator = Collator(tokenizer, labels)
    encoded = tokenizer.encode([example.text for example in examples])
    ids = tuple(example.id for example in examples)
    return EncodedRows(collator, encoded, collator.class_indices(examples), lengths_of(encoded), ids)


def logits_of(classifier: torch.nn.Module, batch: Batch, device: torch.device) -> torch.Tensor:
    """Return the (B, C) float32 logits of a batch, computed on `device`."""
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    if batch.token_type_ids is not None:
        inputs["token_type_ids"] = batch.token_type_ids
    logits: torch.Tensor = classifier(**{name: t.to(device, non_blocking=True) for name, t in inputs.items()})
    return logits.float()
