"""How long the texts are in tokens, and what a length limit costs.

This module loads only NumPy.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHARES = (50, 75, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class LengthSummary:
    """Token lengths of a set of texts, before cutting."""

    num_texts: int
    mean: float
    longest: int
    percentiles: dict[str, int]
    """"p50" to "p99": the smallest length that at least so many percent of the texts do not exceed."""
    max_length: int
    truncated_share: float
    """Share of the texts that are longer than max_length, 0 to 1."""
    lost_share: float
    """Share of all tokens that cutting to max_length takes away, 0 to 1."""

    def as_json(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return asdict(self)


def summarize_lengths(lengths: NDArray[np.int64], max_length: int) -> LengthSummary:
    """Return percentiles and the cost of a limit.

    Args:
        lengths: (N,) tokens of each text before cutting.
        max_length: the limit in tokens.
    """
    is_empty = len(lengths) == 0
    cuts = [0] * len(_SHARES) if is_empty else np.percentile(lengths, _SHARES, method="inverted_cdf").tolist()
    total = int(lengths.sum())
    kept = int(np.minimum(lengths, max_length).sum())
    return LengthSummary(
        num_texts=len(lengths),
        mean=0.0 if is_empty else float(lengths.mean()),
        longest=int(lengths.max(initial=0)),
        percentiles={f"p{share}": int(cut) for share, cut in zip(_SHARES, cuts, strict=True)},
        max_length=max_length,
        truncated_share=0.0 if is_empty else float((lengths > max_length).mean()),
        lost_share=1.0 - kept / total if total else 0.0,
    )
