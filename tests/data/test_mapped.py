"""The mapped way against the plain one, on any rows."""

from __future__ import annotations

import csv
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.reference import prepare_in_memory
from textmill.data.config import DataConfig
from textmill.data.fingerprint import print_side
from textmill.data.prepare import survey

WORDS = [
    "good",
    "bad",
    " good",
    "good ",
    "a  b",
    "caf\u0065\u0301",
    "&amp;",
    "好看",
    "",
    " ",
    "\u200b",
    "NA",
    "a\nb",
]
LABELS = ["a", "b", " a", "c", "", "A"]


@given(
    st.lists(st.tuples(st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join), st.sampled_from(LABELS))),
    st.sampled_from(["drop", "keep"]),
)
@settings(max_examples=60, deadline=None)
def test_the_mapped_way_equals_the_plain_one(rows: list[tuple[str, str]], policy: str) -> None:
    rows = [("first row", "a"), *rows]
    config = DataConfig(train="t.csv", on_conflict=policy)  # type: ignore[arg-type]
    with TemporaryDirectory() as folder:
        with open(Path(folder) / "t.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerows([("text", "label"), *rows])
        splits = survey(config, Path(folder), cache=Path(folder) / "cache")
        sides, left = prepare_in_memory(rows, config)
        for side, expected in sides.items():
            examples = getattr(splits, side)
            assert list(examples) == expected
            assert examples.print == print_side(expected) == splits.report.fingerprints[side]  # type: ignore[index]
            assert examples[:].print == examples.print
            assert list(pickle.loads(pickle.dumps(examples))) == expected
        source = splits.report.sources["train"]
        for reason, ids in left.items():
            assert getattr(source, reason).count == len(ids)
            if reason != "conflicts":
                assert getattr(source, reason).rows == tuple(ids[:20])
            else:
                assert set(getattr(source, reason).rows) <= set(ids)
