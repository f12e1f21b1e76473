import os
import re
import resource
import stat
import subprocess
import sys

import pytest

from textmill.core.errors import StoreError
from textmill.core.files import append_line, remove_tree, sha256_file, write_atomic, write_json


def test_a_written_file_has_the_mode_that_the_umask_allows(tmp_path):
    old = os.umask(0o027)
    try:
        write_atomic(tmp_path / "a", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_nothing_but_the_file_is_left(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_failed_write_keeps_the_old_file_and_says_why(tmp_path):
    path = tmp_path / "a"
    write_atomic(path, b"old")
    program = (
        "import resource, signal, sys, pathlib\n"
        "from textmill.core.errors import StoreError\n"
        "from textmill.core.files import write_atomic\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    write_atomic(pathlib.Path(sys.argv[1]), b'x' * 100_000)\n"
        "except StoreError as err:\n"
        "    sys.exit('refused: ' + err.rule)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    assert "refused: A file must stay below the size limit" in done.stderr
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_json_with_nan_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "a.json", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_lines_are_appended_whole(tmp_path):
    append_line(tmp_path / "j", "one")
    append_line(tmp_path / "j", "two")
    assert (tmp_path / "j").read_text() == "one\ntwo\n"


def test_a_folder_in_the_way_is_no_silent_success(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises((StoreError, OSError)):
        write_atomic(tmp_path / "a", b"x")


def test_the_hash_is_sha256(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256_file(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_read_only_tree_is_removed(tmp_path):
    inner = tmp_path / "v" / "sub"
    inner.mkdir(parents=True)
    (inner / "f").write_text("x")
    (inner / "f").chmod(0o444)
    inner.chmod(0o555)
    (tmp_path / "v").chmod(0o555)
    remove_tree(tmp_path / "v")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file as folder", "folder as file", "long", "loop"])
def test_a_path_that_cannot_be_written_is_a_clear_error(tmp_path, kind):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    path = {
        "file as folder": tmp_path / "file" / "a.csv",
        "folder as file": tmp_path / "folder",
        "long": tmp_path / ("a" * 300),
        "loop": tmp_path / "loop" / "a.csv",
    }[kind]
    with pytest.raises(StoreError, match=re.escape(str(tmp_path))):
        write_atomic(path, b"x")
    assert (tmp_path / "file").read_text() == "kept"
    assert not list(tmp_path.glob(".*"))
