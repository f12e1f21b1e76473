"""Plain text: sayings of Debian's fortunes packages, and the Brown corpus.

A saying's label is the name of its file, a Brown text's its genre; both may simply be left aside.
Formats: sayings are parted by lines with a percent sign, with ANSI colours in some; Brown texts are
words with `/tag` after each.
"""

from __future__ import annotations

import re

from textmill.core.errors import DataError
from textmill.data.get.apt_download import read_deb
from textmill.data.get.members import tar_files
from textmill.data.get.tidy import RawText, Tidy, tidy

_FORTUNES = "usr/share/games/fortunes/"
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_OVERSTRIKE = re.compile(r".\x08")
_OPENING = re.compile(r"(``|[(\[{$]) ")
_CLOSING = re.compile(r" ([.,;:?!)\]}%]|'')")


def read_fortunes(deb: bytes) -> Tidy:
    """Return the sayings of a fortunes package.

    Raises:
        DataError: the package is not what is expected.
    """
    rows = []
    for name, content in sorted(read_deb(deb, _FORTUNES).items()):
        if name.endswith((".dat", ".u8")) or "/" in name:
            continue
        text = _OVERSTRIKE.sub("", _COLOUR.sub("", content.decode("utf-8", "replace")))
        sayings = re.split(r"^%\s*$", text, flags=re.MULTILINE)
        rows += [RawText(f"{name}:{number}", saying, name) for number, saying in enumerate(sayings, start=1)]
    return tidy(rows)


def read_brown(tgz: bytes) -> Tidy:
    """Return the paragraphs of the Brown corpus, without tags, each with its genre.

    Raises:
        DataError: the package is not what is expected.
    """
    files = dict(tar_files(tgz))
    if "cats.txt" not in files:
        raise DataError("The package must hold cats.txt", got="one without it", fix="Report this.")
    rows = []
    for line in files["cats.txt"].decode("utf-8").splitlines():
        name, _, genre = line.strip().partition(" ")
        content = files.get(name, b"").decode("utf-8", "replace")
        paragraphs = re.split(r"\n\s*\n", content)
        rows += [
            RawText(f"{name}:{number}", untagged(paragraph), genre)
            for number, paragraph in enumerate(paragraphs, start=1)
        ]
    return tidy(rows)


def untagged(paragraph: str) -> str:
    """Return `The/at jury/nn said/vbd ,/,` as `The jury said,`."""
    words = " ".join(token.rpartition("/")[0] or token for token in paragraph.split())
    spaced = _CLOSING.sub(r"\1", _OPENING.sub(r"\1", words))
    return spaced.replace("``", '"').replace("''", '"')
