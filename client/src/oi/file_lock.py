"""File lock that excludes other processes on the same computer."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import errno
    import msvcrt

    def _lock_descriptor(descriptor: int) -> None:
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            except OSError as error:
                # Windows fails with this error after ten attempts, one each second.
                if error.errno != errno.EDEADLK:
                    raise
            else:
                return
else:
    import fcntl

    def _lock_descriptor(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Lock a file until the ``with`` block ends; create the file if it is missing.

    If the process dies, the lock is released.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock_descriptor(descriptor)
        yield
    finally:
        os.close(descriptor)
