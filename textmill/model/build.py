"""From `[model]` and `[encode]` to a classifier and its tokenizer.

Promises: the result is a pure function of configs, labels, seed and the backbone's files; what was
dropped, newly initialised or limited is said in the notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textmill.core.errors import ModelError
from textmill.core.seeds import stream_seed, torch_generator
from textmill.core.types import Task
from textmill.encode.config import EncodeConfig
from textmill.encode.source import find_source
from textmill.encode.tokenizer import Tokenizer, load_tokenizer
from textmill.model.backbone import (
    LoadReport,
    config_table,
    load_encoder,
    new_encoder,
    num_embeddings,
    set_class_names,
)
from textmill.model.classifier import Classifier
from textmill.model.config import ModelConfig


@dataclass(frozen=True, slots=True)
class BuildNotes:
    """What the user should know about a model that was just built."""

    sentences: tuple[str, ...]
    """For people, one fact each."""
    report: LoadReport | None
    """What became of the checkpoint's weights; None from scratch."""


def build(
    config: ModelConfig,
    labels: Sequence[str],
    encode: EncodeConfig,
    seed: int,
    task: Task = "classification",
) -> tuple[Classifier, Tokenizer, BuildNotes]:
    """Build a classifier in evaluation mode, on the CPU.

    Args:
        config: the `[model]` table.
        labels: the C class names, in the order of the outputs.
        encode: the `[encode]` table.
        seed: of the training; new weights are drawn from streams of it.
        task: what it will be trained for.

    Raises:
        ModelError: a backbone that is not there, or parts that do not fit.
    """
    report = None
    if config.architecture is None:
        folder = find_source(config.backbone, with_weights=True)
        encoder, report = load_encoder(folder, stream_seed(seed, "encoder"), config.keep_layers)
        tokenizer = load_tokenizer(folder, encode.max_length)
    else:
        if config.keep_layers is not None:
            raise ModelError(
                "model.keep_layers is for pretrained backbones",
                got=f"keep_layers = {config.keep_layers} together with model.architecture",
                fix="Set model.architecture.layers instead.",
            )
        folder = find_source(config.backbone, with_weights=False)
        tokenizer = load_tokenizer(folder, encode.max_length, config={})
        encoder = new_encoder(
            config.architecture, tokenizer.vocab_size, tokenizer.pad_id, stream_seed(seed, "encoder")
        )
        tokenizer = load_tokenizer(folder, encode.max_length, config=config_table(encoder))
    tokenizer = tokenizer.with_long_text(encode.long_text, encode.window_overlap, encode.window_pool)
    _check_vocabulary(tokenizer, num_embeddings(encoder), config.backbone)
    set_class_names(encoder, labels)
    classifier = Classifier(
        encoder,
        labels,
        config,
        max_length=tokenizer.max_length,
        pad_side=tokenizer.pad_side,
        cls_is_last=tokenizer.cls_is_last,
        generator=torch_generator(seed, "head"),
        task=task,
    )
    sentences = (*_sentences(config, report), *tokenizer.notes)
    return classifier.eval(), tokenizer, BuildNotes(sentences, report)


def _check_vocabulary(tokenizer: Tokenizer, rows: int, name: str) -> None:
    if tokenizer.vocab_size > rows:
        raise ModelError(
            "Every id of the tokenizer must have a row in the backbone's embedding",
            got=f"the highest id {tokenizer.vocab_size - 1} and {rows} rows in {name!r}",
            fix="Use the tokenizer that belongs to the weights.",
        )


def _sentences(config: ModelConfig, report: LoadReport | None) -> list[str]:
    sentences = []
    if report is None:
        sentences.append("The encoder starts from random weights (model.architecture).")
        return sentences
    if report.dropped:
        parts = sorted({name.split(".")[0] for name in report.dropped})
        sentences.append(
            f"{len(report.dropped)} weights of the checkpoint's own head were dropped ({', '.join(parts)})."
        )
    if report.new:
        sentences.append(
            f"{len(report.new)} weights are not in the checkpoint and start random ({report.new[0]}, ...)."
        )
    if config.keep_layers is not None:
        kept = "layer" if config.keep_layers == 1 else f"{config.keep_layers} layers"
        sentences.append(
            f"Of the backbone only the first {kept} {'is' if config.keep_layers == 1 else 'are'} kept."
        )
    return sentences
