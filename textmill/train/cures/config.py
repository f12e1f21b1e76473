"""The `[rescue]` table of a project file.

What is not covered: when a training needs a cure (`train/guard/`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from pydantic import Field

from textmill.core.config import Config

Rung: TypeAlias = Literal[
    "roll-back",
    "class-weights",
    "ordered",
    "warm-up",
    "lower-lr",
    "larger-batch",
    "fresh-layers",
    "new-seed",
]


class RescueConfig(Config):
    """What is tried when the guard raises an alarm."""

    ladder: tuple[Rung, ...] = get_args(Rung)
    """Cures that may be tried, in this order where the diagnosis prefers none; [] switches cures off."""
    max_cost: float = Field(3.0, ge=1, allow_inf_nan=False)
    """Rows that all attempts together may read, in rows of one whole training."""
