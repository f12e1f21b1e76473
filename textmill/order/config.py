"""The `[order]` table of the project file."""

from __future__ import annotations

from typing import Literal

from textmill.core.config import Config


class OrderConfig(Config):
    """The sequence in which examples reach the model."""

    strategy: Literal["shuffle"] = "shuffle"
    """shuffle: a new random order each epoch."""
