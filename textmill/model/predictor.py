"""A classifier as a Predictor on torch.

Promises: answers come in the order of the texts although they are computed sorted by length; the
answer for a text does not depend on the texts beside it (to 1e-4); a text in several windows gets the
pooled scores of all of them; no gradients, no dropout.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from textmill.core.decision import Decision
from textmill.core.types import Scores, Text
from textmill.encode.budget import batches_by_length
from textmill.encode.collate import Collator
from textmill.encode.long_text import pool_scores
from textmill.encode.padding import Encoded, lengths_of
from textmill.encode.tokenizer import Tokenizer
from textmill.model.classifier import Classifier


class TorchPredictor:
    """Answers for a classifier."""

    def __init__(
        self,
        classifier: Classifier,
        tokenizer: Tokenizer,
        device: str | torch.device = "cpu",
        max_tokens: int = 2048,
    ) -> None:
        """Move the classifier to `device`.

        Args:
            classifier: the model.
            tokenizer: its tokenizer.
            device: where to compute.
            max_tokens: bound on rows x longest of a batch; memory grows with it.
        """
        self.tokenizer = tokenizer
        self.device = torch.device(device)
        self.classifier = classifier.to(self.device)
        self.max_tokens = max_tokens
        self._collator = Collator(tokenizer)

    @property
    def labels(self) -> tuple[str, ...]:
        """The C class names, in the order of the columns of `scores`."""
        return self.classifier.labels

    @property
    def decision(self) -> Decision:
        """How the scores become classes."""
        return self.classifier.decision

    def scores(self, texts: Sequence[Text]) -> Scores:
        """Return (B, C) float32 probabilities in the order of `texts`; B = 0 gives (0, C)."""
        rows, owner = self.tokenizer.cut(texts)
        pool = self.tokenizer.settings.window_pool
        return pool_scores(self.scores_encoded(rows), owner, pool, self.decision.is_multilabel)

    def scores_encoded(self, encoded: Sequence[Encoded]) -> Scores:
        """Return (B, C) float32 probabilities of rows that are already encoded."""
        scores = np.empty((len(encoded), len(self.labels)), dtype=np.float32)
        was_training = self.classifier.training
        self.classifier.eval()
        try:
            with torch.inference_mode():
                for rows in batches_by_length(lengths_of(encoded), self.max_tokens):
                    batch = self._collator.batch([encoded[row] for row in rows.tolist()])
                    scores[rows] = self._probabilities(
                        batch.input_ids, batch.attention_mask, batch.token_type_ids
                    )
        finally:
            self.classifier.train(was_training)
        return scores

    def _probabilities(
        self, input_ids: torch.Tensor, mask: torch.Tensor, type_ids: torch.Tensor | None
    ) -> Scores:
        logits = self.classifier(
            input_ids.to(self.device),
            mask.to(self.device),
            None if type_ids is None else type_ids.to(self.device),
        )
        is_multilabel = self.classifier.decision.is_multilabel
        probabilities: Scores = (logits.sigmoid() if is_multilabel else logits.softmax(-1)).cpu().numpy()
        return probabilities
