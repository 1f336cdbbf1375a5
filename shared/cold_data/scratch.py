"""Folders for files on their way: how much they may take, and what a power cut leaves in them."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from shared.errors import Kind, WorkspaceError

KEPT_FREE = 1_000_000_000
"""Bytes of its disk that scratch files leave to others; on a small disk a tenth of it."""
NEARLY_FULL = 64_000_000
"""Bytes of room under which an engine that ends was short of disk."""
_SMALLER = "ask for a shorter range"


def free_bytes(folder: Path) -> int:
    """Return how many bytes more scratch files may take.

    Raises:
        WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL``.
    """
    disk = shutil.disk_usage(folder)
    free = disk.free - min(KEPT_FREE, disk.total // 10)
    if free <= 0:
        raise _full()
    return free


def require_space(folder: Path, size: int) -> None:
    """Return when there is room for some bytes more.

    Raises:
        WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL``.
    """
    if size > free_bytes(folder):
        raise _full()


@contextmanager
def translate_resource_errors(folder: Path) -> Iterator[None]:
    """Tell the end of disk or memory, which another attempt would only meet again.

    Args:
        folder: where the scratch files are; what an engine spilled must still be there.

    Raises:
        WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL`` or ``DOWNLOAD_OUT_OF_MEMORY``.
    """
    import duckdb  # noqa: PLC0415  loading it takes long

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        # The engine words both ends alike.
        raise (_full() if _is_nearly_full(folder) else _too_much()) from error
    except MemoryError as error:
        raise _too_much() from error
    except (OSError, duckdb.IOException) as error:
        if getattr(error, "errno", None) not in {errno.ENOSPC, errno.EDQUOT} and "No space left" not in str(error):
            raise
        raise _full() from error


def remove_abandoned(scratch: Path, made_before: datetime) -> None:
    """Remove the folders in a scratch folder that nobody has put anything into since an instant."""
    for left in scratch.glob("*"):
        try:
            is_left = left.stat().st_mtime < made_before.timestamp()
        except FileNotFoundError:
            continue  # its owner is done with it
        if is_left:
            shutil.rmtree(left, ignore_errors=True)


def _is_nearly_full(folder: Path) -> bool:
    try:
        return free_bytes(folder) < NEARLY_FULL
    except WorkspaceError:
        return True


def _full() -> WorkspaceError:
    detail = f"The service's scratch disk has no room for this download: {_SMALLER}, or try again once there is room."
    return WorkspaceError(Kind.UNPROCESSABLE, "SCRATCH_FULL", detail)


def _too_much() -> WorkspaceError:
    detail = f"The rows take more memory than a download may use: {_SMALLER}, or take jsonl, which needs the least."
    return WorkspaceError(Kind.UNPROCESSABLE, "DOWNLOAD_OUT_OF_MEMORY", detail)
