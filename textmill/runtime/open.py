"""Open a bundle with the runtime of one's choice; only that runtime's libraries are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from textmill.core.errors import StoreError, nearest
from textmill.runtime.predictor import BundlePredictor

RuntimeName: TypeAlias = Literal["onnx", "torch"]
RUNTIMES: tuple[RuntimeName, ...] = ("onnx", "torch")


def open(bundle: Path, runtime: RuntimeName = "onnx", threads: int = 1) -> BundlePredictor:
    """Open a bundle for answers.

    Args:
        bundle: its folder; `Bundle.verify` is the caller's part.
        runtime: what computes.
        threads: processors for one call.

    Raises:
        StoreError: an unknown runtime, or a graph that cannot be loaded.
        ModelError: a model folder that cannot be read.
    """
    if runtime == "onnx":
        from textmill.runtime.onnx import open_onnx

        return open_onnx(bundle, threads)
    if runtime == "torch":
        from textmill.runtime.torch import open_torch

        return open_torch(bundle, threads)
    raise StoreError("The runtime must be known", got=repr(runtime), fix=nearest(runtime, RUNTIMES))
