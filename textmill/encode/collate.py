"""Rows to batches of torch tensors.

Promises: contiguous int64 tensors, float32 for the labels of multi-label rows; works as `collate_fn` of a
torch DataLoader and as `data_collator` of transformers.Trainer.
What is not covered: texts in windows (a batch has one row for each of its items).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from textmill.core.errors import DataError, nearest
from textmill.core.types import Batch, Example
from textmill.encode.padding import Encoded, lengths_of, pad
from textmill.encode.tokenizer import Tokenizer

Row: TypeAlias = Example | Mapping[str, Any]
"""An example, or what a Hugging Face data set gives: `input_ids`, perhaps `token_type_ids`, `label(s)`."""


class Collator:
    """Pads rows to one batch."""

    def __init__(
        self, tokenizer: Tokenizer, labels: Sequence[str] = (), *, is_multilabel: bool = False
    ) -> None:
        """Keep the tokenizer.

        Args:
            tokenizer: cuts the texts and knows how to pad.
            labels: the C class names in the order of the model; empty if no row has a label.
            is_multilabel: whether a row may have any number of labels.
        """
        self.is_multilabel = is_multilabel
        self.tokenizer = tokenizer
        self.labels = tuple(labels)
        self._index = {label: index for index, label in enumerate(self.labels)}

    def __call__(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """Return `input_ids`, `attention_mask`, perhaps `token_type_ids` (B, T), and `labels`.

        `labels` is (B,) int64, or (B, C) float32 of 0 and 1 for multi-label rows.
        """
        examples = [row for row in rows if isinstance(row, Example)]
        if len(examples) == len(rows):
            encoded = self.tokenizer.encode([example.text for example in examples])
            is_labelled = any(e.labels for e in examples) or (self.is_multilabel and bool(self.labels))
            labels = self.targets(examples) if is_labelled else None
        else:
            encoded = [_encoded(row) for row in rows if isinstance(row, Mapping)]
            assert len(encoded) == len(rows), "a batch must hold rows of one kind"
            labels = self._given_labels([row for row in rows if isinstance(row, Mapping)])
        tensors = self._tensors(encoded)
        if labels is not None:
            tensors["labels"] = labels
        return tensors

    def batch(
        self,
        encoded: Sequence[Encoded],
        labels: torch.Tensor | None = None,
        ids: Sequence[str] = (),
        weights: torch.Tensor | None = None,
    ) -> Batch:
        """Return rows that are already encoded as a `Batch`; `labels` as `targets` gives them."""
        tensors = self._tensors(encoded)
        return Batch(
            input_ids=tensors["input_ids"],
            attention_mask=tensors["attention_mask"],
            token_type_ids=tensors.get("token_type_ids"),
            labels=labels,
            ids=tuple(ids),
            lengths=torch.from_numpy(lengths_of(encoded)),
            weights=weights,
        )

    def targets(self, examples: Sequence[Example]) -> torch.Tensor:
        """Return the (B,) int64 class of each example, or (B, C) float32 of 0 and 1 for multi-label.

        Raises:
            DataError: a label that the model does not know, or not exactly one for a single-label model.
        """
        if not self.is_multilabel:
            return self.class_indices(examples)
        targets = torch.zeros(len(examples), len(self.labels))
        for row, example in enumerate(examples):
            for label in example.labels:
                targets[row, self._place(label, example)] = 1
        return targets

    def class_indices(self, examples: Sequence[Example]) -> torch.Tensor:
        """Return the (B,) int64 class of each example.

        Raises:
            DataError: an example has no label, several, or one that the model does not know.
        """
        return torch.tensor([self._class_index(example) for example in examples], dtype=torch.int64)

    def _class_index(self, example: Example) -> int:
        if len(example.labels) != 1:
            raise DataError(
                "An example must have exactly one label",
                got=f"{len(example.labels)} labels at example {example.id!r}",
                fix="Give it one label or leave it out.",
            )
        return self._place(example.labels[0], example)

    def _place(self, label: str, example: Example) -> int:
        index = self._index.get(label)
        if index is None:
            raise DataError(
                "A label must be one of the model's classes",
                got=f"{label!r} at example {example.id!r}",
                fix=nearest(label, self.labels),
            )
        return index

    def _given_labels(self, rows: Sequence[Mapping[str, Any]]) -> torch.Tensor | None:
        key = next((name for name in ("labels", "label") if rows and name in rows[0]), None)
        if key is None:
            return None
        if self.is_multilabel:  # as transformers has it: a number for each class
            return torch.tensor([[float(value) for value in row[key]] for row in rows], dtype=torch.float32)
        return torch.tensor([int(row[key]) for row in rows], dtype=torch.int64)

    def _tensors(self, encoded: Sequence[Encoded]) -> dict[str, torch.Tensor]:
        door = self.tokenizer
        arrays = pad(encoded, door.pad_id, door.pad_side, door.has_type_ids)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _encoded(row: Mapping[str, Any]) -> Encoded:
    type_ids = row.get("token_type_ids")
    return Encoded(
        np.asarray(row["input_ids"], dtype=np.int32),
        None if type_ids is None else np.asarray(type_ids, dtype=np.int32),
    )
