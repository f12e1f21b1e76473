"""The page about orders says what is."""

import re
from pathlib import Path
from typing import get_args

from textmill.order.config import Strategy

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "order.md").read_text("utf-8")


def test_the_loop_on_the_page_runs():
    code = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[-1]
    found: dict[str, object] = {}
    exec(code, found)
    assert len(found["batch"]) > 0  # type: ignore[arg-type]


def test_the_page_names_every_strategy():
    assert [name for name in get_args(Strategy) if f"| `{name}` |" not in PAGE] == []
