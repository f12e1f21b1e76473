"""A folder is built once, whoever wants it and whatever goes wrong."""

from __future__ import annotations

import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.conftest import Listener
from textmill.core.errors import StoreError
from textmill.data.build_once import build_once


def names(root: Path) -> list[str]:
    return sorted(folder.name for folder in root.iterdir() if folder.name != ".locks")


def write_one(folder: Path) -> dict[str, Any]:
    (folder / "one").write_text("1")
    return {"fact": 1}


BUILDER = """
import os, sys, time
from pathlib import Path
from textmill.data.build_once import build_once

def build(folder):
    (folder / "built_by").write_text(str(os.getpid()))
    time.sleep(0.3)
    return {}

folder, _ = build_once(Path(sys.argv[1]), "data", "k", build)
print((folder / "built_by").read_text())
"""


def test_of_two_processes_one_builds(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BUILDER, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = {process.communicate(timeout=60)[0].strip() for process in both}
    assert len(told) == 1
    assert names(tmp_path) == ["data-k"]


def test_it_is_built_once_and_its_facts_are_kept(tmp_path: Path) -> None:
    first = build_once(tmp_path, "data", "k", write_one)
    again = build_once(tmp_path, "data", "k", lambda folder: pytest.fail("built twice"))
    assert first == again
    assert first[1]["files"] == {"one": [1, zlib.crc32(b"1")]}


def test_a_builder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> dict[str, Any]:
        write_one(folder)
        raise KeyError("no")

    with pytest.raises(KeyError):
        build_once(tmp_path, "data", "k", fail)
    assert names(tmp_path) == []


def write_bytes(file: Path) -> None:
    file.write_bytes(b"0" * 100_000)


def write_array(file: Path) -> None:
    with file.open("wb") as opened:
        np.zeros(100_000).tofile(opened)


@pytest.mark.parametrize("write", [write_bytes, write_array])
def test_a_full_disk_leaves_nothing_and_says_so(tmp_path: Path, write: Callable[[Path], None]) -> None:
    def fill(folder: Path) -> dict[str, Any]:
        write(folder / "large")
        return {}

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"size limit|room on the disk"):
            build_once(tmp_path, "data", "k", fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == []


def test_those_used_longest_ago_go_first(tmp_path: Path) -> None:
    listener = Listener()
    for key in ("a", "b", "a", "c"):
        build_once(tmp_path, "data", key, write_one, keep=2, progress=listener)
    assert names(tmp_path) == ["data-a", "data-c"]
    assert sum("is removed" in line for line in listener.said) == 1


def test_kinds_are_counted_apart(tmp_path: Path) -> None:
    for kind in ("data", "tokens"):
        build_once(tmp_path, kind, "k", write_one, keep=1)
    assert names(tmp_path) == ["data-k", "tokens-k"]
