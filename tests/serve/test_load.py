from __future__ import annotations

import json

import pytest

from tests.serve.bundles import MODEL, TEXTS
from textmill.core.errors import ServeError
from textmill.serve.load import Expected, run_load


def test_right_answers_are_counted_right_in_both_loops(quiet, tmp_path):
    shelf, server = quiet
    expected = shelf.expected(1)
    closed = run_load(server.url, MODEL, TEXTS, clients=3, duration_s=0.3, expected=expected)
    path = tmp_path / "receipt.json"
    steady = run_load(
        server.url, MODEL, TEXTS, rate_s=50, duration_s=0.3, expected=expected, receipt_file=path
    )
    for receipt in (closed, steady):
        assert receipt.is_clean, receipt.as_json()
        assert receipt.checked == receipt.answered > 10
    assert steady.sent == 15
    assert json.loads(path.read_text())["sent"] == 15


def test_an_answer_that_differs_is_wrong_however_little_the_server_minds(quiet):
    shelf, server = quiet
    right = shelf.expected(1)[1]
    moved = Expected(right.labels, right.scores + 0.01)
    renamed = Expected(right.labels[::-1], right.scores)
    for expected in ({1: moved}, {1: renamed}, {2: right}):
        receipt = run_load(server.url, MODEL, TEXTS[:1], clients=1, duration_s=0.1, expected=expected)
        assert receipt.wrong == receipt.answered > 0
        assert not receipt.is_clean


def test_a_refusal_is_a_failure_with_its_reason(quiet):
    _, server = quiet
    receipt = run_load(server.url, "other", TEXTS, clients=1, duration_s=0.1)
    assert receipt.failed == receipt.sent > 0
    assert "404" in next(iter(receipt.reasons))


def test_a_load_on_nobody_is_told(free_port):
    with pytest.raises(ServeError, match="must listen"):
        run_load(f"http://127.0.0.1:{free_port}", MODEL, TEXTS, clients=1, duration_s=0.1)
