"""A classifier as one ONNX file whose batch and length are free, proven against torch before it is kept.

Promises: the file gives torch's logits to 1e-4 for every batch of 1, 2, 7 and 33 rows at lengths 2, 3 and
the longest, and so its probabilities, by softmax or by a sigmoid for each class; a graph with a frozen
axis or a wrong mask never leaves this module; the file holds only standard operators (opset 17 or later)
and its own weights.
What is not covered: weights of 2 GiB and more (ONNX needs several files for them).
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from textmill.core.decision import Decision
from textmill.core.errors import ModelError, StoreError
from textmill.core.machine import num_cpus
from textmill.core.progress import SILENT, Progress
from textmill.core.seeds import numpy_generator
from textmill.encode.padding import Encoded, pad
from textmill.encode.tokenizer import Tokenizer
from textmill.model.classifier import Classifier
from textmill.runtime.onnx import open_session

if TYPE_CHECKING:
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

PARITY = 1e-4
"""How far a logit may be off, relative to the largest logit where that is above 1."""
GRID_ROWS = (1, 2, 7, 33)
GRID_LENGTHS = (2, 3)
_OPSET = 17
"""The first with LayerNormalization as one operator."""
_MAX_BYTES = 2**31 - 2**20
_Arrays = dict[str, "NDArray[np.int64]"]


@dataclass(frozen=True, slots=True)
class Exported:
    """What came out of an export."""

    exporter: str
    """Which of torch's exporters made the graph."""
    opset: int
    """Version of the standard operators."""
    worst: float
    """Largest difference to torch over the grid."""


def export_onnx(
    classifier: Classifier, tokenizer: Tokenizer, path: Path, *, progress: Progress = SILENT
) -> Exported:
    """Write a classifier's graph to `path` and prove it on the grid.

    The tracing exporter comes first: it takes one second where torch.export's takes seven, and its graphs
    ran 2 to 4 % faster; where it fails or its graph does not hold on the grid, the other is tried.

    Args:
        classifier: the model; its mode is kept.
        tokenizer: its tokenizer, for padding and for the ids of the grid.
        path: the file to write.
        progress: who watches the proof.

    Raises:
        ModelError: no exporter gives a graph with torch's answers; no file is left.
    """
    _check_weights(classifier)
    reasons = []
    with _frozen(classifier):
        for name, exporter in (("trace", _export_traced), ("dynamo", _export_captured)):
            try:
                with _quiet():
                    exporter(classifier, _example(classifier, tokenizer), path)
                worst = check_parity(classifier, tokenizer, path, progress=progress)
            except OSError:
                raise  # the disk, which another exporter would not mend
            except Exception as err:
                # An exporter raises whatever the model's code raises while it is traced.
                logger.info("The exporter %s does not fit this model: %s", name, err)
                reasons.append(f"{name}: {' '.join(str(err).split())[:150]}")
                path.unlink(missing_ok=True)
                continue
            return Exported(name, _opset_of(path), worst)
    raise ModelError(
        "A model must export to ONNX with free batch and length",
        got="; ".join(reasons),
        fix="Choose another backbone or pooling, or serve it with the torch runtime.",
    )


def check_parity(
    classifier: Classifier, tokenizer: Tokenizer, graph: Path, *, progress: Progress = SILENT
) -> float:
    """Return the largest difference of logits and of probabilities between a graph and torch over the grid.

    Raises:
        StoreError: the graph cannot be loaded, fails on a shape, or differs by more than 1e-4.
    """
    session = open_session(graph, num_cpus())
    lengths = (*GRID_LENGTHS, tokenizer.max_length)
    vocab_size = tokenizer.vocab_size
    worst = 0.0
    with progress.task("check the ONNX graph", len(GRID_ROWS) * len(lengths)) as task:
        for rows in GRID_ROWS:
            for length in lengths:
                arrays = _grid_batch(tokenizer, vocab_size, rows, length)
                with torch.inference_mode():
                    expected = classifier(**_tensors(arrays))
                worst = max(worst, _difference(session, arrays, expected, classifier.decision, graph.name))
                task.advance()
    return worst


def _difference(
    session: onnxruntime.InferenceSession, arrays: _Arrays, logits: Tensor, decision: Decision, graph: str
) -> float:
    expected = logits.numpy()
    rule, fix = f"{graph} must run at every batch and length", "Export it again."
    shape = "{} rows x {} tokens".format(*arrays["input_ids"].shape)
    try:
        (got,) = session.run(None, {each.name: arrays[each.name] for each in session.get_inputs()})
    except Exception as err:
        # onnxruntime's errors have no base but Exception.
        raise StoreError(rule, got=f"{' '.join(str(err).split())[:150]} at {shape}", fix=fix) from err
    if got.shape != expected.shape:
        raise StoreError(rule, got=f"{got.shape} in place of {expected.shape} at {shape}", fix=fix)
    difference = float(np.abs(got - expected).max()) / max(1.0, float(np.abs(expected).max()))
    if not difference <= PARITY:  # also true for NaN
        raise StoreError(
            f"{graph} must give torch's logits to {PARITY:g}", got=f"{difference:.3g} at {shape}", fix=fix
        )
    # A large logit may be off by more, and the runtime has its own softmax and sigmoid.
    shares = (logits.sigmoid() if decision.is_multilabel else logits.softmax(-1)).numpy()
    apart = float(np.abs(decision.probabilities(got) - shares).max())
    if not apart <= PARITY:
        raise StoreError(
            f"{graph} must give torch's probabilities to {PARITY:g}", got=f"{apart:.3g} at {shape}", fix=fix
        )
    return max(difference, apart)


def _export_traced(classifier: Classifier, arrays: _Arrays, path: Path) -> None:
    axes = {name: {0: "batch", 1: "length"} for name in arrays}
    torch.onnx.export(
        classifier,
        tuple(_tensors(arrays).values()),
        str(path),
        input_names=list(arrays),
        output_names=["logits"],
        dynamic_axes={**axes, "logits": {0: "batch"}},
        opset_version=_OPSET,
        dynamo=False,
    )


def _export_captured(classifier: Classifier, arrays: _Arrays, path: Path) -> None:
    free = torch.export.Dim.DYNAMIC
    torch.onnx.export(
        classifier,
        tuple(_tensors(arrays).values()),
        str(path),
        input_names=list(arrays),
        output_names=["logits"],
        dynamic_shapes=tuple({0: free, 1: free} for _ in arrays),
        external_data=False,
        dynamo=True,
        verbose=False,
    )


def _grid_batch(tokenizer: Tokenizer, vocab_size: int, rows: int, length: int) -> _Arrays:
    """Return rows of random ids: the first as long as asked for, the others from 1 token up."""
    rng = numpy_generator(0, "export", rows, length)
    encoded = []
    for row in range(rows):
        num = length if row == 0 else int(rng.integers(1, length + 1))
        ids = rng.integers(0, vocab_size, size=num, dtype=np.int32)
        type_ids = np.sort(rng.integers(0, 2, size=num, dtype=np.int32)) if tokenizer.has_type_ids else None
        encoded.append(Encoded(ids, type_ids))
    return pad(encoded, tokenizer.pad_id, tokenizer.pad_side, tokenizer.has_type_ids)


def _example(classifier: Classifier, tokenizer: Tokenizer) -> _Arrays:
    """Return the batch that is traced: of no size 1, with the inputs that the encoder reads."""
    arrays = _grid_batch(tokenizer, tokenizer.vocab_size, 2, min(16, tokenizer.max_length))
    if not classifier.reads_type_ids:
        arrays.pop("token_type_ids", None)
    return arrays


def _tensors(arrays: _Arrays) -> dict[str, Tensor]:
    return {name: torch.from_numpy(values) for name, values in arrays.items()}


@contextlib.contextmanager
def _frozen(classifier: Classifier) -> Iterator[None]:
    """Hold a classifier in evaluation mode, on the CPU, with attention in plain operators."""
    was_training = classifier.training
    device = next(classifier.parameters()).device
    encoder: Any = classifier.encoder
    attention = encoder.config._attn_implementation
    classifier.eval().to("cpu")
    if attention != "eager":
        encoder.set_attn_implementation("eager")  # fewer operators than the graph of the fused kernel
    try:
        with torch.inference_mode():
            yield
    finally:
        if attention != "eager":
            encoder.set_attn_implementation(attention)
        classifier.train(was_training).to(device)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporters' notes on their own insides (deprecations, traced shapes) from users.

    What they warn of, an axis or a branch frozen while tracing, is what the grid then checks.
    """
    exporter_log = logging.getLogger("torch.onnx")
    level = exporter_log.level
    exporter_log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        exporter_log.setLevel(level)


def _check_weights(classifier: Classifier) -> None:
    num_bytes = sum(value.numel() * value.element_size() for value in classifier.state_dict().values())
    if num_bytes >= _MAX_BYTES:
        raise ModelError(
            "A model must be below 2 GiB to fit one ONNX file",
            got=f"{num_bytes / 2**30:.1f} GiB of weights",
            fix="Choose a smaller backbone, or set model.keep_layers.",
        )
    lost = [name for name, value in classifier.named_parameters() if not torch.isfinite(value).all()]
    if lost:
        raise ModelError(
            "The weights of a model must be finite numbers",
            got=f"NaN or infinity in {len(lost)} tensors ({lost[0]}, ...)",
            fix="Training diverged: train again with a lower train.lr.",
        )


def _opset_of(path: Path) -> int:
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    return int(next(each.version for each in model.opset_import if each.domain == ""))
