"""The door to transformers' encoders: pretrained, or from scratch by an architecture.

Promises: weights are float32; no code from a checkpoint is run (trust_remote_code is never set); a
checkpoint's language-model head and pooler are left out and that is said; a checkpoint that does
not fit is a `ModelError`; no global random state and no logging setting of transformers is changed
for others.
What is not covered: encoder-decoder models (T5, BART), quantised checkpoints; ConvBERT's convolutions see
padding (a text's scores then move by about 1e-4 with the batch).
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
from transformers.utils import logging as transformers_logging

from textmill.core.errors import ModelError, nearest
from textmill.encode.settings import position_offset
from textmill.model.config import ArchitectureConfig

_MOST = 0.5
"""With a larger share of the weights missing than this, a checkpoint is of another architecture."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What became of a checkpoint's weights."""

    dropped: tuple[str, ...]
    """Weights of the checkpoint that the encoder has no place for (a language-model head)."""
    new: tuple[str, ...]
    """Weights of the encoder that the checkpoint does not have; they start random."""


def load_encoder(folder: Path, seed: int, keep_layers: int | None = None) -> tuple[nn.Module, LoadReport]:
    """Load a pretrained encoder.

    Args:
        folder: with config.json and weights.
        seed: for weights that the checkpoint does not have.
        keep_layers: keep only the first n layers; None for all.

    Returns:
        The encoder in evaluation mode, float32, and what became of the weights.

    Raises:
        ModelError: no model there, an encoder-decoder, or weights that do not fit.
    """
    config = _read_config(folder)
    layers = int(config.num_hidden_layers)
    if keep_layers is not None:
        if keep_layers > layers:
            raise ModelError(
                "model.keep_layers must not exceed the layers of the backbone",
                got=f"{keep_layers}, where {folder} has {layers}",
                fix=f"Use 1 to {layers}, or leave the key out.",
            )
        _cut_layers(config, keep_layers)
    try:
        with _quiet(), _seeded(seed):
            encoder, info = transformers.AutoModel.from_pretrained(
                str(folder),
                config=config,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # _check_fit refuses them, with the number
                local_files_only=True,
                trust_remote_code=False,
                **_without_pooler(config),
            )
    except Exception as err:
        # OSError, ValueError, RuntimeError, KeyError, SafetensorError and others were seen here.
        raise _unreadable(folder, err) from err
    _check_fit(encoder, info, folder)
    _refuse_maskless(encoder, str(folder))
    was_cut = keep_layers is not None and keep_layers < layers
    dropped = [name for name in info["unexpected_keys"] if not _is_expected(name, was_cut)]
    return encoder.eval(), LoadReport(tuple(sorted(dropped)), tuple(sorted(info["missing_keys"])))


def new_encoder(architecture: ArchitectureConfig, vocab_size: int, pad_id: int, seed: int) -> nn.Module:
    """Return an encoder from scratch, its weights a pure function of `seed`.

    Raises:
        ModelError: an unknown model type or setting, or numbers that do not fit each other.
    """
    if architecture.model_type not in MODEL_MAPPING_NAMES:
        raise ModelError(
            "model.architecture.model_type must be one that transformers knows",
            got=repr(architecture.model_type),
            fix=nearest(architecture.model_type, ("bert", "roberta", "distilbert", "electra", "xlnet")),
        )
    settings = _architecture_settings(architecture, vocab_size, pad_id)
    try:
        with _quiet(), _seeded(seed):
            config = transformers.AutoConfig.for_model(architecture.model_type, **settings)
            _refuse_decoder(config, architecture.model_type)
            encoder = transformers.AutoModel.from_config(
                config, dtype=torch.float32, **_without_pooler(config)
            )
    except ModelError:
        raise
    except Exception as err:
        # Each architecture checks its numbers in its own way (ValueError, AssertionError, validation errors).
        raise ModelError(
            "The numbers of model.architecture must fit each other",
            got=" ".join(str(err).split())[:300],
            fix="heads must divide hidden_size; see the model type's own config in transformers.",
        ) from err
    _refuse_maskless(encoder, architecture.model_type)
    module: nn.Module = encoder.eval()
    return module


def restore_encoder(folder: Path) -> nn.Module:
    """Load an encoder saved by textmill: every weight must be there.

    Raises:
        ModelError: a damaged folder.
    """
    encoder, report = load_encoder(folder, seed=0)
    if report.new:
        raise ModelError(
            "A saved model must hold every weight of its encoder",
            got=f"{folder} without {len(report.new)} of them ({report.new[0]}, ...)",
            fix="Copy the folder again or train again.",
        )
    return encoder


def save_encoder(encoder: nn.Module, folder: Path) -> None:
    """Write config.json and model.safetensors, so that `AutoModel.from_pretrained` reads them."""
    assert isinstance(encoder, transformers.PreTrainedModel), "only transformers' encoders are saved"
    with _quiet():
        encoder.save_pretrained(str(folder))


def takes_type_ids(encoder: nn.Module) -> bool:
    """Return whether the encoder's forward reads token_type_ids."""
    return "token_type_ids" in inspect.signature(encoder.forward).parameters


def takes_positions(encoder: nn.Module) -> bool:
    """Return whether the encoder counts positions from the left edge and lets the caller count instead.

    RoBERTa types count their own from the first token that is not the pad.
    """
    assert isinstance(encoder, transformers.PreTrainedModel)
    own = position_offset(encoder.config.model_type, 0) > 0
    return not own and "position_ids" in inspect.signature(encoder.forward).parameters


def hidden_size(encoder: nn.Module) -> int:
    """Return H, the width of the encoder's output."""
    assert isinstance(encoder, transformers.PreTrainedModel)
    return int(encoder.config.hidden_size)


def config_table(encoder: nn.Module) -> dict[str, Any]:
    """Return the encoder's config.json as a table."""
    assert isinstance(encoder, transformers.PreTrainedModel)
    table: dict[str, Any] = encoder.config.to_dict()
    for name in ("max_position_embeddings", "num_hidden_layers", "pad_token_id"):
        table.setdefault(name, getattr(encoder.config, name, None))
    return table


def set_class_names(encoder: nn.Module, labels: Sequence[str]) -> None:
    """Write the class names into the encoder's config, where other tools look for them."""
    assert isinstance(encoder, transformers.PreTrainedModel)
    encoder.config.id2label = dict(enumerate(labels))
    encoder.config.label2id = {label: index for index, label in enumerate(labels)}


def num_embeddings(encoder: nn.Module) -> int:
    """Return how many token ids the encoder has vectors for."""
    assert isinstance(encoder, transformers.PreTrainedModel)
    return int(encoder.get_input_embeddings().weight.shape[0])


def _read_config(folder: Path) -> Any:
    try:
        config = transformers.AutoConfig.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except Exception as err:
        # OSError (no file), ValueError (unknown type), KeyError, validation errors.
        raise _unreadable(folder, err) from err
    _refuse_decoder(config, str(folder))
    return config


def _refuse_decoder(config: Any, name: str) -> None:
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            "A backbone must be an encoder (or a decoder alone)",
            got=f"{name!r}, an encoder-decoder of type {config.model_type}",
            fix="Choose a BERT-type model, for example bert-base-uncased.",
        )


def _refuse_maskless(encoder: nn.Module, name: str) -> None:
    if "attention_mask" not in inspect.signature(encoder.forward).parameters:
        # FNet mixes all positions: a text's answer would depend on the padding beside it.
        raise ModelError(
            "A backbone must read an attention mask",
            got=f"{name!r}, whose forward has none",
            fix="Choose a BERT-type model, for example bert-base-uncased.",
        )


def _architecture_settings(arch: ArchitectureConfig, vocab_size: int, pad_id: int) -> dict[str, Any]:
    default = transformers.AutoConfig.for_model(arch.model_type)
    wide = arch.intermediate_size or 4 * arch.hidden_size
    wanted: dict[str, bool | int | float | str] = {
        "vocab_size": vocab_size,
        "pad_token_id": pad_id,
        "num_hidden_layers": arch.layers,
        "hidden_size": arch.hidden_size,
        "num_attention_heads": arch.heads,
        "max_position_embeddings": arch.max_positions + position_offset(arch.model_type, pad_id),
        # One idea, three names: BERT, DistilBERT, XLNet.
        "intermediate_size": wide,
        "hidden_dim": wide,
        "d_inner": wide,
        "d_head": arch.hidden_size // arch.heads,
        "embedding_size": arch.hidden_size,
        "hidden_dropout_prob": arch.dropout,
        "attention_probs_dropout_prob": arch.dropout,
        "dropout": arch.dropout,
        "attention_dropout": arch.dropout,
    }
    settings: dict[str, Any] = {name: value for name, value in wanted.items() if _has_setting(default, name)}
    for name, value in arch.extra.items():
        if not _has_setting(default, name):
            raise ModelError(
                "A key of model.architecture.extra must be a setting of the model type",
                got=f"{name!r} for {arch.model_type}",
                fix=nearest(name, default.to_dict()),
            )
        settings[name] = value
    return settings


def _has_setting(default: Any, name: str) -> bool:
    return name in default.to_dict() or name in default.attribute_map


def _without_pooler(config: Any) -> dict[str, bool]:
    """Return the argument that leaves out BERT's pooler: no pooling of ours reads it."""
    with torch.device("meta"):
        kind = type(transformers.AutoModel.from_config(config))
    takes = "add_pooling_layer" in inspect.signature(kind.__init__).parameters
    return {"add_pooling_layer": False} if takes else {}


def _cut_layers(config: Any, keep: int) -> None:
    config.num_hidden_layers = keep
    for name, value in config.to_dict().items():
        # Per-layer lists (layer_types of ModernBERT and others) must have the new length.
        if name.startswith("layer_types") and isinstance(value, list):
            setattr(config, name, value[:keep])


def _is_expected(name: str, was_cut: bool) -> bool:
    """Return whether a weight is left out for a reason that needs no word."""
    if "pooler." in name or name.endswith("position_ids"):
        return True
    return was_cut and any(part.isdigit() for part in name.split("."))


def _check_fit(encoder: nn.Module, info: dict[str, Any], folder: Path) -> None:
    missing, mismatched = info["missing_keys"], info["mismatched_keys"]
    total = len(encoder.state_dict())
    if mismatched or len(missing) > _MOST * total:
        what = f"{len(missing)} of {total} weights missing"
        if mismatched:
            what = f"{len(mismatched)} weights of another shape"
        raise ModelError(
            "The weights of a backbone must fit its config.json",
            got=f"{what} in {folder}",
            fix="Check that both files come from the same model.",
        )


def _unreadable(folder: Path, err: Exception) -> ModelError:
    return ModelError(
        "A backbone's folder must hold a model that transformers can load",
        got=f"{folder} ({' '.join(str(err).split())[:300] or type(err).__name__})",
        fix="It needs config.json and model.safetensors of an encoder.",
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' own reports and bars away for the time of a call."""
    verbosity = transformers_logging.get_verbosity()
    had_bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if had_bars:
            transformers_logging.enable_progress_bar()


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Let transformers' initialisation draw from `seed`; the global CPU generator is put back."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
