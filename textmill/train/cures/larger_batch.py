"""Average the gradient over more rows, by accumulation.

Small batches are the second commonest cause in public reports: effective batches of 32 and more
started trainings that 2 to 8 rows had not (huggingface/transformers#795, #3977).
"""

from __future__ import annotations

import math

from textmill.train.cures.cure import Situation, Treatment

_ROWS = 32
_FEWEST_STEPS = 20
"""Fewer steps than these an epoch teach nothing."""


def larger_batch(situation: Situation) -> Treatment | None:
    """Return the treatment, where enough steps are left in an epoch."""
    wanted = max(_ROWS, 2 * situation.rows_a_step)
    accumulate = math.ceil(wanted / situation.settings.train.batch_size)
    rows = accumulate * situation.settings.train.batch_size
    if situation.num_rows < _FEWEST_STEPS * rows:
        return None
    return Treatment(
        f"average each step over {rows} rows instead of {situation.rows_a_step}",
        {"train.accumulate": accumulate},
    )
