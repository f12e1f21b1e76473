from __future__ import annotations

import io
import tarfile

import pytest

from tests.data.get.packages import tar_of, zip_of
from textmill.core.errors import DataError
from textmill.data.get.members import tar_files, tar_member, zip_member


def test_files_come_without_their_first_folder():
    archive = tar_of({"package/data/a.txt": b"1", "package/b.txt": b"2"})
    assert dict(tar_files(archive)) == {"data/a.txt": b"1", "b.txt": b"2"}
    assert dict(tar_files(archive, "data/")) == {"data/a.txt": b"1"}
    assert tar_member(archive, "data/a.txt") == b"1"
    assert zip_member(zip_of({"p/a.tab": b"3"}), "p/a.tab") == b"3"


def test_a_missing_file_or_a_broken_archive_is_a_clear_error():
    with pytest.raises(DataError, match=r"must hold c\.txt"):
        tar_member(tar_of({"package/b.txt": b"2"}), "c.txt")
    with pytest.raises(DataError, match=r"must hold c\.txt"):
        zip_member(zip_of({"b.txt": b"2"}), "c.txt")
    whole = tar_of({"package/b.txt": bytes(range(256)) * 50})
    for broken in (b"no archive", whole[:-40], whole[: len(whole) // 2]):
        with pytest.raises(DataError, match="whole archive"):
            list(tar_files(broken))
    with pytest.raises(DataError, match="whole archive"):
        zip_member(zip_of({"b.txt": b"2"})[:-10], "b.txt")


def test_a_link_is_never_followed():
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as tar:
        entry = tarfile.TarInfo("p-1.0/passwd")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(entry)
    assert list(tar_files(sink.getvalue())) == []
    with pytest.raises(DataError, match="must hold"):
        tar_member(sink.getvalue(), "passwd")
