"""Pooling against plain loops, on either side of padding."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from textmill.encode.padding import PadSide
from textmill.model.config import Pooling
from textmill.model.pooling import Pool

_LENGTHS = (3, 5, 1)
_MAX = 6


def _inputs(side: PadSide) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    hidden = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    mask = torch.zeros(3, 5, dtype=torch.int64)
    rows = []
    for index, length in enumerate(_LENGTHS):
        place = slice(0, length) if side == "right" else slice(5 - length, 5)
        mask[index, place] = 1
        rows.append(hidden[index, place])
    return hidden, mask, rows


def _by_loop(pooling: Pooling, row: torch.Tensor, side: PadSide) -> torch.Tensor:
    match pooling:
        case "cls":
            return row[0]
        case "last":
            return row[-1]
        case "mean":
            return row.mean(0)
        case "max":
            return row.max(0).values
        case "flatten":
            fill = torch.zeros(_MAX - len(row), row.shape[1])
            return torch.cat([row, fill] if side == "right" else [fill, row]).flatten()


@pytest.mark.parametrize("side", get_args(PadSide))
@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_pooling_equals_a_loop_over_the_real_tokens(pooling: Pooling, side: PadSide):
    hidden, mask, rows = _inputs(side)
    pool = Pool(pooling, _MAX, side, cls_is_last=False)
    wanted = torch.stack([_by_loop(pooling, row, side) for row in rows])
    torch.testing.assert_close(pool(hidden, mask), wanted)
    assert wanted.shape[1] == pool.width(4)


def test_cls_is_the_last_token_where_the_tokenizer_puts_it_last():
    hidden, mask, rows = _inputs("left")
    pool = Pool("cls", _MAX, "left", cls_is_last=True)
    torch.testing.assert_close(pool(hidden, mask), torch.stack([row[-1] for row in rows]))
