"""DuckDB engine of the archive and its SQL: bounded memory and spill space, no network."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shared.cold_data.scratch import count_free_bytes

if TYPE_CHECKING:
    import duckdb

MEMORY = "300MB"
_MOST_THREADS = 4


def open_engine(folder: Path) -> "duckdb.DuckDBPyConnection":
    """Return an engine that reads and writes the Parquet files of one folder; the caller closes it.

    Raises:
        WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL``.
    """
    import duckdb  # noqa: PLC0415  loading it takes long

    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY,
        # Each thread allocates its own vectors.
        "threads": min(_MOST_THREADS, os.cpu_count() or 1),
        "temp_directory": str(folder / "spilled"),
        "max_temp_directory_size": f"{count_free_bytes(folder)}B",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    engine = duckdb.connect(":memory:", config=limits)
    engine.execute("SET TimeZone = 'UTC'")
    engine.execute(f"SET allowed_directories = [{quote_text(str(folder))}]")
    engine.execute("SET enable_external_access = false")
    engine.execute("SET lock_configuration = true")
    return engine


IDENTITY = '"partition", "sequence", enqueued_at'
"""Columns that identify an event of the hub; includes the time because a reset hub reuses sequence numbers."""

ROW_ORDER = 'timestamp, "partition", "sequence"'


def select_rows_once(source: str, columns: Sequence[str], *, overlapping: bool) -> str:
    """Return a query for the rows of a source; overlapping sources are deduplicated."""
    named = ", ".join(f'"{name}"' for name in columns)
    query = f"SELECT {named} FROM {source}"  # noqa: S608  constant names
    return f"SELECT DISTINCT ON ({IDENTITY}) * FROM ({query})" if overlapping else query  # noqa: S608  as above


def select_repeated_ids(files: Sequence[Path]) -> str:
    """Return a query for hashes of message ids that occur, or may occur, in more than one row."""
    found = f"SELECT hash(message_id) AS h FROM {parquet_source(files)}"  # noqa: S608  constant names
    return f"SELECT h FROM ({found}) GROUP BY h HAVING count(*) > 1"  # noqa: S608  as above


def select_rows_with_ids(files: Sequence[Path], table: str) -> str:
    """Return a query for the rows whose message id has its hash in a table."""
    instants = "epoch_us(enqueued_at) AS enqueued, epoch_us(timestamp) AS happened"
    return (
        f'SELECT * FROM (SELECT DISTINCT message_id, "partition", "sequence", {instants} '  # noqa: S608  constant names
        f"FROM {parquet_source(files)} WHERE hash(message_id) IN (SELECT h FROM {table}))"
    )


def exclude_rows(query: str, table: str) -> str:
    """Return a query for the rows of a query that are not in a table of partition, sequence and enqueued time."""
    places = 'r."partition" = c."partition" AND r."sequence" = c."sequence" AND epoch_us(r.enqueued_at) = c.enqueued'
    return f"SELECT r.* FROM ({query}) r ANTI JOIN {table} c ON {places}"  # noqa: S608  constant names


def quote_text(value: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def parquet_source(files: Sequence[Path]) -> str:
    """Return the SQL table function that reads some Parquet files."""
    return f"read_parquet([{', '.join(quote_text(str(file)) for file in files)}])"
