"""The `[gate]` table of a project file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from textmill.core.config import Config


class GateConfig(Config):
    """What a version must show before it may go live."""

    metric: Literal["f1_macro", "accuracy"] = "f1_macro"
    """What is compared with the live version."""
    margin: float = Field(default=0.02, ge=0, lt=1)
    """How much worse than the live version is still tolerated."""
    rows: int = Field(default=1000, ge=1)
    """How many labelled rows are kept in a bundle for the comparison, at most."""
    min_rows: int = Field(default=50, ge=1)
    """Fewer rows than this never decide: of 50 rows, one is worth the default margin."""
    allow_breaking: bool = False
    """Let a version with other labels than the live one pass; callers must know."""
