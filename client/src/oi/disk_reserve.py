"""File that reserves disk space, so that a spool can delete messages although the disk is full."""

import os
from contextlib import suppress
from pathlib import Path


class DiskReserve:
    """File without content that occupies disk space until it is deleted.

    Args:
        path: path of the file.
        size: size in bytes.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size

    @property
    def is_present(self) -> bool:
        """True if the file occupies its space."""
        with suppress(FileNotFoundError):
            return self._path.stat().st_size == self._size
        return False

    def create_if_missing(self) -> None:
        """Reserve the space again if it was released.

        Raises:
            OSError: the disk has too little free space.
        """
        if self.is_present:
            return
        try:
            with self._path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, self._size)
        except OSError as error:
            self.release()
            raise OSError(
                error.errno, f"The disk has less than {self._size // 2**20} MiB of free space at {self._path.parent}."
            ) from None

    def release(self) -> None:
        """Release the space for other files."""
        self._path.unlink(missing_ok=True)
