"""Rows tokenised once, before the first step.

Promises: an epoch costs no tokenisation, and a batch only its padding; tokens of rows in the project's
cache lie there too, so that memory does not grow with them and they are cut only once. Where long texts are
cut to windows, each window is a row with its example's labels, and the weights of an example's rows
together are those of any other example.
What is not covered: data without an end (`stream_feed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt
import torch

from textmill.core.progress import SILENT, Progress
from textmill.core.types import Batch, Example
from textmill.data.mapped import MappedExamples
from textmill.encode.collate import Collator
from textmill.encode.long_text import row_weights
from textmill.encode.token_store import TokenStore, store_tokens
from textmill.encode.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """The rows of one side of a split: one for each example, or with windows as many as its text needs."""

    collator: Collator
    encoded: TokenStore  # R
    targets: torch.Tensor  # (R,) int64 class, or (R, C) float32 of 0 and 1 for multi-label
    lengths: npt.NDArray[np.int64]  # (R,) tokens
    ids: RowIds  # R example ids; an id stands at each window of its text
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
        tensors = {name: torch.from_numpy(array) for name, array in self.encoded.padded(positions).items()}
        return Batch(
            input_ids=tensors["input_ids"],
            attention_mask=tensors["attention_mask"],
            token_type_ids=tensors.get("token_type_ids"),
            labels=self.targets[chosen],
            ids=tuple(self.ids.at(positions)),
            lengths=torch.from_numpy(self.lengths[positions]),
            weights=None if self.weights is None else self.weights[chosen],
        )


def encode_rows(
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    labels: Sequence[str],
    *,
    is_multilabel: bool = False,
    progress: Progress = SILENT,
) -> EncodedRows:
    """Tokenise labelled examples.

    Args:
        examples: N rows of a split.
        tokenizer: cuts them.
        labels: the C class names.
        is_multilabel: whether an example may have any number of labels; else it must have one.
        progress: is told how far it is.

    Raises:
        DataError: an example with a label that is not among `labels`, or not with exactly one.
    """
    collator = Collator(tokenizer, labels, is_multilabel=is_multilabel)
    targets = _targets(examples, collator)  # before the long work, since it may refuse
    encoded = store_tokens(examples, tokenizer, progress)
    has_windows = len(encoded) > len(examples)
    return EncodedRows(
        collator,
        encoded,
        targets[torch.from_numpy(np.array(encoded.owner))] if has_windows else targets,
        encoded.lengths,
        RowIds(examples, encoded.owner),
        encoded.owner,
        torch.from_numpy(row_weights(encoded.owner)) if has_windows else None,
    )


class RowIds(Sequence[str]):
    """The ids of rows, read from their examples when they are asked for."""

    def __init__(self, examples: Sequence[Example], owner: npt.NDArray[np.int64]) -> None:
        """Keep the N examples and the (R,) index of the example of each row."""
        self._examples = examples
        self._owner = owner

    def __len__(self) -> int:
        return len(self._owner)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> RowIds: ...
    def __getitem__(self, index: int | slice) -> str | RowIds:
        """Return one id, or a part as another sequence."""
        if isinstance(index, slice):
            return RowIds(self._examples, self._owner[index])
        return self.at(np.array([index]))[0]

    def at(self, rows: npt.NDArray[np.int64]) -> list[str]:
        """Return the ids of the rows (B,), in any order."""
        owners = self._owner[rows]
        if isinstance(self._examples, MappedExamples):
            return self._examples.ids_at(owners)
        return [self._examples[owner].id for owner in owners.tolist()]


def _targets(examples: Sequence[Example], collator: Collator) -> torch.Tensor:
    """Return the (N,) classes or (N, C) labels; of mapped rows each set of labels is looked up once."""
    if not isinstance(examples, MappedExamples) or not len(examples):
        return collator.targets(examples)
    _, firsts, kind = np.unique(examples.label_codes(), return_index=True, return_inverse=True)
    return collator.targets([examples[first] for first in firsts.tolist()])[torch.from_numpy(kind)]


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
