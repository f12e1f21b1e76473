"""`length-only`: `ordered` by length alone, a control that asks no teacher.

With `order.dynamic` too it stays with the length. Every epoch holds every row once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from textmill.order.difficulty import easiest_first
from textmill.order.setup import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray


def length_only(setup: Setup, num_rows: int, num: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the `num` shortest rows, class by class in turns, short to long."""
    return setup.balanced(easiest_first(setup.hard().length_rank(), rng), num)
