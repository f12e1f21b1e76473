from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from textmill.core.progress import SilentProgress


class Listener(SilentProgress):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def write_csv(tmp_path: Path) -> Callable[..., Path]:
    """Write rows of (text, label) as a csv file."""

    def write(rows: Sequence[tuple[str, str]], name: str = "t.csv") -> Path:
        quoted = ['"' + text.replace('"', '""') + '","' + label + '"' for text, label in rows]
        path = tmp_path / name
        path.write_bytes("\n".join(["text,label", *quoted, ""]).encode())
        return path

    return write
