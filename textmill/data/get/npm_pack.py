"""Packages through the user's own npm; nothing is installed and no script of a package is run."""

from __future__ import annotations

import shutil
from pathlib import Path

from textmill.core.errors import DataError
from textmill.data.get.tool import run_tool


def npm_pack(package: str, folder: Path) -> Path:
    """Fetch one package (`name@1.2.3`, or the path of a folder) into an empty folder; return its tgz.

    Raises:
        DataError: npm is not there or cannot reach its registry.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise DataError(
            "Fetching this data set needs npm",
            got="a PATH without it",
            fix="Install Node.js with npm, for example: apt-get install npm",
        )
    complaint = run_tool([npm, "pack", "--ignore-scripts", "--pack-destination", ".", package], folder)
    found = sorted(folder.glob("*.tgz"))
    if complaint or not found:
        raise DataError(
            f"npm must be able to fetch {package}",
            got=f"its failure: {complaint or 'no file came'}",
            fix=f"Check the network and npm's settings (npm config get registry): npm pack {package}",
        )
    return found[0]
