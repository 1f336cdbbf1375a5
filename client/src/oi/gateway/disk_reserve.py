"""File that reserves disk space, so that a spool can delete messages although the disk is full."""

import errno
import os
from contextlib import suppress
from pathlib import Path

_BLOCK_BYTES = 512
"""Unit of ``st_blocks``."""


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
        """True if the file exists with its full size."""
        with suppress(FileNotFoundError):
            return self._path.stat().st_size == self._size
        return False

    def discard_if_sparse(self) -> None:
        """Delete the file if it occupies less disk space than its size, because a backup restored it as a sparse file.

        Call this only once. On a file system with compression every reserve occupies less space, so repeated calls
        would delete each new reserve.
        """
        with suppress(FileNotFoundError):
            if self._path.stat().st_blocks * _BLOCK_BYTES < self._size:
                self.release()

    def create_if_missing(self) -> None:
        """Create the file unless it exists with its full size.

        Raises:
            OSError: the disk has too little free space, or the file cannot be created.
        """
        if self.is_present:
            return
        try:
            self._create()
        except OSError as error:
            self.release()
            raise OSError(
                f"{self._size // 2**20} MiB of disk space cannot be reserved in {self._path.parent}: {error.strerror}."
            ) from None

    def release(self) -> None:
        """Delete the file, so that other files can use its disk space."""
        self._path.unlink(missing_ok=True)

    def _create(self) -> None:
        self._check_free_space()
        with self._path.open("wb") as file:
            # macOS has no such function.
            if not hasattr(os, "posix_fallocate"):
                file.write(bytes(self._size))
                return
            try:
                os.posix_fallocate(file.fileno(), 0, self._size)
            except OSError as error:
                # Some network file systems cannot allocate space without a write.
                if error.errno not in {errno.EOPNOTSUPP, errno.EINVAL}:
                    raise
                file.write(bytes(self._size))

    def _check_free_space(self) -> None:
        """Raise an OSError if the disk has less free space than the file needs.

        Without this check, an attempt to create the file would use up the free space that other programs need.
        """
        disk = os.statvfs(self._path.parent)
        # Some network file systems state 0, whatever is free.
        if 0 < disk.f_bavail * disk.f_frsize < self._size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
