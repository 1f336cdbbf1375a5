"""The DuckDB connection that hostile SQL may run on: no files, no network, no extensions, no settings."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

_LOGGER = logging.getLogger(__name__)
_RETRY_SECONDS = 0.1


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
    connection: duckdb.DuckDBPyConnection, *, memory_limit: str, threads: int, files: Sequence[Path]
) -> None:
    """Shut the database in, for this connection and every cursor of it, with no way back.

    Args:
        connection: any connection of the database.
        memory_limit: DuckDB's own text, ``1GB``.
        threads: worker threads.
        files: what may still be read by name: the files behind views.
    """
    allowed = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    for name, value in (
        ("memory_limit", "'" + memory_limit.replace("'", "''") + "'"),
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
