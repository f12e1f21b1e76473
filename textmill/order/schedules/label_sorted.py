"""`label-sorted`: the rows of `ordered`, but one class after the other; a control that should do harm.

A file sorted by label that nobody shuffles is a frequent cause of constant answers; this is that fault
made on purpose, with the same rows at the same time as `ordered`. Every epoch holds every row once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from textmill.order.setup import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray


def label_sorted(setup: Setup, num_rows: int, num: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the `num` easiest rows of each class, sorted by class, easy to hard within it."""
    head = setup.balanced(setup.easiest_first(rng), num)
    assert setup.classes is not None, "balanced has asked for them"
    return head[np.argsort(setup.classes[head], kind="stable")]
