"""`clear-only`: `ordered` by the teacher alone, a control for the part that length plays.

With `order.dynamic` too it stays with the teacher. Every epoch holds every row once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from textmill.order.difficulty import easiest_first
from textmill.order.setup import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray


def clear_only(setup: Setup, num_rows: int, num: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the `num` clearest rows, class by class in turns, clear to unclear."""
    return setup.balanced(easiest_first(setup.hard().unclear_rank(), rng), num)
