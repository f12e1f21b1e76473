"""Where textmill keeps what it fetched or converted once, outside of any project.

Promise: the folder is `TEXTMILL_CACHE`, else `textmill` below `XDG_CACHE_HOME`, else
`~/.cache/textmill`; all that lies in it can be deleted and comes again.
"""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """Return the folder; it is not made here."""
    own = os.environ.get("TEXTMILL_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "textmill"
