"""Free space on the disk of the embedded stores, and release of unused space in SQLite files.

SQLite keeps the space of deleted rows as free pages of the file. Incremental vacuum returns these pages to the file
system in steps.
"""

import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from shared.disk_space.ports import DiskUsage
from shared.runtime import SYSTEM_RUNTIME, Runtime


class FolderDisk:
    """Implementation of Disk: reads the size and the free space of the file system that contains a folder.

    Args:
        folder: data directory of the embedded stores.
        runtime: clock, randomness and threads.
    """

    def __init__(self, folder: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._folder = folder
        self._runtime = runtime

    async def read_usage(self) -> DiskUsage:
        # In a thread, because a network file system possibly does not respond.
        usage = await self._runtime.run_in_thread(shutil.disk_usage, self._folder)
        return DiskUsage(usage.total, usage.free)


STEP_PAGES: Final = 1_000
"""Number of pages that one transaction returns to the file system; other writers wait for a few milliseconds."""
MAX_CONVERTED_BYTES: Final = 64 * 1024 * 1024
"""Maximum size in bytes of the content of a file that is rewritten; meanwhile, other writers wait under a second."""

_INCREMENTAL = 2
_KEPT_SHARE = 4


def enable_incremental_vacuum(connection: sqlite3.Connection) -> None:
    """Enable incremental vacuum for a new file, which must not be in WAL mode yet; an existing file is not changed."""
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")


def convert_small_file_to_incremental_vacuum(connection: sqlite3.Connection) -> None:
    """Rewrite a small file of an earlier version, so that its free pages can be returned to the file system.

    A larger file is not rewritten: new rows use its free pages.
    """
    content = _read_integer_pragma(connection, "page_count") - _read_integer_pragma(connection, "freelist_count")
    if (
        _read_integer_pragma(connection, "auto_vacuum") != _INCREMENTAL
        and content * _read_integer_pragma(connection, "page_size") <= MAX_CONVERTED_BYTES
    ):
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("VACUUM")


def release_free_pages(connection: sqlite3.Connection, run_step: Callable[[Callable[[], None]], None]) -> None:
    """Return free pages of the file to the file system in steps, until at most a quarter of the file is free.

    Args:
        connection: connection to the SQLite file.
        run_step: function that is called with each step, and must call the step; it can pause between steps.
    """
    if _read_integer_pragma(connection, "auto_vacuum") != _INCREMENTAL:
        return
    while (excess := _count_excess_free_pages(connection)) > 0:
        run_step(partial(_release_some_pages, connection, min(excess, STEP_PAGES)))


def _release_some_pages(connection: sqlite3.Connection, page_count: int) -> None:
    # The statement ends only after all its rows are read.
    connection.execute(f"PRAGMA incremental_vacuum({page_count})").fetchall()


def _count_excess_free_pages(connection: sqlite3.Connection) -> int:
    return (
        _read_integer_pragma(connection, "freelist_count")
        - _read_integer_pragma(connection, "page_count") // _KEPT_SHARE
    )


def _read_integer_pragma(connection: sqlite3.Connection, pragma_name: str) -> int:
    (number,) = connection.execute(f"PRAGMA {pragma_name}").fetchone()
    return int(number)
