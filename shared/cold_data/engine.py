"""DuckDB as the archive uses it: bounded memory, what is over goes to a folder with a bound of its own, no network."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shared.cold_data.scratch import free_bytes

if TYPE_CHECKING:
    import duckdb

MEMORY = "300MB"
_MOST_THREADS = 4


def open_engine(folder: Path) -> "duckdb.DuckDBPyConnection":
    """Return an engine that reads and writes the Parquet files of a folder; the caller closes it.

    Raises:
        WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL``.
    """
    import duckdb  # noqa: PLC0415  loading it takes long

    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY,
        # Each thread holds vectors of its own.
        "threads": min(_MOST_THREADS, os.cpu_count() or 1),
        "temp_directory": str(folder / "spilled"),
        "max_temp_directory_size": f"{free_bytes(folder)}B",
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
"""What tells an event of the hub from all others; the time too, since a hub that begins anew repeats its numbers."""

ROW_ORDER = 'timestamp, "partition", "sequence"'


def select_rows_once(source: str, columns: Sequence[str], *, overlapping: bool) -> str:
    """Return the query for the rows of a source, those that stand there several times once."""
    named = ", ".join(f'"{name}"' for name in columns)
    query = f"SELECT {named} FROM {source}"  # noqa: S608  our own names
    return f"SELECT DISTINCT ON ({IDENTITY}) * FROM ({query})" if overlapping else query  # noqa: S608  as above


def select_repeated_ids(files: Sequence[Path]) -> str:
    """Return the query for hashes of message ids that stand in more than one row, or seem to."""
    found = f"SELECT hash(message_id) AS h FROM {parquet_source(files)}"  # noqa: S608  our own names
    return f"SELECT h FROM ({found}) GROUP BY h HAVING count(*) > 1"  # noqa: S608  as above


def select_rows_with_ids(files: Sequence[Path], table: str) -> str:
    """Return the query for the rows whose message id has its hash in a table: id, identity and arrival."""
    instants = "epoch_us(enqueued_at) AS enqueued, epoch_us(timestamp) AS happened"
    return (
        f'SELECT * FROM (SELECT DISTINCT message_id, "partition", "sequence", {instants} '  # noqa: S608  our own names
        f"FROM {parquet_source(files)} WHERE hash(message_id) IN (SELECT h FROM {table}))"
    )


def exclude_rows(query: str, table: str) -> str:
    """Return the query for the rows of a query that do not stand in a table of partition, sequence and arrival."""
    places = 'r."partition" = c."partition" AND r."sequence" = c."sequence" AND epoch_us(r.enqueued_at) = c.enqueued'
    return f"SELECT r.* FROM ({query}) r ANTI JOIN {table} c ON {places}"  # noqa: S608  our own names


def quote_text(value: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def parquet_source(files: Sequence[Path]) -> str:
    """Return the source that some blobs are."""
    return f"read_parquet([{', '.join(quote_text(str(file)) for file in files)}])"
