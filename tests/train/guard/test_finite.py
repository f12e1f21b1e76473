from pathlib import Path

import pytest

from textmill.core.errors import TrainingGaveUp
from textmill.train.guard.finite import check_finite


def test_finite_numbers_go_on():
    check_finite(0.7, 1e6, 3, 1e-5, None)


@pytest.mark.parametrize(
    ("loss", "grad_norm"), [(float("nan"), 1.0), (0.5, float("inf")), (float("inf"), 1.0)]
)
def test_other_numbers_stop_with_step_rate_and_what_to_try(loss, grad_norm):
    with pytest.raises(TrainingGaveUp, match=r"step 3 with learning rate 1e-05.*runs/model.*train\.lr"):
        check_finite(loss, grad_norm, 3, 1e-5, Path("runs/model"))
