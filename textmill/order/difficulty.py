"""How hard each training example is: first by its length and a teacher, then by the model itself.

Before training, difficulty is the weighted mean of two ranks: tokens, and unclearness (1 - the
out-of-fold confidence of the teacher in the given label). Once the model has seen an example,
the rank of its own loss on it, averaged over the epochs, takes the place of both. Beside the mean loss
stands the variability, the standard deviation over epochs of the probability that the model gives to
the label: low loss is easy, high loss with high variability ambiguous, high loss with low
variability hard, and often mislabelled (data maps; Swayamdipta et al. 2020, equations 1 and 2, with
exp(-loss) for the probability). Only the mean loss orders the rows; variability tells suspects apart.

Promises: ranks are shares in [0, 1], ties have one rank, and ranks never fall where length and
unclearness both rise; the same numbers on every machine for the same teacher; the state after
some epochs is JSON and exact.
What is not covered: probabilities under label smoothing, which exp(-loss) understates evenly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from textmill.order.losses import pack, unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Seen:
    """What the model itself has shown on N rows, as sums over the epochs."""

    epochs: NDArray[np.float64]  # (N,) epochs in which the row came
    loss: NDArray[np.float64]  # (N,) sum of the epochs' losses, nats
    share: NDArray[np.float64]  # (N,) sum of exp(-loss)
    square: NDArray[np.float64]  # (N,) sum of exp(-loss)^2

    @classmethod
    def nothing(cls, num: int) -> Seen:
        """Return the state before the first epoch."""
        return cls(*(np.zeros(num) for _ in range(4)))

    def after(self, losses: NDArray[np.floating[Any]]) -> Seen:
        """Return the sums with one more epoch; (N,) losses, NaN for rows that did not come."""
        has_come = np.isfinite(losses)
        loss = np.where(has_come, losses, 0.0).astype(np.float64)
        share = np.where(has_come, np.exp(-loss), 0.0)
        return Seen(self.epochs + has_come, self.loss + loss, self.share + share, self.square + share**2)

    def mean_loss(self) -> NDArray[np.float64]:
        """Return (N,) the mean over epochs, NaN for rows never seen."""
        return self._mean(self.loss)

    def confidence(self) -> NDArray[np.float64]:
        """Return (N,) the mean probability of the given label, NaN for rows never seen."""
        return self._mean(self.share)

    def variability(self) -> NDArray[np.float64]:
        """Return (N,) the standard deviation of that probability over epochs, NaN for rows never seen."""
        return np.sqrt(np.maximum(self._mean(self.square) - self.confidence() ** 2, 0.0))

    def _mean(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        means = np.full(len(sums), np.nan)
        np.divide(sums, self.epochs, out=means, where=self.epochs > 0)
        return means


@dataclass(frozen=True, slots=True)
class Difficulty:
    """The difficulty of N examples."""

    ids: tuple[str, ...]
    lengths: NDArray[np.int64]  # (N,) tokens, after cutting
    clearness: NDArray[np.float32] | None  # (N,) the teacher's out-of-fold confidence; None: not asked
    length_weight: float = 1.0
    clear_weight: float = 1.0
    given: tuple[str, ...] = ()
    """N given labels as text, for `suspects`; may be empty."""
    rivals: tuple[str, ...] = ()
    """N labels that the teacher finds likeliest; may be empty."""
    seen: Seen = field(default_factory=lambda: Seen.nothing(0))

    def __post_init__(self) -> None:
        """Check that all arrays are of the same rows."""
        if len(self.seen.epochs) != len(self.ids):
            assert not len(self.seen.epochs), "losses of other rows"
            object.__setattr__(self, "seen", Seen.nothing(len(self.ids)))
        assert len(self.lengths) == len(self.ids)
        assert self.clearness is None or len(self.clearness) == len(self.ids)
        assert len(self.given) in (0, len(self.ids))
        assert len(self.rivals) in (0, len(self.ids))

    def __len__(self) -> int:
        """Return N."""
        return len(self.ids)

    def length_rank(self) -> NDArray[np.float64]:
        """Return (N,) 0 for the shortest to 1 for the longest."""
        return ranks(self.lengths)

    def unclear_rank(self) -> NDArray[np.float64]:
        """Return (N,) 0 for the clearest to 1 for the least clear; 1/2 for all without a teacher."""
        if self.clearness is None:
            return np.full(len(self), 0.5)
        return ranks(-self.clearness)

    def first_rank(self) -> NDArray[np.float64]:
        """Return (N,) the difficulty before training, 0 for the easiest to 1 for the hardest at most."""
        total = self.length_weight + self.clear_weight
        ranked = self.length_weight * self.length_rank() + self.clear_weight * self.unclear_rank()
        weighted: NDArray[np.float64] = ranked / total
        return weighted

    def rank(self) -> NDArray[np.float64]:
        """Return (N,) the difficulty as known now: by the model's loss of rows it has seen, else as first."""
        ranked = self.first_rank()
        has_come = self.seen.epochs > 0
        ranked[has_come] = ranks(self.seen.mean_loss()[has_come])
        return ranked

    def after_epoch(self, losses: NDArray[np.floating[Any]]) -> Difficulty:
        """Return the difficulty with the model's losses of one more epoch.

        Args:
            losses: (N,) cross-entropy in nats, NaN for a row that did not come.
        """
        return replace(self, seen=self.seen.after(losses))

    def state(self) -> dict[str, Any]:
        """Return what the epochs have added, as JSON values; empty before the first."""
        if not self.seen.epochs.any():
            return {}
        return {name: pack(getattr(self.seen, name)) for name in _SUMS}

    def with_state(self, state: dict[str, Any]) -> Difficulty:
        """Return the difficulty as it was when `state` was taken; the rows must be the same."""
        if not state:
            return replace(self, seen=Seen.nothing(len(self)))
        return replace(self, seen=Seen(*(unpack(state[name], len(self)) for name in _SUMS)))


_SUMS = ("epochs", "loss", "share", "square")


def ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return (N,) the mean rank of each value as a share: 0 for the smallest, 1 for the largest."""
    if len(values) < 2:
        return np.zeros(len(values))
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - (counts + 1) / 2
    ranked: NDArray[np.float64] = middles[inverse] / (len(values) - 1)
    return ranked


def easiest_first(rank: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return all positions by rising rank; rows of one rank come in random order.

    In file order instead, texts of equal length would come sorted by whatever the file is sorted by,
    which often is the label.
    """
    return np.lexsort((rng.permutation(len(rank)), rank)).astype(np.int64)
