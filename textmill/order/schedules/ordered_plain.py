"""`ordered-plain`: short and clear texts first, to the letter: sorted, not balanced, not shuffled.

With `ordered_share = 1` the whole first epoch is sorted. If one class is shorter or clearer than the
others, its rows fill the first batches. Every epoch holds every row once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from textmill.order.setup import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray


def ordered_plain(setup: Setup, num_rows: int, num: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the `num` easiest rows of all classes together, easy to hard."""
    return setup.easiest_first(rng)[:num]
