"""`competence`: each row drawn from a growing share of the easiest (Platanios et al. 2019).

The share at draw i of T is c(t) = min(1, sqrt(t (1 - c0^2) / T + c0^2)), the square root form
(equation 7 with p = 2; there t counts steps, here draws, so that batches of unlike size fit). T is
`competence_epochs` x N draws, c0 is `competence_start`.

An epoch below T has N draws like any other, but draws with repetition, as the method has it: easy rows come
several times, some hard ones not at all. `BatchPlan.num_reached(epoch)` counts the different rows. From T
on, every epoch is a shuffle that holds every row once. No row comes twice within a block of 32 draws.
Not class-balanced, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from textmill.order.difficulty import Difficulty
from textmill.order.epoch import EpochOrder, shuffled
from textmill.order.setup import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 32
"""Draws without repetition among themselves: about a batch."""
_LEAST_ROWS = 4 * _BLOCK
"""The first share holds this many rows at least. The paper's 1 % of millions of sentence pairs would be
ten rows of a thousand, which every batch would repeat."""


def competence_sizes(num_rows: int, first: int, num: int, total: float, start: float) -> NDArray[np.int64]:
    """Return how many of the easiest rows each of some draws may come from.

    Args:
        num_rows: N, of the data.
        first: draws made before.
        num: draws asked for.
        total: T, draws after which all rows may come.
        start: c0, the first share.

    Returns:
        (num,) sizes, never falling, at most N.
    """
    draws = first + np.arange(num)
    shares = np.minimum(1.0, np.sqrt(draws * (1.0 - start**2) / total + start**2))
    least = min(num_rows, _LEAST_ROWS)
    sizes: NDArray[np.int64] = np.clip(np.ceil(shares * num_rows), least, num_rows).astype(np.int64)
    return sizes


def draw_growing(
    ranking: NDArray[np.int64], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a row for each size, uniform among the first so many of `ranking`, each once in a block."""
    drawn = []
    for begin in range(0, len(sizes), _BLOCK):
        num = min(_BLOCK, len(sizes) - begin)
        drawn.append(ranking[rng.choice(int(sizes[begin]), num, replace=False)])
    return np.concatenate(drawn) if drawn else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Competence:
    """Draws from the easiest share, which grows with the square root of time."""

    setup: Setup

    @property
    def reaches_all(self) -> bool:
        """No: rows are drawn with repetition while the share grows."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing to say."""
        return ()

    def order(self, epoch: int, num_rows: int, rng: np.random.Generator) -> EpochOrder:
        """Return N draws from the growing share, or a shuffle once it is whole."""
        total = self.setup.config.competence_epochs * num_rows
        if epoch * num_rows >= total:
            return shuffled(num_rows, rng)
        start = self.setup.config.competence_start
        sizes = competence_sizes(num_rows, epoch * num_rows, num_rows, total, start)
        rows = draw_growing(self.setup.easiest_first(rng), sizes, rng)
        return EpochOrder(rows, num_ordered=len(rows))

    def with_difficulty(self, difficulty: Difficulty) -> Competence:
        """Return the same strategy with newer difficulties."""
        return replace(self, setup=replace(self.setup, difficulty=difficulty))
