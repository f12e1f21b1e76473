"""Summaries of token lengths."""

from __future__ import annotations

import json

import numpy as np
import pytest

from textmill.encode.lengths import summarize_lengths


def test_percentiles_are_lengths_that_occur():
    summary = summarize_lengths(np.arange(1, 101), max_length=90)
    assert summary.percentiles == {"p50": 50, "p75": 75, "p90": 90, "p95": 95, "p99": 99}
    assert (summary.num_texts, summary.longest) == (100, 100)


def test_truncated_and_lost_shares():
    summary = summarize_lengths(np.array([5, 10, 25]), max_length=10)
    assert summary.truncated_share == pytest.approx(1 / 3)
    assert summary.lost_share == pytest.approx(15 / 40)


def test_no_texts_give_zeros_that_are_json():
    summary = summarize_lengths(np.array([], dtype=np.int64), max_length=10)
    assert json.loads(json.dumps(summary.as_json(), allow_nan=False))["mean"] == 0
