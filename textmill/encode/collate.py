"""Rows to batches of torch tensors.

Promises: contiguous int64 tensors; works as `collate_fn` of a torch DataLoader and as
`data_collator` of transformers.Trainer.
What is not covered: multi-label rows (a row has one label or none).
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

    def __init__(self, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> None:
        """Keep the tokenizer.

        Args:
            tokenizer: cuts the texts and knows how to pad.
            labels: the C class names in the order of the model; empty if no row has a label.
        """
        self.tokenizer = tokenizer
        self.labels = tuple(labels)
        self._index = {label: index for index, label in enumerate(self.labels)}

    def __call__(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """Return `input_ids`, `attention_mask`, perhaps `token_type_ids` (B, T), and `labels` (B,)."""
        examples = [row for row in rows if isinstance(row, Example)]
        if len(examples) == len(rows):
            encoded = self.tokenizer.encode([example.text for example in examples])
            labels = self.class_indices(examples) if any(e.labels for e in examples) else None
        else:
            encoded = [_encoded(row) for row in rows if isinstance(row, Mapping)]
            assert len(encoded) == len(rows), "a batch must hold rows of one kind"
            labels = _given_labels([row for row in rows if isinstance(row, Mapping)])
        tensors = self._tensors(encoded)
        if labels is not None:
            tensors["labels"] = labels
        return tensors

    def batch(
        self, encoded: Sequence[Encoded], labels: torch.Tensor | None = None, ids: Sequence[str] = ()
    ) -> Batch:
        """Return rows that are already encoded as a `Batch`; `labels` is (B,) int64."""
        tensors = self._tensors(encoded)
        return Batch(
            input_ids=tensors["input_ids"],
            attention_mask=tensors["attention_mask"],
            token_type_ids=tensors.get("token_type_ids"),
            labels=labels,
            ids=tuple(ids),
            lengths=torch.from_numpy(lengths_of(encoded)),
        )

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
        index = self._index.get(example.labels[0])
        if index is None:
            raise DataError(
                "A label must be one of the model's classes",
                got=f"{example.labels[0]!r} at example {example.id!r}",
                fix=nearest(example.labels[0], self.labels),
            )
        return index

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


def _given_labels(rows: Sequence[Mapping[str, Any]]) -> torch.Tensor | None:
    key = next((name for name in ("labels", "label") if rows and name in rows[0]), None)
    return None if key is None else torch.tensor([int(row[key]) for row in rows], dtype=torch.int64)
