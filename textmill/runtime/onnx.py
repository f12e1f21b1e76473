"""A bundle on ONNX Runtime: the default on CPUs. Door of the library onnxruntime.

Promises: opening and answering load NumPy, tokenizers and onnxruntime, neither torch nor transformers;
`scores_encoded` may be called from several threads at once on one session, which is how to use more than
one core without the costs of a thread pool (open with `threads=1`).
What is not covered: GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnxruntime

from textmill.core.errors import StoreError
from textmill.core.types import Scores
from textmill.encode.padding import Encoded, pad
from textmill.runtime.encoder import TextEncoder
from textmill.runtime.predictor import BundlePredictor

GRAPH = "model.onnx"
"""The file of a bundle with the graph and its weights."""
_SLOWER_ALONE = ["SkipLayerNormFusion"]
"""Fusions that cost more than they gain: on x86 the fused kernel of addition and layer norm made batches
of a 6-layer BERT 6 to 11 % slower than the two operators."""


def open_onnx(bundle: Path, threads: int) -> BundlePredictor:
    """Open a bundle on ONNX Runtime.

    Args:
        bundle: its folder; verified by the caller.
        threads: processors for one call.

    Raises:
        StoreError: the graph cannot be loaded.
        ModelError: the model folder cannot be read.
    """
    session = open_session(bundle / GRAPH, threads)
    encoder = TextEncoder.open(bundle)
    tokenizer = encoder.tokenizer
    inputs = [each.name for each in session.get_inputs()]

    def one_batch(encoded: Sequence[Encoded]) -> Scores:
        arrays = pad(encoded, tokenizer.pad_id, tokenizer.pad_side, tokenizer.has_type_ids)
        (logits,) = session.run(None, {name: arrays[name] for name in inputs})
        return encoder.decision.probabilities(logits)

    return BundlePredictor(encoder, one_batch)


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
