"""Which classes meet in a batch under the configured order.

Batches of one class each teach "always this class", then "always that one": data sorted by label is a
known cause of models that answer one class for everything (google-research/bert#154, fastText#74).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from textmill.data.findings.finding import Finding

_MUCH = 0.2  # more batches of one class than chance gives
_SURE = 4.0  # standard deviations of that number by chance
_FEW_SINGLE = 3  # one or two small batches of one class are nothing to act on
_NUM_BATCHES, _FEWEST = 200, 4
_BEGINNING = 0.2  # of the epoch, judged alone too: it is where a model falls into one answer


@dataclass(frozen=True, slots=True)
class ClassMix:
    """Batches of one class only, at the beginning of an epoch or in all of it, whichever has more of them."""

    num_batches: int
    """Batches of two rows or more looked at."""
    single_share: float
    """Share of them that hold one class."""
    expected_share: float
    """The same if rows met by chance."""
    changes_share: float
    """Neighbours of different class in the file's own order, as a share of what chance gives: 0 is sorted."""


def measure_mix(batches: Sequence[npt.NDArray[np.int64]], class_index: npt.NDArray[np.int64]) -> ClassMix:
    """Count classes in batches.

    Args:
        batches: positions into the training rows, in the order of an epoch.
        class_index: (N,) class of each training row.
    """
    looked_at = [batch for batch in batches[:_NUM_BATCHES] if len(batch) > 1]
    shares = np.bincount(class_index) / max(1, len(class_index))
    changes = float((class_index[1:] != class_index[:-1]).mean()) if len(class_index) > 1 else 0.0
    file_order = changes / max(1.0 - float((shares**2).sum()), 1e-9)
    if not looked_at:
        return ClassMix(0, 0.0, 0.0, file_order)
    single = np.array([len(np.unique(class_index[batch])) == 1 for batch in looked_at], dtype=np.float64)
    expected = np.array([float((shares ** len(batch)).sum()) for batch in looked_at])
    parts = {len(looked_at), max(_FEWEST, round(_BEGINNING * len(looked_at)))}
    num = max(parts, key=lambda part: float(single[:part].mean() - expected[:part].mean()))
    num = min(num, len(looked_at))
    return ClassMix(num, float(single[:num].mean()), float(expected[:num].mean()), file_order)


def find_in_mix(mix: ClassMix, strategy: str) -> Iterator[Finding]:
    """Yield that batches hold one class each."""
    chance = (mix.expected_share * (1 - mix.expected_share) / max(1, mix.num_batches)) ** 0.5
    if round(mix.single_share * mix.num_batches) < _FEW_SINGLE:
        return
    if mix.single_share > mix.expected_share + max(_MUCH, _SURE * chance):
        message = (
            f"{mix.single_share:.0%} of the first {mix.num_batches} batches hold one class only "
            f"(by chance {mix.expected_share:.0%}) under order.strategy = {strategy!r}"
        )
        others = [f'"{name}"' for name in ("shuffle", "ordered") if name != strategy]
        fix = f"Set order.strategy = {' or '.join(others)}, whose batches hold all classes."
        yield Finding("one_class_batches", "error" if mix.single_share > 0.5 else "warning", message, fix)
