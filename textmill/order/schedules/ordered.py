"""`ordered`: short and clear texts first, every batch class-balanced, then shuffled.

The head holds the easiest rows of each class, from easy to hard, unshuffled. It is taken from the
easy end, not from the whole range: its purpose is a clear gradient while the classification head is
still random, and the long and unclear rows follow in the shuffled rest of the epoch. Data sorted by
difficulty without class balance is itself a cause of the collapse, hence the balance.

Classes give equal numbers as far as their rows go (`order/balance.py`). Every epoch holds every row once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from textmill.order.setup import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray


def ordered(setup: Setup, num_rows: int, num: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the `num` easiest rows, class by class in turns, easy to hard."""
    return setup.balanced(setup.easiest_first(rng), num)
