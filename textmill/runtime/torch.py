"""A bundle on torch: the reference, and the runtime for GPUs.

Promises: the same answers as `runtime/onnx.py` to 1e-4 (each publish checks it); once open, nothing that
happens to the files reaches the answers.
What is not covered: several processes.
"""

from __future__ import annotations

from pathlib import Path

import torch

from textmill.model.files import load
from textmill.model.predictor import TorchPredictor
from textmill.runtime.encoder import MODEL, TextEncoder
from textmill.runtime.predictor import BundlePredictor


def open_torch(bundle: Path, threads: int) -> BundlePredictor:
    """Open a bundle on torch, on the CPU.

    Args:
        bundle: its folder; verified by the caller.
        threads: processors for one call; torch has one number for the whole process, which is set here.

    Raises:
        ModelError: the model folder cannot be read.
    """
    torch.set_num_threads(threads)
    classifier, tokenizer = load(bundle / MODEL)
    for parameter in classifier.parameters():
        # The loaded ones lie in the mapped file, and go or die with it when it is overwritten.
        parameter.data = parameter.data.clone()
    return BundlePredictor(TextEncoder.open(bundle), TorchPredictor(classifier, tokenizer).scores_encoded)
