"""DuckDB engine for reading the telemetry archive, with limited memory and disk space, and its SQL queries."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shared.cold_data.scratch import count_free_bytes

if TYPE_CHECKING:
    import duckdb

MEMORY_PER_THREAD_MB = 60
"""Memory of each thread, because each thread allocates its own vectors; one thread gets twice as much."""
_MOST_THREADS = 4
_FREED_MEMORY = "8MB"


def open_engine(scratch_folder: Path) -> "duckdb.DuckDBPyConnection":
    """Return a DuckDB engine that can access only the Parquet files of one folder; the caller closes the engine.

    Raises:
        WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL`` if the disk has no space for the engine's temporary files.
    """
    import duckdb  # noqa: PLC0415  loading it takes long

    threads = min(_MOST_THREADS, os.cpu_count() or 1)
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{max(2, threads) * MEMORY_PER_THREAD_MB}MB",
        "threads": threads,
        "temp_directory": str(scratch_folder / "spilled"),
        "max_temp_directory_size": f"{count_free_bytes(scratch_folder)}B",
        # Memory that a query has freed is returned to the operating system before the next one takes its own.
        "allocator_flush_threshold": _FREED_MEMORY,
        "allocator_bulk_deallocation_flush_threshold": _FREED_MEMORY,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    engine = duckdb.connect(":memory:", config=limits)
    engine.execute("SET TimeZone = 'UTC'")
    engine.execute(f"SET allowed_directories = [{quote_sql_text(str(scratch_folder))}]")
    engine.execute("SET enable_external_access = false")
    engine.execute("SET lock_configuration = true")
    return engine


IDENTITY = '"partition", "sequence", enqueued_at'
"""Columns that identify a hub event; the time is included, because a reset hub reuses sequence numbers."""

ROW_ORDER = 'timestamp, "partition", "sequence"'


def build_rows_query(source_sql: str, columns: Sequence[str], *, deduplicate: bool) -> str:
    """Build the SQL query that reads columns of archived rows from ``source_sql``, a table or a table function.

    If ``deduplicate`` is True, the query returns a row that occurs in several blobs only once.
    """
    named = ", ".join(f'"{name}"' for name in columns)
    query = f"SELECT {named} FROM {source_sql}"  # noqa: S608  constant names
    return f"SELECT DISTINCT ON ({IDENTITY}) * FROM ({query})" if deduplicate else query  # noqa: S608  as above


def build_repeated_id_hashes_query(files: Sequence[Path]) -> str:
    """Build the SQL query for the hashes (column ``h``) of the message ids that occur in several rows of the files."""
    found = f"SELECT hash(message_id) AS h FROM {build_read_parquet_sql(files)}"  # noqa: S608  constant names
    return f"SELECT h FROM ({found}) GROUP BY h HAVING count(*) > 1"  # noqa: S608  as above


def build_rows_with_id_hashes_query(files: Sequence[Path], id_hash_table: str) -> str:
    """Build the SQL query for the archived rows in Parquet files whose message ids have a hash that a table lists.

    The table has the hashes in column ``h``. The columns of the result are the message id, partition and sequence
    number, and ``enqueued`` and ``happened`` (enqueued time and timestamp in microseconds since 1970).
    """
    instants = "epoch_us(enqueued_at) AS enqueued, epoch_us(timestamp) AS happened"
    return (
        f'SELECT * FROM (SELECT DISTINCT message_id, "partition", "sequence", {instants} '  # noqa: S608  constant names
        f"FROM {build_read_parquet_sql(files)} WHERE hash(message_id) IN (SELECT h FROM {id_hash_table}))"
    )


def build_query_excluding_listed_rows(query: str, excluded_rows_table: str) -> str:
    """Build an SQL query that returns the rows of another query except those that a table lists.

    The table identifies the excluded rows by partition, sequence number and enqueued time.
    """
    places = 'r."partition" = c."partition" AND r."sequence" = c."sequence" AND epoch_us(r.enqueued_at) = c.enqueued'
    return f"SELECT r.* FROM ({query}) r ANTI JOIN {excluded_rows_table} c ON {places}"  # noqa: S608  constant names


def quote_sql_text(value: str) -> str:
    """Write a text as an SQL string literal, in quotes."""
    return "'" + value.replace("'", "''") + "'"


def build_read_parquet_sql(files: Sequence[Path]) -> str:
    """Return the SQL table function that reads the given Parquet files."""
    return f"read_parquet([{', '.join(quote_sql_text(str(file)) for file in files)}])"
