from __future__ import annotations

import pytest

from tests.data.get.packages import deb_of, tar_of
from textmill.core.errors import DataError
from textmill.data.get.apt_download import read_deb
from textmill.data.get.plain_text import read_brown, read_fortunes, untagged


def test_sayings_are_parted_and_their_colours_gone():
    deb = deb_of(
        {
            "usr/share/games/fortunes/wit": b"One.\n%\nTwo 100%\nlines.\n%\n\n%\n",
            "usr/share/games/fortunes/wit.dat": b"\0",
            "usr/share/games/fortunes/zh": "\x1b[32m床前明月光\x1b[m\n".encode(),
            "usr/share/doc/copyright": b"x",
        }
    )
    found = read_fortunes(deb)
    assert [(row.id, row.text, row.label) for row in found.rows] == [
        ("wit:1", "One.", "wit"),
        ("wit:2", "Two 100%\nlines.", "wit"),
        ("zh:1", "床前明月光", "zh"),
    ]


def test_a_broken_deb_is_a_clear_error():
    deb = deb_of({"usr/share/games/fortunes/wit": b"One.\n"})
    for broken in (b"no deb", deb[:100], deb[:-30], b"!<arch>\n"):
        with pytest.raises(DataError, match=r"whole \.deb"):
            read_deb(broken, "usr/")
    with pytest.raises(DataError, match=r"data\.tar\.xz"):
        read_deb(deb[:-60] + bytes(60), "usr/")


def test_brown_loses_its_tags_and_keeps_its_genre():
    words = "The/at jury/nn said/vbd ,/, ``/`` and/or/cc (/( yes/uh )/) ''/'' ./."
    assert untagged(words) == 'The jury said, "and/or (yes)".'
    tgz = tar_of(
        {"package/cats.txt": b"ca01 news\n", "package/ca01": f"\n\n\t{words}\n\n\n\tNo/at\n".encode()}
    )
    assert [(row.id, row.text, row.label) for row in read_brown(tgz).rows] == [
        ("ca01:2", 'The jury said, "and/or (yes)".', "news"),
        ("ca01:3", "No", "news"),
    ]
    with pytest.raises(DataError, match=r"cats\.txt"):
        read_brown(tar_of({"package/ca01": b""}))
