"""The classifier: encoder, pooling, head, and how its answers are read.

Promises: a text's logits do not depend on the rows beside it (to rounding); forward has no control
flow on data or shapes, so that it exports to ONNX with free batch and length.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from textmill.core.decision import Decision, decision_of
from textmill.core.types import Task
from textmill.encode.padding import PadSide
from textmill.model.backbone import hidden_size, takes_positions, takes_type_ids
from textmill.model.config import ModelConfig
from textmill.model.dropout import replace_dropout
from textmill.model.heads import Head
from textmill.model.pooling import Pool


class Classifier(nn.Module):
    """Token ids to logits."""

    def __init__(
        self,
        encoder: nn.Module,
        labels: Sequence[str],
        config: ModelConfig,
        *,
        max_length: int,
        pad_side: PadSide,
        cls_is_last: bool,
        generator: torch.Generator,
        task: Task = "classification",
        thresholds: Sequence[float] | None = None,
    ) -> None:
        """Put a new head on an encoder; prefer `build` and `load`.

        Args:
            encoder: a transformers encoder of width H.
            labels: the C class names.
            config: pooling and head.
            max_length: longest row in tokens.
            pad_side: side of the padding in the batches that will come.
            cls_is_last: whether the tokenizer puts its token for the whole text last.
            generator: source of the head's weights.
            task: what it is trained for; it decides how logits become probabilities, not the layers.
            thresholds: of the C classes of a multi-label model; None for 0.5 each.
        """
        super().__init__()
        assert len(labels) >= 1, "a classifier needs a class"
        self.labels = tuple(labels)
        self.task: Task = task
        self.decision: Decision = decision_of(task, thresholds)
        """How scores become classes; training puts the thresholds that it found here."""
        self.config = config
        self.max_length = max_length
        self.pad_side: PadSide = pad_side
        self.cls_is_last = cls_is_last
        self.reads_type_ids = takes_type_ids(encoder)
        # With the padding on the left, position 0 must be the first token, not the first pad.
        self.counts_positions = pad_side == "left" and takes_positions(encoder)
        replace_dropout(encoder)
        self.encoder = encoder
        self.pool = Pool(config.pooling, max_length, pad_side, cls_is_last)
        width = hidden_size(encoder)
        hidden = () if config.head == "linear" else (config.head_sizes or (width, width))
        sizes = (self.pool.width(width), *hidden, len(self.labels))
        self.head = Head(sizes, config.activation, config.dropout, generator)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Return (B, C) float32 logits.

        Args:
            input_ids: (B, T) int64.
            attention_mask: (B, T) int64, 1 where a token is.
            token_type_ids: (B, T) int64, for backbones that have them.
        """
        extra = {"token_type_ids": token_type_ids} if self.reads_type_ids else {}
        if self.counts_positions:
            extra["position_ids"] = (attention_mask.cumsum(1) - 1).clamp(min=0)
        output = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **extra)
        pooled = self.pool(output.last_hidden_state, attention_mask)
        logits: Tensor = self.head(pooled).float()
        return logits
