from __future__ import annotations

import pytest

from textmill.core.config import parse_config
from textmill.core.errors import ProjectError
from textmill.order.config import OrderConfig


@pytest.mark.parametrize(
    "table",
    [
        {"strategy": "ordred"},
        {"ordered_share": 0},
        {"ordered_share": 1.5},
        {"length_weight": 0, "clear_weight": 0},
        {"competence_start": 0},
        {"teacher_folds": 1},
    ],
)
def test_a_value_out_of_range_is_refused(table):
    with pytest.raises(ProjectError):
        parse_config(OrderConfig, table, "project.toml")


def test_the_default_is_a_shuffle():
    assert OrderConfig().strategy == "shuffle"
