"""Sandboxed DuckDB database: SQL has no access to files, the network, extensions or settings."""

import logging
import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_LOGGER = logging.getLogger(__name__)
_RETRY_SECONDS = 0.1
_OTHER_MEMORY_BYTES = 2 * 1024 * 1024 * 1024
_EXIT_STATUS = 70


def open_database(path: Path | None, *, lock_wait_seconds: float = 10.0) -> "duckdb.DuckDBPyConnection":
    """Open a DuckDB file or an in-memory database without automatic loading of extensions.

    DuckDB's compression of intermediate rows is off: with it, sorting a million rows by a string and a time takes twice
    the processor time.

    Args:
        path: the database file, created if it does not exist; None for an in-memory database.
        lock_wait_seconds: maximum time to wait until another process closes the file.

    Raises:
        duckdb.IOException: the file is still locked after the wait, or cannot be opened.
    """
    import duckdb  # noqa: PLC0415  translator processes load this module without DuckDB

    deadline = time.monotonic() + lock_wait_seconds
    while True:
        try:
            return duckdb.connect(
                ":memory:" if path is None else str(path),
                config={
                    "autoinstall_known_extensions": "false",
                    "autoload_known_extensions": "false",
                    "allow_community_extensions": "false",
                    "disabled_optimizers": "compressed_materialization",
                },
            )
        except duckdb.IOException as error:
            if "lock" not in str(error) or time.monotonic() > deadline:
                raise
            _LOGGER.warning("waiting for another process to release %s", path)
            time.sleep(_RETRY_SECONDS)


def restrict_database(
    connection: "duckdb.DuckDBPyConnection", *, memory_bytes: int, threads: int, readable_files: Sequence[Path]
) -> None:
    """Permanently forbid a connection and its cursors to access files, network, extensions and settings.

    Args:
        connection: connection to the database.
        memory_bytes: memory limit of DuckDB's buffers.
        threads: number of threads that DuckDB uses.
        readable_files: files that SQL may still read, because views of the database read them.
    """
    allowed = ", ".join("'" + str(file).replace("'", "''") + "'" for file in readable_files)
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
        # GLOBAL, because a cursor is a separate connection and would otherwise start with the defaults.
        connection.execute(f"SET GLOBAL {name} = {value}")


def limit_process_memory(memory_bytes: int) -> None:
    """Limit the memory of this process, so that a very large value makes only its own query fail.

    DuckDB's own limit does not include single values, such as a text of several gigabytes. With the limit of the
    process, the allocation of such a value fails, and only the query that creates the value fails.

    Args:
        memory_bytes: memory limit of DuckDB's buffers; 2 GiB are added for everything else, including thread stacks.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes + _OTHER_MEMORY_BYTES, hard))


_STORED_DATA = ("BASE_TABLE", "IN_MEMORY_TABLE", "ART_INDEX", "METADATA", "OVERFLOW_STRINGS")
"""Purposes of memory that holds stored data, which also exists while no query runs."""


def read_memory_bytes_by_purpose(connection: "duckdb.DuckDBPyConnection") -> dict[str, int]:
    """Return the bytes of DuckDB's buffers by their purpose, such as ``BASE_TABLE`` or ``HASH_TABLE``."""
    return dict(connection.execute("SELECT tag, memory_usage_bytes FROM duckdb_memory()").fetchall())


def has_leaked_memory(connection: "duckdb.DuckDBPyConnection", memory_bytes: int) -> bool:
    """Return whether memory of ended queries fills more than half of the limit; only a restart frees this memory.

    DuckDB can leak memory if an allocation fails at certain points. Call this while no query runs and no rows are
    inserted.

    Args:
        connection: connection to the database.
        memory_bytes: memory limit of DuckDB's buffers.
    """
    used = sum(
        size for purpose, size in read_memory_bytes_by_purpose(connection).items() if purpose not in _STORED_DATA
    )
    return used > memory_bytes / 2


def abort_process(reason: object) -> None:
    """End this process immediately, after a fault that only a restart can repair.

    Args:
        reason: description of the fault or the exception, for the log.
    """
    _LOGGER.critical("the process ends: %s", reason)
    os._exit(_EXIT_STATUS)
