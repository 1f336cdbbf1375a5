"""Scratch folders (temporary files on disk): their space limits, and the removal of abandoned files."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from shared.errors import Kind, WorkspaceError

RESERVED_BYTES = 1_000_000_000
"""Bytes of the disk that scratch files must leave free; on a small disk, a tenth of the disk."""
NEARLY_FULL_BYTES = 64_000_000
"""Number of free bytes below which an out-of-memory error of DuckDB is reported as a full disk."""
_SMALLER = "request a shorter range"


def count_free_bytes(folder: Path) -> int:
    """Return the number of bytes that scratch files in a folder may still use; it is at least 1.

    Raises:
        WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL`` if the number is 0.
    """
    disk = shutil.disk_usage(folder)
    free = disk.free - min(RESERVED_BYTES, disk.total // 10)
    if free <= 0:
        raise _build_scratch_full_error()
    return free


def require_scratch_space(folder: Path, required_bytes: int) -> None:
    """Check that the scratch disk has room for ``required_bytes`` bytes.

    Raises:
        WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL`` if it has not.
    """
    if required_bytes > count_free_bytes(folder):
        raise _build_scratch_full_error()


@contextmanager
def translate_resource_errors(folder: Path) -> Iterator[None]:
    """Context manager: convert errors of a full disk or exhausted memory to errors that are not retried.

    Args:
        folder: folder of the scratch files; its disk is examined while the engine's temporary files still exist.

    Raises:
        WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL`` if the disk is full, ``DOWNLOAD_OUT_OF_MEMORY`` if the memory is
            not enough.
    """
    import duckdb  # noqa: PLC0415  loading it takes long

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        # The engine raises the same error for a full disk and for exhausted memory.
        raise (_build_scratch_full_error() if _is_disk_nearly_full(folder) else _build_out_of_memory_error()) from error
    except MemoryError as error:
        raise _build_out_of_memory_error() from error
    except (OSError, duckdb.IOException) as error:
        if getattr(error, "errno", None) not in {errno.ENOSPC, errno.EDQUOT} and "No space left" not in str(error):
            raise
        raise _build_scratch_full_error() from error


def remove_abandoned_scratch_folders(scratch_folder: Path, changed_before: datetime) -> None:
    """Remove the subfolders of a scratch folder that were last changed before ``changed_before``, with their files."""
    for entry in scratch_folder.glob("*"):
        try:
            is_abandoned = entry.stat().st_mtime < changed_before.timestamp()
        except FileNotFoundError:
            continue  # its owner removed it meanwhile
        if is_abandoned:
            shutil.rmtree(entry, ignore_errors=True)


def _is_disk_nearly_full(folder: Path) -> bool:
    try:
        return count_free_bytes(folder) < NEARLY_FULL_BYTES
    except WorkspaceError:
        return True


def _build_scratch_full_error() -> WorkspaceError:
    detail = f"The service's scratch disk has no space for this job; {_SMALLER}, or try again later."
    return WorkspaceError(Kind.UNPROCESSABLE, "SCRATCH_FULL", detail)


def _build_out_of_memory_error() -> WorkspaceError:
    detail = (
        f"The rows need more memory than a download may use; {_SMALLER}, or use format jsonl, which needs the least."
    )
    return WorkspaceError(Kind.UNPROCESSABLE, "DOWNLOAD_OUT_OF_MEMORY", detail)
