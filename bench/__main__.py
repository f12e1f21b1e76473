"""`python -m bench NAME [--quick]`: runs one benchmark; each is a module with a `main(arguments)`."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

NOT_BENCHMARKS = {"__init__", "__main__", "figures", "readme", "verdict"}
"""Modules here without a `main` that measures."""


def main(arguments: list[str]) -> int:
    """Run the benchmark named first; return its exit code."""
    names = sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - NOT_BENCHMARKS)
    if not arguments or arguments[0] not in names:
        got = arguments[0] if arguments else "none"
        print(f"A benchmark must be one of {', '.join(names)}, but got {got}.", file=sys.stderr)
        return 2
    # Nothing here may wait for a model hub: all models and data come from packages.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return int(importlib.import_module(f"bench.{arguments[0]}").main(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
