"""A classifier as a folder: safetensors and JSON, nothing else.

    config.json, model.safetensors       the encoder, as AutoModel.from_pretrained reads it
    tokenizer.json, tokenizer_config.json    the tokenizer, as AutoTokenizer.from_pretrained reads it
    tokenizer_settings.json              length limit, rule for long texts, padding
    head.safetensors                     the head's weights
    textmill.json                        task, labels, thresholds, `[model]`, facts from the caller

Promises: a folder appears whole or not at all; when one replaces another, both exist until the new
one is in place (between two renames a reader may find none); file modes are those the umask allows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError

from textmill.core.config import parse_config
from textmill.core.decision import Decision, decision_of
from textmill.core.errors import ModelError
from textmill.core.files import disk_faults, fsync_folder, fsync_tree, remove_tree, write_json
from textmill.core.seeds import torch_generator
from textmill.encode.settings import read_table
from textmill.encode.tokenizer import Tokenizer
from textmill.model.backbone import restore_encoder, save_encoder
from textmill.model.classifier import Classifier
from textmill.model.config import ModelConfig

FORMAT = 1
_DESCRIPTION = "textmill.json"
_HEAD = "head.safetensors"


def save(
    classifier: Classifier, tokenizer: Tokenizer, folder: Path, facts: Mapping[str, Any] | None = None
) -> None:
    """Write a model folder; an older one of the same name is replaced.

    Args:
        classifier: the model.
        tokenizer: its tokenizer.
        folder: where to; its parents are made.
        facts: JSON values that belong to the model (the cleaning rules of its texts), given back by
            `read_facts`.

    Raises:
        StoreError: no room, or a forbidden folder; an older folder is then untouched.
    """
    staging = folder.with_name(f".staging-{folder.name}-{os.getpid()}-{os.urandom(4).hex()}")
    with disk_faults(folder):
        try:
            staging.mkdir(parents=True)
            save_encoder(classifier.encoder, staging)
            weights = {name: value.contiguous() for name, value in classifier.head.state_dict().items()}
            safetensors.torch.save_file(weights, staging / _HEAD, metadata={"format": "pt"})
            tokenizer.save(staging)
            write_json(staging / _DESCRIPTION, _describe(classifier, facts or {}))
            _obey_umask(staging)
            fsync_tree(staging)
            _put_in_place(staging, folder)
        except BaseException:
            remove_tree(staging)
            raise


def load(folder: Path) -> tuple[Classifier, Tokenizer]:
    """Load a model folder; the classifier is in evaluation mode on the CPU.

    Raises:
        ModelError: a folder that is missing, damaged or of a newer textmill.
    """
    description = _read_description(folder)
    config = parse_config(ModelConfig, description["model"], str(folder / _DESCRIPTION))
    tokenizer = Tokenizer.from_file(folder, description["max_length"])
    classifier = Classifier(
        restore_encoder(folder),
        description["labels"],
        config,
        max_length=description["max_length"],
        pad_side=tokenizer.pad_side,
        cls_is_last=tokenizer.cls_is_last,
        generator=torch_generator(0, "head"),
        task=description.get("task", "classification"),
        thresholds=description.get("thresholds"),
    )
    try:
        classifier.head.load_state_dict(safetensors.torch.load_file(folder / _HEAD))
    except (OSError, SafetensorError, RuntimeError) as err:
        raise ModelError(
            "A model folder must hold a head that fits textmill.json",
            got=f"{folder / _HEAD} ({' '.join(str(err).split())[:200]})",
            fix="Copy the folder again or train again.",
        ) from err
    return classifier.eval(), tokenizer


def read_facts(folder: Path) -> dict[str, Any]:
    """Return the facts given to `save`."""
    facts: dict[str, Any] = _read_description(folder)["facts"]
    return facts


def read_labels(folder: Path) -> tuple[str, ...]:
    """Return the class names of a saved model, in the order of its outputs; loads no weights."""
    return tuple(_read_description(folder)["labels"])


def read_decision(folder: Path) -> Decision:
    """Return how the scores of a saved model become classes; loads no weights."""
    description = _read_description(folder)
    return decision_of(description.get("task", "classification"), description.get("thresholds"))


def _describe(classifier: Classifier, facts: Mapping[str, Any]) -> dict[str, Any]:
    thresholds = classifier.decision.thresholds
    return {
        "format": FORMAT,
        "task": classifier.task,
        "labels": list(classifier.labels),
        "thresholds": None if thresholds is None else list(thresholds),
        "max_length": classifier.max_length,
        "model": classifier.config.model_dump(mode="json"),
        "facts": dict(facts),
    }


def _read_description(folder: Path) -> dict[str, Any]:
    table = read_table(folder / _DESCRIPTION)
    if not table:
        raise ModelError(
            f"A model folder must hold {_DESCRIPTION}",
            got=f"{folder} without it",
            fix="Give the folder `model` of a run or of a version in the store.",
        )
    if table.get("format") != FORMAT:
        raise ModelError(
            f"A model folder must be of format {FORMAT}",
            got=f"format {table.get('format')!r} in {folder}",
            fix="Use the textmill version that wrote it.",
        )
    return table


def _put_in_place(staging: Path, folder: Path) -> None:
    """Swap folders by two renames; nothing is deleted before the new one stands."""
    old = staging.with_name(staging.name.replace(".staging-", ".old-", 1))
    if folder.exists():
        folder.rename(old)
    try:
        staging.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    fsync_folder(folder.parent)
    remove_tree(old)


def _obey_umask(folder: Path) -> None:
    """Give all files one mode: safetensors writes 0600 whatever the umask is."""
    umask = os.umask(0o077)
    os.umask(umask)
    for path in folder.iterdir():
        path.chmod(0o666 & ~umask)
