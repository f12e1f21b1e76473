"""`balanced`: random rows in class-balanced batches, a control for `ordered`.

It differs from `ordered` only in which rows come and in that they are in no order: what `ordered` gains
over this, order has done; what both gain over `shuffle`, balance has. Batches of the head hold rows of unlike
length, so the token budget makes them smaller than those of `shuffle`; `train.max_rows` bounds the
others for an even comparison. Every epoch holds every row once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from textmill.order.setup import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray


def balanced(setup: Setup, num_rows: int, num: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return `num` random rows, class by class in turns."""
    return setup.balanced(rng.permutation(num_rows).astype(np.int64), num)
