"""A file that comes back after its source broke off.

Promises: after a read error the file is opened again and read on at the same byte, so that no row
is lost or doubled; an end before the size that the source told is such an error, too; waits grow; when
all tries are used up, the error names the byte.
"""

from __future__ import annotations

import contextlib
import io
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, TypeVar, cast

from textmill.core.errors import DataError
from textmill.data.find_files import SourceFile

WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""A minute in all: longer than a proxy or an object store takes to come back after a restart."""
_BUFFER_BYTES = 1 << 18

log = logging.getLogger(__name__)
T = TypeVar("T")


class RetryingFile(io.RawIOBase):
    """Bytes of a file that is opened again after an error."""

    def __init__(
        self,
        name: str,
        reopen: Callable[[], BinaryIO],
        waits_s: Sequence[float] = WAITS_S,
        size: int | None = None,
    ) -> None:
        """Open the file.

        Args:
            name: for messages.
            reopen: opens it, each time at its beginning.
            waits_s: how long to wait before each further try.
            size: bytes that it has; None: not known.

        Raises:
            DataError: it cannot be opened.
        """
        super().__init__()
        self._name, self._reopen, self._waits, self._size = name, reopen, tuple(waits_s), size or 0
        self._place = 0
        self._file: BinaryIO | None = None
        self._try(lambda file: None)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can seek."""
        return True

    def tell(self) -> int:
        """Return the byte that is read next."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is read by it."""
        if whence == io.SEEK_END:
            self._place = int(self._try(lambda file: file.seek(offset, io.SEEK_END)))
        else:
            self._place = offset + (self._place if whence == io.SEEK_CUR else 0)
        return self._place

    def readinto(self, buffer: object) -> int:
        """Read up to the buffer's length; 0 at the end."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]

        def read(file: BinaryIO) -> bytes:
            file.seek(self._place)
            part = file.read(len(view))
            if not part and len(view) and self._place < self._size:
                raise OSError(f"it ends at byte {self._place:,} of {self._size:,}")
            return part

        found: bytes = self._try(read)
        view[: len(found)] = found
        self._place += len(found)
        return len(found)

    def close(self) -> None:
        """Close the file below, too."""
        if not self.closed:
            self._drop()
        super().close()

    def _try(self, work: Callable[[BinaryIO], Any]) -> Any:
        def on_open_file() -> Any:
            if self._file is None or self._file.closed:
                self._file = self._reopen()
            return work(self._file)

        return retrying(self._name, on_open_file, self._waits, lambda: self._place, self._drop)

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()


def retrying(
    name: str,
    work: Callable[[], T],
    waits_s: Sequence[float] = WAITS_S,
    place: Callable[[], int] = lambda: 0,
    drop: Callable[[], None] = lambda: None,
) -> T:
    """Return what `work` gives, tried again while the source is away.

    Args:
        name: of the source, for messages.
        work: reads or asks something.
        waits_s: how long to wait before each further try.
        place: the byte that is wanted, for messages.
        drop: is called after each failure.

    Raises:
        DataError: all tries failed.
    """
    tried = 0
    while True:
        wait = waits_s[tried] if tried < len(waits_s) else None
        tried += 1
        try:
            return work()
        except Exception as err:  # file systems of URLs raise what their libraries do (aiohttp, botocore)
            drop()
            if isinstance(err, DataError):
                raise
            if isinstance(err, FileNotFoundError | PermissionError) or _is_refusal(err):
                raise DataError(
                    "The data file must be readable",
                    got=f"{getattr(err, 'strerror', None) or str(err)!r} for {name}",
                    fix="Check that it is there, and its permissions.",
                ) from err
            if wait is None:
                raise DataError(
                    f"The source {name} must come back after it breaks off",
                    got=f"{err or type(err).__name__} at byte {place():,} after {tried} tries",
                    fix="Check the source; --resume goes on where training stands.",
                ) from err
            log.warning("%s broke off at byte %d (%s); next try in %g s", name, place(), err, wait)
            time.sleep(wait)


def _is_refusal(err: Exception) -> bool:
    """Whether a server answered that it will not give it: asking again would not help."""
    status = getattr(err, "status", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in (408, 425, 429)


def open_retrying(file: SourceFile, waits_s: Sequence[float] = WAITS_S) -> BinaryIO:
    """Open a file of a source so that it survives a source that breaks off."""
    raw = RetryingFile(file.name, file.open, waits_s, size_of(file, waits_s))
    return cast("BinaryIO", io.BufferedReader(raw, _BUFFER_BYTES))


def size_of(file: SourceFile, waits_s: Sequence[float] = WAITS_S) -> int:
    """Return the bytes of a file of a source, 0 where a URL does not tell."""
    return retrying(file.name, lambda: file.size, waits_s)
