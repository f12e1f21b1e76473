from __future__ import annotations

import json

from textmill.serve.receipt import Receipt


def test_a_receipt_adds_up_and_is_written_whole(tmp_path):
    receipt = Receipt(started=0.0, seconds=2.0)
    for number in range(100):
        receipt.sent += 1
        receipt.answer(1 if number < 50 else 2, number / 50, 0.010)
    receipt.sent += 1
    receipt.fail("status 503: no")
    receipt.write(tmp_path / "receipt.json")
    told = json.loads((tmp_path / "receipt.json").read_text())
    assert told["sent"] == told["answered"] + told["failed"] == 101
    assert told["by_version"] == {"1": 50, "2": 50}
    assert told["first_seen_s"] == {"1": 0.0, "2": 1.0}
    assert [row["answered"] for row in told["by_second"]] == [50, 50]
    assert told["latency_ms"]["p99"] == 10.0
    assert told["reasons"] == {"status 503: no": 1}
    assert not receipt.is_clean


def test_only_the_first_reasons_are_kept():
    receipt = Receipt(started=0.0)
    for number in range(100):
        receipt.fail(f"reason {number}")
    receipt.fail("reason 0")
    assert receipt.failed == 101
    assert len(receipt.reasons) == 10
    assert receipt.reasons["reason 0"] == 2
