"""Files behind a URL, found as files in a folder are.

Promises: what a folder on this machine may hold, a URL may hold: hidden files and folders are no data, files
of other kinds are named; a source that is away is asked again, one that says no is not.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from textmill.core.errors import DataError
from textmill.data.find_files import SUFFIXES, SourceFile, as_source_file, kind_of, others_among
from textmill.data.stream.retry import WAITS_S, retrying


def remote_files(url: str, waits_s: Sequence[float] = WAITS_S) -> tuple[list[SourceFile], str | None]:
    """Return the files behind a URL, and a sentence on those of no known kind, if there are any.

    Args:
        url: of a file or a folder, for fsspec.
        waits_s: how long to wait before each further try.

    Raises:
        DataError: nothing there, nothing of a known kind, or the source does not come back.
    """
    import fsspec

    try:
        file_system, root = fsspec.core.url_to_fs(url)
    except ImportError as err:
        raise DataError(
            f"The URL {url} must be readable here", got=str(err), fix="Install that package with pip."
        ) from err
    except Exception as err:  # what the library behind the URL raises
        raise DataError("The data must be there", got=f"{url} ({err})", fix="Check the URL.") from err
    names = retrying(url, lambda: _names(file_system, root), waits_s)
    if names is None:
        raise DataError("The data must be there", got=f"nothing at {url}", fix="Check the URL.")
    if names == [root]:
        return [as_source_file(root, root.rsplit("/", 1)[-1], file_system)], None
    inside = {name: posixpath.relpath(name, root) for name in names}
    seen = [name for name in names if not any(part[0] in "._" for part in inside[name].split("/"))]
    kept = [name for name in seen if kind_of(PurePosixPath(name))]
    if not kept:
        raise DataError(
            "A data folder must hold data files",
            got=f"none at {url}",
            fix=f"Put files there that end with {', '.join(SUFFIXES)}.",
        )
    others = [inside[name] for name in seen if not kind_of(PurePosixPath(name))]
    return [as_source_file(name, inside[name], file_system) for name in kept], others_among(url, others)


def _names(file_system: Any, root: str) -> list[str] | None:
    """Return the file at a path or all files below it; None where nothing is."""
    file_system.invalidate_cache()
    if kind_of(PurePosixPath(root)) is None:
        # Over HTTP this would fetch a whole file to look for links in it.
        is_folder = bool(file_system.isdir(root))
    else:
        try:
            is_folder = file_system.info(root)["type"] == "directory"
        except FileNotFoundError as err:
            if err.__cause__ is not None and not isinstance(err.__cause__, FileNotFoundError):
                raise err.__cause__ from None  # fsspec calls a broken connection so, too
            return None
    names = sorted(file_system.find(root)) if is_folder else [root]
    if not is_folder and kind_of(PurePosixPath(root)) is None and not file_system.exists(root):
        return None
    return names or None
