"""A file that comes back after its source broke off.

Promises: after a read error the file is opened again and read on at the same byte, so that no row
is lost or doubled; waits grow; when all tries are used up, the error names the byte.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, cast

from textmill.core.errors import DataError
from textmill.data.find_files import SourceFile

WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""A minute in all: longer than a proxy or an object store takes to come back after a restart."""
_BUFFER_BYTES = 1 << 18

log = logging.getLogger(__name__)


class RetryingFile(io.RawIOBase):
    """Bytes of a file that is opened again after an error."""

    def __init__(self, name: str, reopen: Callable[[], BinaryIO], waits_s: Sequence[float] = WAITS_S) -> None:
        """Open the file; an error now is raised as it is.

        Args:
            name: for messages.
            reopen: opens it, each time at its beginning.
            waits_s: how long to wait before each further try.
        """
        super().__init__()
        self._name, self._reopen, self._waits = name, reopen, tuple(waits_s)
        self._file = reopen()
        self._place = 0

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
            return file.read(len(view))

        found: bytes = self._try(read)
        view[: len(found)] = found
        self._place += len(found)
        return len(found)

    def close(self) -> None:
        """Close the file below, too."""
        if not self.closed:
            self._file.close()
        super().close()

    def _try(self, work: Callable[[BinaryIO], Any]) -> Any:
        tried = 0
        while True:
            wait = self._waits[tried] if tried < len(self._waits) else None
            tried += 1
            try:
                if self._file.closed:
                    self._file = self._reopen()
                return work(self._file)
            except (OSError, ValueError) as err:
                self._file.close()
                if wait is None:
                    raise DataError(
                        f"The source {self._name} must come back after it breaks off",
                        got=f"{err} at byte {self._place:,} after {tried} tries",
                        fix="Check the source; --resume goes on where training stands.",
                    ) from err
                log.warning(
                    "%s broke off at byte %d (%s); next try in %g s", self._name, self._place, err, wait
                )
                time.sleep(wait)


def open_retrying(file: SourceFile, waits_s: Sequence[float] = WAITS_S) -> BinaryIO:
    """Open a file of a source so that it survives a source that breaks off."""
    raw = RetryingFile(file.name, file.open, waits_s)
    return cast("BinaryIO", io.BufferedReader(raw, _BUFFER_BYTES))
