from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.data.get.packages import tar_of, zip_of
from textmill.core.errors import DataError
from textmill.data.get.apt_download import apt_download
from textmill.data.get.archive import Archive, fetch
from textmill.data.get.npm_pack import npm_pack
from textmill.data.get.tool import run_tool

NAME = "textmill-test-package"
SETUP = f"from setuptools import setup\nsetup(name={NAME!r}, version='1.0')\n"
PROJECT = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
META = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let pip look only into a folder that holds one small package in both forms."""
    folder = tmp_path / "wheelhouse"
    folder.mkdir()
    files = {"setup.py": SETUP, "pyproject.toml": PROJECT, "PKG-INFO": "Name: x\n"}
    sdist = tar_of({f"{NAME}-1.0/{name}": text.encode() for name, text in files.items()})
    (folder / f"{NAME}-1.0.tar.gz").write_bytes(sdist)
    info = "textmill_test_package-1.0.dist-info"
    wheel = {f"{info}/METADATA": META, f"{info}/WHEEL": "Wheel-Version: 1.0\n", f"{info}/RECORD": ""}
    packed = zip_of({name: text.encode() for name, text in wheel.items()})
    (folder / "textmill_test_package-1.0-py3-none-any.whl").write_bytes(packed)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "ending"), [("pip-sdist", "*.tar.gz"), ("pip-wheel", "*.whl")])
def test_the_users_pip_brings_the_package_and_it_is_kept(
    registry: Path, tmp_path: Path, tool, ending
) -> None:
    content = next(registry.glob(ending)).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    archive = Archive(tool, NAME, "1.0", digest)
    cache = tmp_path / "cache"
    assert fetch(archive, cache) == content
    assert [path.name for path in cache.iterdir()] == [digest]
    shutil.rmtree(registry)
    assert fetch(archive, cache) == content  # from the cache: the registry is gone
    (cache / digest).write_bytes(content[:-5])
    with pytest.raises(DataError, match="fetch textmill-test-package"):
        fetch(archive, cache)  # a damaged copy is never used


@pytest.mark.slow
def test_another_file_than_the_expected_one_is_refused_and_not_kept(registry: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"SHA-256 of .*{NAME}==1\.0.* must be {'0' * 64}"):
        fetch(Archive("pip-wheel", NAME, "1.0", "0" * 64), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_what_pip_cannot_find_is_a_clear_error(registry: Path, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"fetch textmill-test-package==9\.9.*ERROR: No matching distribution"
    ):
        fetch(Archive("pip-wheel", NAME, "9.9", "0" * 64), tmp_path)


@pytest.mark.slow
def test_npm_packs_without_running_the_packages_scripts(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    table = {"name": "x", "version": "1.0.0", "scripts": {"prepack": "touch ran"}}
    (package / "package.json").write_text(json.dumps(table))
    target = tmp_path / "target"
    target.mkdir()
    assert npm_pack(str(package), target).name == "x-1.0.0.tgz"
    assert not (package / "ran").exists()
    with pytest.raises(DataError, match=r"npm must be able to fetch .*no-such"):
        npm_pack(str(tmp_path / "no-such"), tmp_path)


def test_a_system_without_the_tool_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match="needs npm"):
        npm_pack("x@1", tmp_path)
    with pytest.raises(DataError, match="needs apt-get"):
        apt_download("fortunes", "1", tmp_path)


def test_the_last_complaint_of_a_tool_is_told(tmp_path: Path) -> None:
    assert run_tool(["sh", "-c", "echo fine"], tmp_path) == ""
    assert run_tool(["sh", "-c", "echo 'E: no such package' >&2; echo bye >&2; exit 3"], tmp_path).startswith(
        "E:"
    )
    assert run_tool(["sh", "-c", "exit 3"], tmp_path) == "exit code 3"
