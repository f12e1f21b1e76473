from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from textmill.core.errors import DataError
from textmill.data.get.pip_download import download_sdist

NAME = "textmill-test-package"
SETUP = f"from setuptools import setup\nsetup(name={NAME!r}, version='1.0')\n"
PROJECT = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'


@pytest.fixture
def sdist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Let pip look only into a folder that holds one small source package."""
    path = tmp_path / "wheelhouse" / f"{NAME}-1.0.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as tar:
        for file, content in (("setup.py", SETUP), ("pyproject.toml", PROJECT), ("PKG-INFO", "Name: x\n")):
            entry = tarfile.TarInfo(f"{NAME}-1.0/{file}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content.encode()))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    return path.read_bytes()


@pytest.mark.slow
def test_the_users_pip_brings_the_package(sdist: bytes) -> None:
    digest = hashlib.sha256(sdist).hexdigest()
    assert download_sdist(f"{NAME}==1.0", digest) == sdist
    with pytest.raises(DataError, match=rf"SHA-256 {'0' * 64}.*{digest}"):
        download_sdist(f"{NAME}==1.0", "0" * 64)


def test_what_pip_cannot_find_is_a_clear_error(sdist: bytes) -> None:
    with pytest.raises(
        DataError, match=r"fetch textmill-test-package==9\.9.*ERROR: No matching distribution"
    ):
        download_sdist(f"{NAME}==9.9", "0" * 64)
