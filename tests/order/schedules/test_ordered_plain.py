from __future__ import annotations

import numpy as np

from tests.order.rows import difficulty_of, plan_of
from textmill.order.config import OrderConfig


def test_all_rows_are_sorted_by_difficulty_whatever_their_class():
    plan = plan_of(OrderConfig(strategy="ordered-plain", ordered_share=1.0), [100, 20])
    rank = difficulty_of(120).first_rank()
    rows = np.concatenate(plan.plan_epoch(0))
    assert (np.diff(rank[rows]) >= 0).all()
    assert plan.schedule.notes == ()
