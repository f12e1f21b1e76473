"""The `[encode]` table of the project file."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from textmill.core.config import Config

LongText: TypeAlias = Literal["head", "tail", "head-tail", "windows"]
WindowPool: TypeAlias = Literal["mean", "max"]


class EncodeConfig(Config):
    """How text becomes tokens."""

    max_length: int = Field(default=512, ge=8)
    """Longest input in tokens, special tokens included; cut to the backbone's own limit if that is lower."""
    long_text: LongText = "head"
    """What is read of a longer text: its head, its tail, both, or all of it in windows."""
    window_overlap: float = Field(default=0.25, ge=0, le=0.9)
    """With windows: the share of a window that the next one repeats."""
    window_pool: WindowPool = "mean"
    """With windows: how the scores of a text's windows become one; max suits a sign that stands anywhere."""
