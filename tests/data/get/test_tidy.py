from __future__ import annotations

from textmill.data.get.tidy import RawText, tidy


def test_empty_repeated_and_contradicting_rows_go_and_are_counted():
    rows = [
        RawText("1", " good ", "pos"),
        RawText("2", "good", "pos"),
        RawText("3", "\n\t", "neg"),
        RawText("4", "both", "pos"),
        RawText("5", "both", "neg"),
        RawText("6", "bad", "neg"),
    ]
    found = tidy(rows)
    assert [(row.id, row.text) for row in found.rows] == [("1", "good"), ("6", "bad")]
    assert (found.num_empty, found.num_repeated, found.num_conflicting) == (1, 1, 2)
    assert "1 repetitions" in found.sentence()
    assert len(found.rows) + 1 + 1 + 2 == len(rows)
