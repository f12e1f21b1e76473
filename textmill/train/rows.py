"""Rows tokenised once, before the first step.

Promises: an epoch costs no tokenisation, and a batch only its padding; ids stay int32 until then. Where
long texts are cut to windows, each window is a row with its example's labels, and the weights of an
example's rows together are those of any other example.
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
from textmill.encode.long_text import row_weights
from textmill.encode.padding import Encoded, lengths_of
from textmill.encode.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """The rows of one side of a split: one for each example, or with windows as many as its text needs."""

    collator: Collator
    encoded: list[Encoded]  # R
    targets: torch.Tensor  # (R,) int64 class, or (R, C) float32 of 0 and 1 for multi-label
    lengths: npt.NDArray[np.int64]  # (R,) tokens
    ids: Sequence[str]  # R example ids; an id stands at each window of its text
    owner: npt.NDArray[np.int64]  # (R,) index of the example of each row, ascending
    weights: torch.Tensor | None = None  # (R,) float32 of mean 1, where examples have several rows

    def __len__(self) -> int:
        return len(self.encoded)

    @property
    def num_examples(self) -> int:
        """Examples, each of which has at least one row."""
        return int(self.owner[-1]) + 1 if len(self.owner) else 0

    @property
    def class_index(self) -> npt.NDArray[np.int64]:
        """(R,) one class a row, to balance batches by: of several labels the rarest, C where none is."""
        return balance_class(self.targets)

    def batch(self, positions: npt.NDArray[np.int64]) -> Batch:
        """Return the rows at `positions` (B,), padded to the longest of them, on the CPU."""
        chosen = torch.from_numpy(positions)
        return self.collator.batch(
            [self.encoded[position] for position in positions.tolist()],
            self.targets[chosen],
            [self.ids[position] for position in positions.tolist()],
            None if self.weights is None else self.weights[chosen],
        )


def encode_rows(
    examples: Sequence[Example], tokenizer: Tokenizer, labels: Sequence[str], *, is_multilabel: bool = False
) -> EncodedRows:
    """Tokenise labelled examples.

    Args:
        examples: N rows of a split.
        tokenizer: cuts them.
        labels: the C class names.
        is_multilabel: whether an example may have any number of labels; else it must have one.

    Raises:
        DataError: an example with a label that is not among `labels`, or not with exactly one.
    """
    collator = Collator(tokenizer, labels, is_multilabel=is_multilabel)
    encoded, owner = tokenizer.cut([example.text for example in examples])
    targets = collator.targets(examples)
    ids = [example.id for example in examples]
    has_windows = len(encoded) > len(examples)
    return EncodedRows(
        collator,
        encoded,
        targets[torch.from_numpy(owner)] if has_windows else targets,
        lengths_of(encoded),
        tuple(ids[index] for index in owner.tolist()) if has_windows else tuple(ids),
        owner,
        torch.from_numpy(row_weights(owner)) if has_windows else None,
    )


def balance_class(targets: torch.Tensor) -> npt.NDArray[np.int64]:
    """Return (R,) one class for each row: its own, or of several labels the rarest, or C for none.

    Args:
        targets: (R,) int64, or (R, C) float32 of 0 and 1.
    """
    if targets.ndim == 1:
        return targets.numpy()
    counts = targets.sum(dim=0)  # (C,)
    rarity = torch.where(targets > 0.5, counts, torch.inf)  # (R, C)
    rarest = rarity.argmin(dim=1)
    return torch.where(targets.sum(dim=1) > 0, rarest, targets.shape[1]).numpy()


def logits_of(classifier: torch.nn.Module, batch: Batch, device: torch.device) -> torch.Tensor:
    """Return the (B, C) float32 logits of a batch, computed on `device`."""
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    if batch.token_type_ids is not None:
        inputs["token_type_ids"] = batch.token_type_ids
    logits: torch.Tensor = classifier(**{name: t.to(device, non_blocking=True) for name, t in inputs.items()})
    return logits.float()
