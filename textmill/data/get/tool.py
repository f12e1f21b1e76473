"""Runs the user's own package tool (pip, npm, apt-get), so that its mirror, proxy and certificates hold.

Promises: the tool gets a fixed list of arguments, no shell; it never asks a question; its last
complaint comes back as one line.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

_TIMEOUT_S = 300
_TOO_LONG = 300  # characters of a complaint


def run_tool(command: Sequence[str], folder: Path) -> str:
    """Run a command in `folder` and return its last complaint, empty where there is none."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_TIMEOUT_S} s"
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR", "E:", "npm error", "npm ERR!"))]
    # pip and apt-get end with the reason; npm begins with it and ends with the place of its log file.
    if errors and errors[0].startswith("npm"):
        return " ".join(errors[:3])[:_TOO_LONG]
    return (errors or lines or [f"exit code {done.returncode}"])[-1][:_TOO_LONG]
