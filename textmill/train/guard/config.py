"""The `[guard]` table of a project file.

What is not covered: what is done about an alarm (`train/rescue.py`).
"""

from __future__ import annotations

from pydantic import Field

from textmill.core.config import Config


class GuardConfig(Config):
    """How a training is watched."""

    enabled: bool = True
    """Watch whether the training has fallen into one answer for all inputs."""
    window_rows: int = Field(320, ge=32)
    """Rows that a judgement looks back on; in rows, so that it does not depend on the batch size."""
    window_steps: int = Field(12, ge=2)
    """Steps that a judgement looks back on at least, however large the batches are."""
