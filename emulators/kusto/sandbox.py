"""The DuckDB connection that hostile SQL may run on: no files, no network, no extensions, no settings."""

import logging
import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

_LOGGER = logging.getLogger(__name__)
_RETRY_SECONDS = 0.1
_BESIDE_BUFFERS = 2 * 1024 * 1024 * 1024
_INVALID_DATABASE = 70


def open_database(path: Path | None, *, lock_wait_seconds: float = 10.0) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file, or a database in memory, that loads no extension by itself.

    Args:
        path: the file, created where it does not exist; None for memory.
        lock_wait_seconds: how long to wait for a dying predecessor to let go of the file.

    Raises:
        duckdb.IOException: the file is still locked, or cannot be opened.
    """
    deadline = time.monotonic() + lock_wait_seconds
    while True:
        try:
            return duckdb.connect(
                ":memory:" if path is None else str(path),
                config={
                    "autoinstall_known_extensions": "false",
                    "autoload_known_extensions": "false",
                    "allow_community_extensions": "false",
                },
            )
        except duckdb.IOException as error:
            if "lock" not in str(error) or time.monotonic() > deadline:
                raise
            _LOGGER.warning("waiting for another process to release %s", path)
            time.sleep(_RETRY_SECONDS)


def close_sandbox(
    connection: duckdb.DuckDBPyConnection, *, memory_bytes: int, threads: int, files: Sequence[Path]
) -> None:
    """Shut the database in, for this connection and every cursor of it, with no way back.

    Args:
        connection: any connection of the database.
        memory_bytes: what DuckDB's buffers may take.
        threads: worker threads.
        files: what may still be read by name: the files behind views.
    """
    allowed = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    for name, value in (
        ("memory_limit", f"'{int(memory_bytes)}B'"),
        ("threads", str(int(threads))),
        ("TimeZone", "'UTC'"),
        ("temp_directory", "''"),
        ("max_temp_directory_size", "'0KB'"),
        ("python_enable_replacements", "false"),
        ("allowed_paths", f"[{allowed}]"),
        ("enable_external_access", "false"),
        ("lock_configuration", "true"),
    ):
        # GLOBAL: a cursor is a connection of its own and would otherwise start with the defaults.
        connection.execute(f"SET GLOBAL {name} = {value}")


def limit_memory(memory_bytes: int) -> None:
    """Bound the memory of this process.

    DuckDB's own limit does not count what single values take: a text or a list of gigabytes would otherwise take the
    machine's memory. With this bound the allocation fails, and with it that query alone.

    Args:
        memory_bytes: what DuckDB's buffers may take; 2 GiB come on top for everything else, thread stacks included.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes + _BESIDE_BUFFERS, hard))


def abandon(reason: object) -> None:
    """End this process at once, to be started again: only a new one goes on from here.

    Args:
        reason: DuckDB has declared the database invalid, or a query holds its thread for good.
    """
    _LOGGER.critical("ending: %s", reason)
    os._exit(_INVALID_DATABASE)
