from __future__ import annotations

import pytest

from tests.data.get.packages import tar_of
from textmill.core.errors import DataError
from textmill.data.get.vader import parse_rated, read_rated

LINES = "1\t2.5\tLovely film\r\n2\t-1\tDull film\r\n3\t0.99\tA film\r\n4\t-3.2\tNo \x85 film\r\n"


def test_clear_ratings_become_classes() -> None:
    rows = parse_rated(LINES, "f.txt")
    assert [(row.id, row.label, row.extra["rating"]) for row in rows] == [
        ("1", "pos", 2.5),
        ("2", "neg", -1.0),
        ("4", "neg", -3.2),
    ]
    assert rows[2].text == "No \x85 film"


def test_texts_are_read_out_of_the_nested_archives() -> None:
    inner = tar_of({"data/f.txt": LINES.encode(), "data/other.txt": b"x"})
    sdist = tar_of({"p-1.0/setup.py": b"", "p-1.0/additional_resources/hutto_ICWSM_2014.tar.gz": inner})
    assert len(read_rated(sdist, "f.txt").rows) == 3
    with pytest.raises(DataError, match=r"must hold g\.txt"):
        read_rated(sdist, "g.txt")


def test_a_broken_line_is_a_clear_error() -> None:
    with pytest.raises(DataError, match="line 2"):
        parse_rated("1\t2.5\tLovely\n2\tno rating\n", "f.txt")
