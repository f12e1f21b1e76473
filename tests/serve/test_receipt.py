from __future__ import annotations

import json

import pytest

from textmill.core.errors import DataError
from textmill.serve.receipt import Receipt, texts_of_file


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


def test_a_receipt_reads_well_with_and_without_answers():
    receipt = Receipt(started=0.0, seconds=1.0)
    assert receipt.as_lines()[1:] == ["0.0 answers/s (none)", "Latency none"]
    receipt.sent += 1
    receipt.answer(3, 0.5, 0.002)
    assert receipt.as_lines() == [
        "1 sent, 1 answered, 0 failed, 0 wrong",
        "1.0 answers/s (1 by version 3)",
        "Latency p50 2.0 ms, p95 2.0 ms, p99 2.0 ms",
    ]


def test_the_texts_of_a_load_are_the_lines_of_a_file(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("good film\n\n  \n好\n", encoding="utf-8")
    assert texts_of_file(path) == ["good film", "好"]
    for content in (b"", b"\xff\xfe"):
        path.write_bytes(content)
        with pytest.raises(DataError):
            texts_of_file(path)
    path.write_text("one film\tanother film\n\na\t\n", encoding="utf-8")
    assert texts_of_file(path, is_pairs=True) == [("one film", "another film"), ("a", "")]
    for line in ("no tab", "a\tb\tc"):
        path.write_text(line)
        with pytest.raises(DataError, match="a tab between them"):
            texts_of_file(path, is_pairs=True)
    with pytest.raises(DataError, match="absent"):
        texts_of_file(tmp_path / "absent.txt")
