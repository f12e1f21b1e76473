"""The difficulty that a strategy needs, made once before the first step.

Promises: nothing is computed that the strategy does not use (length-only asks no teacher); a file of
the same run is taken instead of asking the teacher again, so that a resume has the numbers it began with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from textmill.core.progress import SILENT, Progress
from textmill.core.types import Example, Text
from textmill.order.config import OrderConfig, Strategy
from textmill.order.difficulty import Difficulty
from textmill.order.difficulty_file import load_difficulty

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NEED_NOTHING: tuple[Strategy, ...] = ("shuffle", "balanced", "random-subset")
_SEVERAL = ", "


def difficulty_for(
    config: OrderConfig,
    examples: Sequence[Example],
    lengths: NDArray[np.int64],
    seed: int,
    progress: Progress = SILENT,
    *,
    known: Path | None = None,
    is_multilabel: bool = False,
) -> Difficulty | None:
    """Return how hard each example is before training; None where the strategy does not ask.

    Args:
        config: the `[order]` table.
        examples: N training examples, read one by one where they lie.
        lengths: (N,) tokens of each, after cutting.
        seed: of the training.
        progress: is shown what the teacher does.
        known: a `difficulty.parquet` of this run; taken if it is of the same examples, lengths and weights.
        is_multilabel: whether the labels of an example are any number.

    Raises:
        DataError: `known` is damaged.
    """
    if config.strategy in _NEED_NOTHING:
        return None
    names = [(example.id, example.labels) for example in examples]  # once: rows may lie on a disk
    fresh = Difficulty(
        ids=tuple(name for name, _ in names),
        lengths=lengths,
        clearness=None,
        length_weight=config.length_weight,
        clear_weight=config.clear_weight,
        given=tuple(_SEVERAL.join(labels) for _, labels in names),
    )
    if not needs_teacher(config):
        return fresh
    if known is not None and known.exists():
        before = load_difficulty(known)
        if before.clearness is not None and _is_of(before, fresh):
            return before.with_state({})
    # scikit-learn is loaded only where a teacher is asked.
    from textmill.data.teacher import out_of_fold

    sets = [labels for _, labels in names]
    assert is_multilabel or all(len(each) == 1 for each in sets), "one label for each example"
    judged = out_of_fold(
        _Texts(examples),
        sets if is_multilabel else [each[0] for each in sets],
        config.teacher_folds,
        seed,
        most_rows=config.teacher_rows,
        progress=progress,
    )
    return replace(fresh, clearness=judged.confidence, rivals=judged.rivals)


def needs_teacher(config: OrderConfig) -> bool:
    """Return whether the strategy depends on how clear the labels are."""
    if config.strategy in (*_NEED_NOTHING, "length-only"):
        return False
    return config.strategy == "clear-only" or config.clear_weight > 0


def _is_of(before: Difficulty, fresh: Difficulty) -> bool:
    return (
        before.ids == fresh.ids
        and before.given == fresh.given
        and np.array_equal(before.lengths, fresh.lengths)
        and (before.length_weight, before.clear_weight) == (fresh.length_weight, fresh.clear_weight)
    )


class _Texts(Sequence[Text]):
    """The texts of examples, without a copy of them all."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    def __iter__(self) -> Iterator[Text]:
        return (example.text for example in self._examples)

    @overload
    def __getitem__(self, index: int) -> Text: ...
    @overload
    def __getitem__(self, index: slice) -> list[Text]: ...
    def __getitem__(self, index: int | slice) -> Text | list[Text]:
        if isinstance(index, slice):
            return [self._examples[row].text for row in range(*index.indices(len(self)))]
        return self._examples[int(index)].text
