"""Lengths in tokens, and what the limit takes away: rows that are cut, and the share of all tokens.

Percentiles are those of `numpy.percentile` with method "higher": lengths that occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from textmill.core.progress import SILENT, Progress
from textmill.core.types import Example, Text
from textmill.data.findings.finding import NUM_NAMED, Finding, Level

CountTokens = Callable[[Sequence[Text]], npt.NDArray[np.int64]]
"""Texts -> (N,) tokens of each before cutting."""

_PERCENTILES = (5, 25, 50, 75, 90, 95, 99)
_MUCH_TRUNCATED = 0.05
_MUCH_LOST = 0.2
_CHUNK = 5000  # texts between two movements of the bar


@dataclass(frozen=True)
class Lengths:
    """Lengths of the texts in tokens, special tokens included, before truncation."""

    mean: float
    percentiles: dict[str, int]
    """`p5` to `p99`, and `max`."""
    max_length: int
    """What the model reads of a text."""
    num_truncated: int
    truncated_share: float
    lost_share: float = 0.0
    """Share of all tokens that the model does not see, 0 to 1."""


def count_lengths(
    examples: Sequence[Example], count_tokens: CountTokens, progress: Progress = SILENT
) -> npt.NDArray[np.int64]:
    """Return (N,) tokens of each row."""
    counted = []
    with progress.task("count tokens", len(examples)) as task:
        for start in range(0, len(examples), _CHUNK):
            texts = [example.text for example in examples[start : start + _CHUNK]]
            counted.append(count_tokens(texts))
            assert counted[-1].shape == (len(texts),), "one count for each text"
            task.advance(len(texts))
    return np.concatenate(counted) if counted else np.zeros(0, dtype=np.int64)


def sum_up(lengths: npt.NDArray[np.int64], max_length: int) -> Lengths:
    """Return percentiles and the cost of the limit of (N,) lengths, N at least 1."""
    percentiles = {f"p{p}": int(np.percentile(lengths, p, method="higher")) for p in _PERCENTILES}
    num_truncated = int((lengths > max_length).sum())
    return Lengths(
        mean=round(float(lengths.mean()), 2),
        percentiles={**percentiles, "max": int(lengths.max())},
        max_length=max_length,
        num_truncated=num_truncated,
        truncated_share=num_truncated / len(lengths),
        lost_share=1.0 - float(np.minimum(lengths, max_length).sum()) / max(1, int(lengths.sum())),
    )


def find_in_lengths(
    examples: Sequence[Example], counts: npt.NDArray[np.int64], lengths: Lengths
) -> Iterator[Finding]:
    """Yield what the limit costs."""
    if not lengths.num_truncated:
        return
    is_much = lengths.truncated_share > _MUCH_TRUNCATED or lengths.lost_share > _MUCH_LOST
    level: Level = "warning" if is_much else "note"
    message = (
        f"{lengths.num_truncated} texts ({lengths.truncated_share:.1%}) are longer than "
        f"{lengths.max_length} tokens; the model does not see their ends, "
        f"{lengths.lost_share:.1%} of all tokens"
    )
    fix = (
        f"Raise encode.max_length where the model allows it: {lengths.percentiles['p95']} tokens hold 95 of "
        f"100 texts, {lengths.percentiles['p99']} hold 99."
    )
    longest = np.argsort(-counts, kind="stable")[: min(NUM_NAMED, lengths.num_truncated)]
    rows = tuple(examples[row].id for row in longest.tolist())
    yield Finding("truncated", level, message, fix, rows)
