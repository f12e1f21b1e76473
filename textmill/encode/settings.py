"""What a tokenizer's folder says besides the vocabulary: pad token, side of padding, length limit.

Promises: only JSON is read (no transformers); a limit is the model's own number of positions, less
the padding offset of RoBERTa types; the 1e30 that stands for "no limit" is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from textmill.core.config import Config
from textmill.core.errors import ModelError
from textmill.encode.config import LongText, WindowPool
from textmill.encode.padding import PadSide

_OFFSET_TYPES = frozenset(
    {
        *("roberta", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm", "camembert", "longformer"),
        *("data2vec-text", "mpnet", "ibert", "luke", "esm", "xmod", "markuplm"),
    }
)
"""Models whose positions start after the pad id (fairseq's rule): 514 positions hold 512 tokens."""
_POSITION_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len")
_NO_LIMIT = 1_000_000
"""transformers writes 1e30 for "no limit"; no real limit is as large."""
_LEFT_BY_CLASS = ("XLNet", "Llama", "CodeLlama", "Gemma", "Cohere", "CpmAnt")
"""Tokenizer classes that pad on the left without saying so in their files."""


class TokenizerSettings(Config):
    """How rows are cut and padded; saved beside tokenizer.json as tokenizer_settings.json."""

    max_length: int = Field(ge=8)
    """Longest row in tokens, special tokens included."""
    pad_id: int = Field(ge=0)
    """The id that fills short rows."""
    pad_side: PadSide
    """Where the fill goes."""
    has_type_ids: bool
    """Whether the model reads token_type_ids."""
    long_text: LongText = "head"
    """What is read of a text longer than max_length."""
    window_overlap: float = Field(default=0.25, ge=0, le=0.9)
    """With windows: the share of a window that the next one repeats."""
    window_pool: WindowPool = "mean"
    """With windows: how the scores of a text's windows become one."""


def read_table(path: Path) -> dict[str, Any]:
    """Return a JSON object, or an empty one where there is no file.

    Raises:
        ModelError: the file is no JSON object.
    """
    if not path.is_file():
        return {}
    try:
        table = json.loads(path.read_bytes())
    except (UnicodeDecodeError, json.JSONDecodeError) as err:
        raise ModelError(
            "A model's JSON files must be readable", got=f"{path} ({err})", fix="Copy the folder again."
        ) from err
    if not isinstance(table, dict):
        raise ModelError(
            "A model's JSON files must hold objects",
            got=f"a {type(table).__name__} in {path}",
            fix="Copy it again.",
        )
    return table


def position_offset(model_type: str, pad_id: int) -> int:
    """Return how many positions a model leaves unused before the first token."""
    # MPNet counts from a pad id of 1 whatever its config says.
    return max(pad_id, 1) + 1 if model_type in _OFFSET_TYPES else 0


def position_limit(config: Mapping[str, Any]) -> int | None:
    """Return the tokens a model has positions for, by its config.json; None if it has no limit."""
    for key in _POSITION_KEYS:
        positions = config.get(key)
        if isinstance(positions, int) and 0 < positions < _NO_LIMIT:
            offset = position_offset(str(config.get("model_type")), int(config.get("pad_token_id") or 0))
            return positions - offset
    return None


def reads_type_ids(config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]) -> bool:
    """Return whether a model tells segments apart by token_type_ids."""
    if config:
        return int(config.get("type_vocab_size") or 0) > 1 or config.get("model_type") == "xlnet"
    return "token_type_ids" in (tokenizer_config.get("model_input_names") or ())


def pad_side_of(config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]) -> PadSide:
    """Return the side of padding that the tokenizer was made for."""
    stated = tokenizer_config.get("padding_side")
    if stated in ("left", "right"):
        side: PadSide = stated
        return side
    kind = str(tokenizer_config.get("tokenizer_class") or "")
    is_left = config.get("model_type") == "xlnet" or kind.startswith(_LEFT_BY_CLASS)
    return "left" if is_left else "right"


def special_names(tokenizer_config: Mapping[str, Any]) -> frozenset[str]:
    """Return the tokens that have a role (pad, cls, sep, mask, ...) by tokenizer_config.json."""
    values = [value for key, value in tokenizer_config.items() if key.endswith("_token")]
    tokens = [value.get("content") if isinstance(value, dict) else value for value in values]
    return frozenset(token for token in tokens if isinstance(token, str))


def pad_token_of(tokenizer_config: Mapping[str, Any]) -> str | None:
    """Return the pad token as text, from either form in which tokenizer_config.json gives it."""
    token = tokenizer_config.get("pad_token")
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def decide_max_length(
    asked: int, config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]
) -> tuple[int, str | None]:
    """Return the length in force and, if it is lower than the one asked for, a sentence that says so."""
    limits = [position_limit(config), tokenizer_config.get("model_max_length")]
    known = [int(limit) for limit in limits if isinstance(limit, int | float) and 0 < limit < _NO_LIMIT]
    limit = min(known, default=asked)
    if limit >= asked:
        return asked, None
    return limit, f"max_length is {limit}, the limit of the backbone ({asked} was asked for)."
