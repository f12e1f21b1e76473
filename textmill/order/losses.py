"""The losses of an epoch, collected row by row as the steps are made.

Promises: a row that comes several times has the mean of its losses; a row that does not come has
none (NaN); the state is JSON and exact, so that a resume inside an epoch goes on as if nothing had happened.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class EpochLosses:
    """A running mean of the loss of each of N rows."""

    def __init__(self, ids: Sequence[str]) -> None:
        """Begin without any loss.

        Args:
            ids: N example ids; rows with one id, as the windows of a long text have, share their mean.
        """
        self._place: dict[str, int] = {}
        self._place_of_row = np.array(
            [self._place.setdefault(name, len(self._place)) for name in ids], dtype=np.int64
        )
        self._sums = np.zeros(len(self._place))
        self._counts = np.zeros(len(self._place))

    def add(self, ids: Sequence[str], losses: NDArray[np.floating[Any]]) -> None:
        """Take note of the losses of some rows.

        Args:
            ids: B example ids, all of them known.
            losses: (B,) in nats.
        """
        places = [self._place[name] for name in ids]
        np.add.at(self._sums, places, losses.astype(np.float64))
        np.add.at(self._counts, places, 1.0)

    def means(self) -> NDArray[np.float64]:
        """Return (N,) the mean loss of each row; NaN for a row without one."""
        means = np.full(len(self._sums), np.nan)
        np.divide(self._sums, self._counts, out=means, where=self._counts > 0)
        return means[self._place_of_row]

    def clear(self) -> None:
        """Begin again, for the next epoch."""
        self._sums[:] = 0.0
        self._counts[:] = 0.0

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs, as JSON values."""
        return {"sums": pack(self._sums), "counts": pack(self._counts)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a `state` of the same rows."""
        self._sums = unpack(state["sums"], len(self._sums))
        self._counts = unpack(state["counts"], len(self._counts))


def pack(values: NDArray[np.float64]) -> str:
    """Return float64 values as text, exact to the bit."""
    return base64.b64encode(zlib.compress(values.astype("<f8").tobytes(), 1)).decode("ascii")


def unpack(text: str, num: int) -> NDArray[np.float64]:
    """Return the (num,) float64 values of a `pack`ed text."""
    values = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f8").astype(np.float64)
    assert values.shape == (num,), f"{len(values)} values for {num} rows"
    return values
