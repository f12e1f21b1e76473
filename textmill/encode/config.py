"""The `[encode]` table of the project file."""

from __future__ import annotations

from pydantic import Field

from textmill.core.config import Config


class EncodeConfig(Config):
    """How text becomes tokens."""

    max_length: int = Field(default=512, ge=8)
    """Longest input in tokens, special tokens included; cut to the backbone's own limit if that is lower."""
