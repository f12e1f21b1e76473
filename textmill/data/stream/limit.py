"""A file that seems to end earlier."""

from __future__ import annotations

import io
from typing import BinaryIO, cast


class LimitedFile(io.RawIOBase):
    """The first bytes of another file."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        """Let `file` seem to end at byte `end`."""
        super().__init__()
        self._file, self._end = file, end

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can seek."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move, counted from the beginning or from here."""
        assert whence != io.SEEK_END, "nobody asks for the end of a part"
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the byte that is read next."""
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, never beyond the end."""
        left = max(0, self._end - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left))

    def close(self) -> None:
        """Close the file below, too."""
        self._file.close()
        super().close()


def limited(file: BinaryIO, end: int) -> BinaryIO:
    """Return the file with nothing behind byte `end`."""
    return cast("BinaryIO", LimitedFile(file, end))
