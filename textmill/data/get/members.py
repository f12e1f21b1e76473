"""Files inside a downloaded package, read in memory.

Promises: nothing is unpacked to disk; links are never followed; a broken archive or a missing file
is a `DataError`.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator

from textmill.core.errors import DataError

_MAX_BYTES = 50_000_000


def tar_files(archive: bytes, under: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of the regular files of a tar.gz below its first folder.

    Args:
        archive: the tar.gz.
        under: only paths that begin so, after the first folder (`name-1.0/`, `package/`).
    """
    with _whole(), tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for entry in tar:
            path = entry.name.removeprefix("./").partition("/")[2]
            if entry.isfile() and path.startswith(under) and entry.size <= _MAX_BYTES:
                file = tar.extractfile(entry)
                assert file is not None, "a regular file can be read"
                yield path, file.read()


def tar_member(archive: bytes, ending: str) -> bytes:
    """Return the first regular file of a tar.gz whose path ends so."""
    with _whole(), tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for entry in tar:
            if entry.isfile() and f"/{entry.name}".endswith(f"/{ending}") and entry.size <= _MAX_BYTES:
                file = tar.extractfile(entry)
                assert file is not None, "a regular file can be read"
                return file.read()
    raise _missing(ending)


def zip_member(archive: bytes, path: str, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return one file of a zip (a wheel)."""
    with _whole(), zipfile.ZipFile(io.BytesIO(archive)) as packed:
        if path not in packed.namelist() or packed.getinfo(path).file_size > max_bytes:
            raise _missing(path)
        return packed.read(path)


@contextlib.contextmanager
def _whole() -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as err:
        raise DataError(
            "The downloaded package must be a whole archive",
            got=f"one that cannot be read ({err})",
            fix="Run the command again.",
        ) from err


def _missing(path: str) -> DataError:
    return DataError(
        f"The downloaded package must hold {path}", got="an archive without it", fix="Report this."
    )
