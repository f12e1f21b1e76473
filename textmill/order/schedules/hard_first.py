"""`hard-first`: long and unclear texts first, class-balanced; `ordered` the other way round, as a control.

Every epoch holds every row once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from textmill.order.setup import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray


def hard_first(setup: Setup, num_rows: int, num: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the `num` hardest rows, class by class in turns, hard to easy."""
    return setup.balanced(setup.easiest_first(rng)[::-1], num)
