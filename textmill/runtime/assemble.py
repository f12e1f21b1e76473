"""From a trained classifier to the folder that the store publishes.

    model/         safetensors, tokenizer, labels, cleaning rules
    model.onnx     the same as a graph, proven against torch
    golden.json    texts with torch's answers
    gate.parquet   rows on which the gate compares
    ...            what the caller adds: project.toml, report.json, card.md

Promise: the folder is there with all its parts or not at all.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from textmill.core.files import disk_faults, remove_tree
from textmill.core.progress import SILENT, Progress
from textmill.core.types import Example, Text
from textmill.data.config import CleanConfig
from textmill.encode.tokenizer import Tokenizer
from textmill.model.classifier import Classifier
from textmill.model.files import save
from textmill.model.predictor import TorchPredictor
from textmill.runtime.encoder import CLEAN_FACT, MODEL, TextEncoder
from textmill.runtime.export import export_onnx
from textmill.runtime.gate_rows import GATE_ROWS, write_gate_rows
from textmill.runtime.golden import GOLDEN, make_golden, odd_texts, write_golden
from textmill.runtime.onnx import GRAPH
from textmill.runtime.open import RUNTIMES
from textmill.runtime.predictor import BundlePredictor
from textmill.store.manifest import Facts, Signature


def prepare_bundle(
    folder: Path,
    classifier: Classifier,
    tokenizer: Tokenizer,
    *,
    clean: CleanConfig,
    golden_texts: Sequence[Text],
    gate_rows: Sequence[Example],
    metrics: Mapping[str, float],
    extra: Sequence[Path] = (),
    data_fingerprint: str | None = None,
    parent: int | None = None,
    progress: Progress = SILENT,
) -> Facts:
    """Write the folder of a new version and return what its manifest will say.

    Args:
        folder: where to; must not be there yet.
        classifier: the trained model.
        tokenizer: its tokenizer.
        clean: the rules by which its training text was repaired.
        golden_texts: some texts of the user's own, of many lengths.
        gate_rows: labelled rows that the model has never seen.
        metrics: metrics on the untouched test rows.
        extra: files to copy beside the model.
        data_fingerprint: hash of the training data.
        parent: the version that the model continues.
        progress: who watches.

    Raises:
        ModelError: the model does not export to ONNX with torch's answers.
        StoreError: the disk cannot take it.
    """
    try:
        with disk_faults(folder):
            folder.mkdir(parents=True)
            save(classifier, tokenizer, folder / MODEL, {CLEAN_FACT: clean.model_dump(mode="json")})
            export_onnx(classifier, tokenizer, folder / GRAPH, progress=progress)
            predictor = TorchPredictor(classifier, tokenizer)
            reference = BundlePredictor(TextEncoder.open(folder), predictor.scores_encoded)
            write_golden(
                folder / GOLDEN, make_golden(reference, [*golden_texts, *odd_texts(classifier.task)])
            )
            is_multilabel = classifier.decision.is_multilabel
            write_gate_rows(folder / GATE_ROWS, gate_rows, is_multilabel=is_multilabel)
            for path in extra:
                shutil.copyfile(path, folder / path.name)
    except BaseException:
        remove_tree(folder)
        raise
    return Facts(
        signature=_signature(classifier, tokenizer),
        metrics=dict(metrics),
        parent=parent,
        data_fingerprint=data_fingerprint,
    )


def _signature(classifier: Classifier, tokenizer: Tokenizer) -> Signature:
    settings, decision = tokenizer.settings, classifier.decision
    is_cut_to_windows = settings.long_text == "windows"
    places = range(len(classifier.labels))
    return Signature(
        task=classifier.task,
        labels=classifier.labels,
        thresholds=tuple(map(decision.threshold_of, places)) if decision.is_multilabel else None,
        max_length=tokenizer.max_length,
        long_text=settings.long_text,
        window_overlap=settings.window_overlap if is_cut_to_windows else None,
        window_pool=settings.window_pool if is_cut_to_windows else None,
        tokenizer=hashlib.sha256(tokenizer.json_bytes).hexdigest(),
        runtimes=RUNTIMES,
    )
