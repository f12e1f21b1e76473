"""The rated texts inside the vaderSentiment source package.

Format, by the package's own README: lines of id, tab, mean rating (-4 to 4), tab, text; CRLF.
"""

from __future__ import annotations

from textmill.core.errors import DataError
from textmill.data.get.members import tar_member
from textmill.data.get.tidy import RawText, Tidy

_INNER = "additional_resources/hutto_ICWSM_2014.tar.gz"
_CLEAR_RATING = 1.0


def read_rated(sdist: bytes, member: str) -> Tidy:
    """Return the clearly rated texts of one file: `pos` from a mean of 1, `neg` from -1 on.

    Args:
        sdist: the source package, a tar.gz.
        member: a file name inside the inner archive.

    Raises:
        DataError: the archive or a line is not what is expected.
    """
    inner = tar_member(sdist, _INNER)
    return Tidy(parse_rated(tar_member(inner, member).decode("utf-8"), member))


def parse_rated(text: str, name: str) -> list[RawText]:
    """Return the clearly rated texts among lines of id, rating and text.

    Raises:
        DataError: a line is not made of these three.
    """
    rows = []
    for number, line in enumerate(text.replace("\r\n", "\n").rstrip("\n").split("\n"), start=1):
        parts = line.split("\t")
        try:
            row_id, mean, words = parts
            rating = float(mean)
        except ValueError as err:
            raise DataError(
                f"Each line of {name} must be id, rating and text",
                got=f"{line[:60]!r} in line {number}",
                fix="The package is not the expected one; report this.",
            ) from err
        if abs(rating) >= _CLEAR_RATING:
            rows.append(RawText(row_id, words, "pos" if rating > 0 else "neg", {"rating": rating}))
    return rows
