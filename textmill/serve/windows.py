"""Between the texts of a request and the rows that are computed: one a text, or the windows of a long one.

Promises: a request never gives more rows than `serve.max_windows` because its texts are cut to windows;
rows that are texts pass as they are, to the bit.
What is not covered: how texts are cut and how windows are pooled (`encode/long_text.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from textmill.core.errors import RequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from textmill.core.decision import Decision
    from textmill.core.types import Scores, Task, Text
    from textmill.encode.long_text import Cut


class Encoder(Protocol):
    """The text side of a version: what it reads, how texts become rows, and scores become answers."""

    @property
    def task(self) -> Task:
        """What the version does; `pairs` reads pairs of texts."""
        ...

    @property
    def decision(self) -> Decision:
        """How scores become classes."""
        ...

    def cut(self, texts: Sequence[Text]) -> Cut:
        """Return the rows of the texts, the version's own way."""
        ...

    def pool(self, scores: Scores, owner: NDArray[np.int64]) -> Scores:
        """Return the scores of texts from those of their rows."""
        ...


def check_windows(cut: Cut, num_texts: int, max_windows: int) -> None:
    """Refuse a request whose long texts are too many windows.

    Raises:
        RequestError: 413, with the text that has most of them.
    """
    if len(cut.rows) == num_texts or len(cut.rows) <= max_windows:
        return
    num_rows = np.bincount(cut.owner)
    longest = int(num_rows.argmax())
    raise RequestError(
        f"The texts of a request must give at most {max_windows} windows",
        got=f"{len(cut.rows)}, of which {num_rows[longest]} in item {longest}",
        fix="Send fewer or shorter texts in a request.",
        status=413,
    )


def pooled(encoder: Encoder, rows: list[list[float]], cut: Cut, num_texts: int) -> list[list[float]]:
    """Return the scores of each text from those of the rows that it was cut to."""
    if len(rows) == num_texts:
        return rows
    scores: list[list[float]] = encoder.pool(np.array(rows, dtype=np.float32), cut.owner).tolist()
    return scores
