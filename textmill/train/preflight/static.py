"""What can be told without a forward pass, in milliseconds: `train` says it before its first step, too.

The learning rates stand for what such backbones take. Pretrained base models: 2e-5 to 5e-5 (Devlin et al.
2019), up to 2e-4 for small distilled ones; of large ones (300 million weights) many runs fail from 5e-5 on
(Mosbach, Andriushchenko, Klakow 2021). From scratch: about 1e-4 to 1e-2.
"""

from __future__ import annotations

from collections.abc import Iterator

from textmill.data.findings.finding import Finding
from textmill.encode.tokenizer import Tokenizer
from textmill.model.backbone import LoadReport, num_embeddings
from textmill.model.build import BuildNotes
from textmill.model.classifier import Classifier
from textmill.train.config import TrainConfig
from textmill.train.preflight.vocabulary import (
    find_in_kinship,
    find_in_sizes,
    measure_kinship,
    read_vocabulary,
)

_LARGE = 200_000_000  # weights
_PRETRAINED, _PRETRAINED_LARGE, _SCRATCH = (1e-6, 5e-4), (1e-7, 1e-4), (1e-5, 2e-2)
_WIDE_HEAD = 50_000_000


def find_before_steps(
    classifier: Classifier, tokenizer: Tokenizer, notes: BuildNotes, config: TrainConfig
) -> list[Finding]:
    """Return what does not fit by sizes, names and settings alone.

    Args:
        classifier: just built.
        tokenizer: of its backbone.
        notes: of the building.
        config: the `[train]` table.
    """
    num_weights = sum(parameter.numel() for parameter in classifier.parameters())
    return [
        *find_in_report(notes.report, len(classifier.encoder.state_dict())),
        *find_in_sizes(tokenizer.vocab_size, num_embeddings(classifier.encoder)),
        *find_in_lr(config.lr, notes.report is not None, num_weights),
        *find_in_pooling(classifier, tokenizer),
    ]


def find_foreign_tokenizer(classifier: Classifier, tokenizer: Tokenizer, notes: BuildNotes) -> list[Finding]:
    """Return that the ids pick the wrong rows of a pretrained embedding (a tenth of a second)."""
    if notes.report is None:
        return []
    embedding = classifier.encoder.get_input_embeddings().weight  # type: ignore[operator]
    vocabulary = read_vocabulary(tokenizer.json_bytes)
    return list(find_in_kinship(measure_kinship(vocabulary, embedding.detach().float().cpu().numpy())))


def find_in_report(report: LoadReport | None, num_tensors: int) -> Iterator[Finding]:
    """Yield weights that the checkpoint did not give."""
    if report is None or not report.new:
        return
    share = len(report.new) / num_tensors
    message = (
        f"{len(report.new)} of {num_tensors} weight tensors of the encoder are not in the checkpoint and "
        f"start random: {', '.join(report.new[:3])}"
    )
    if report.dropped:
        message += f"; the checkpoint has {len(report.dropped)} that fit nowhere, such as {report.dropped[0]}"
    fix = "Rename the checkpoint's weights to what config.json's architecture expects, or take another one."
    yield Finding("weights_not_loaded", "error" if share > 0.2 else "warning", message, fix)


def find_in_lr(lr: float, is_pretrained: bool, num_weights: int) -> Iterator[Finding]:
    """Yield a learning rate far outside what such a backbone takes."""
    low, high = _SCRATCH
    kind = "a model from scratch"
    if is_pretrained:
        low, high = _PRETRAINED_LARGE if num_weights >= _LARGE else _PRETRAINED
        kind = f"a pretrained model of {num_weights / 1e6:.0f} million weights"
    if not low <= lr <= high:
        side = "high" if lr > high else "low"
        message = f"train.lr = {lr:g} is {side} for {kind}, which takes {low:g} to {high:g}"
        yield Finding(
            f"lr_{side}",
            "warning",
            message,
            "Set train.lr = 2e-5." if is_pretrained else "Set train.lr = 1e-3.",
        )


def find_in_pooling(classifier: Classifier, tokenizer: Tokenizer) -> Iterator[Finding]:
    """Yield a way of pooling that the tokenizer or the length does not suit."""
    pooling = classifier.config.pooling
    if pooling == "cls" and len(tokenizer.tokens("")) == 0:
        message = "pooling 'cls' reads the first token, but this tokenizer puts none for the whole text there"
        yield Finding("pooling", "warning", message, 'Set model.pooling = "mean" (or "last" for a decoder).')
    num_head = sum(parameter.numel() for parameter in classifier.head.parameters())
    if pooling == "flatten" and num_head > _WIDE_HEAD:
        size = f"{num_head / 1e6:.0f} million weights"
        message = f"pooling 'flatten' of {classifier.max_length} tokens gives the head {size}"
        yield Finding(
            "pooling", "warning", message, 'Lower encode.max_length, or set model.pooling = "mean".'
        )
