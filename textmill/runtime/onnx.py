"""A bundle on ONNX Runtime: the default on CPUs. Door of the library onnxruntime.

Promises: opening and answering load NumPy, tokenizers and onnxruntime, neither torch nor transformers;
`scores_encoded` may be called from several threads at once on one session, which is how to use more than
one core without the costs of a thread pool (open with `threads=1`).
What is not covered: GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime

from textmill.core.errors import StoreError
from textmill.core.types import Scores, Text
from textmill.encode.padding import Encoded, pad
from textmill.encode.tokenizer import Tokenizer
from textmill.runtime.encoder import TextEncoder
from textmill.runtime.predictor import scores_by_length, softmax

GRAPH = "model.onnx"
"""The file of a bundle with the graph and its weights."""
_SLOWER_ALONE = ["SkipLayerNormFusion"]
"""Fusions that cost more than they gain: on x86 the fused kernel of addition and layer norm made batches
of a 6-layer BERT 6 to 11 % slower than the two operators."""


class OnnxPredictor:
    """Answers for a bundle by its ONNX graph."""

    def __init__(self, session: onnxruntime.InferenceSession, encoder: TextEncoder) -> None:
        """Put a session and its text side together; prefer `open_onnx`."""
        self._session = session
        self._encoder = encoder
        self._inputs = [each.name for each in session.get_inputs()]

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
        """Return (B, C) float32 probabilities of B rows, computed as one batch."""
        if not encoded:
            return np.empty((0, len(self.labels)), dtype=np.float32)
        tokenizer = self.tokenizer
        arrays = pad(encoded, tokenizer.pad_id, tokenizer.pad_side, tokenizer.has_type_ids)
        (logits,) = self._session.run(None, {name: arrays[name] for name in self._inputs})
        return softmax(logits)

    def scores(self, texts: Sequence[Text]) -> Scores:
        """Return (B, C) float32 probabilities in the order of `texts`; B = 0 gives (0, C)."""
        return scores_by_length(self.encode(texts), len(self.labels), self.scores_encoded)


def open_onnx(bundle: Path, threads: int) -> OnnxPredictor:
    """Open a bundle on ONNX Runtime.

    Args:
        bundle: its folder; verified by the caller.
        threads: processors for one call.

    Raises:
        StoreError: the graph cannot be loaded.
        ModelError: the model folder cannot be read.
    """
    return OnnxPredictor(open_session(bundle / GRAPH, threads), TextEncoder.open(bundle))


def open_session(graph: Path, threads: int) -> onnxruntime.InferenceSession:
    """Return a CPU session that takes `threads` processors while it computes and none while it waits.

    Raises:
        StoreError: the graph cannot be loaded.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            str(graph), options, providers=["CPUExecutionProvider"], disabled_optimizers=_SLOWER_ALONE
        )
    except Exception as err:
        # onnxruntime's own errors (NoSuchFile, InvalidProtobuf, Fail, ...) have no base but Exception.
        raise StoreError(
            f"{graph} must be a graph that ONNX Runtime {onnxruntime.__version__} can load",
            got=" ".join(str(err).split())[:200],
            fix="Publish the version again, or open it with the torch runtime.",
        ) from err
