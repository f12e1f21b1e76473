"""The rated texts inside the vaderSentiment source package.

Promises: archives are read in memory, member by member; nothing is unpacked to disk.
Format, by the package's own README: lines of id, tab, mean rating (-4 to 4), tab, text; CRLF.
"""

from __future__ import annotations

import io
import tarfile
from typing import NamedTuple

from textmill.core.errors import DataError

_INNER = "additional_resources/hutto_ICWSM_2014.tar.gz"
_CLEAR_RATING = 1.0
_MAX_BYTES = 50_000_000


class RatedText(NamedTuple):
    """One text with its class and mean rating."""

    id: str
    text: str
    label: str
    rating: float


def read_rated(sdist: bytes, member: str) -> list[RatedText]:
    """Return the clearly rated texts of one file: `pos` from a mean of 1, `neg` from -1 on.

    Args:
        sdist: the source package, a tar.gz.
        member: a file name inside the inner archive.

    Raises:
        DataError: the archive or a line is not what is expected.
    """
    inner = _member(sdist, _INNER)
    return parse_rated(_member(inner, member).decode("utf-8"), member)


def parse_rated(text: str, name: str) -> list[RatedText]:
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
            rows.append(RatedText(row_id, words, "pos" if rating > 0 else "neg", rating))
    return rows


def _member(archive: bytes, ending: str) -> bytes:
    """Return the one regular file of a tar.gz whose path ends so."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            for entry in tar:
                if entry.isfile() and f"/{entry.name}".endswith(f"/{ending}") and entry.size <= _MAX_BYTES:
                    file = tar.extractfile(entry)
                    assert file is not None, "a regular file can be read"
                    return file.read()
    except (tarfile.TarError, EOFError, OSError) as err:
        raise DataError(
            "The downloaded package must be a whole archive",
            got=f"one that cannot be read ({err})",
            fix="Run the command again.",
        ) from err
    raise DataError(
        f"The downloaded package must hold {ending}", got="an archive without it", fix="Report this."
    )
