"""Parquet tables in memory: read once instead of by every query.

DuckDB keeps them compressed, in about the space that the files take. What does not fit stays a view over its file.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb

LOADED = "loaded"
"""The database of the tables in memory."""
_SHARE = 4
"""Files whose uncompressed size is up to one part in so many of the engine's memory are loaded."""


def load(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], memory_bytes: int) -> None:
    """Put tables behind the views over Parquet files, smallest first, as far as the memory goes.

    What happens to a file afterwards is not seen any more.

    Args:
        connection: the database with a view for each file, called by the file's name.
        files: the files.
        memory_bytes: of the engine.
    """
    connection.execute(f"ATTACH ':memory:' AS {LOADED} (COMPRESS)")
    left = memory_bytes // _SHARE
    for size, file in sorted((_uncompressed_bytes(connection, file), file) for file in files):
        left -= size
        if left < 0:
            break
        table = f'{LOADED}."{file.stem}"'
        connection.execute(f'CREATE TABLE {table} AS FROM "{file.stem}"')
        connection.execute(f'CREATE OR REPLACE VIEW "{file.stem}" AS FROM {table}')
        connection.execute(f"FORCE CHECKPOINT {LOADED}")  # compresses what was written


def _uncompressed_bytes(connection: duckdb.DuckDBPyConnection, file: Path) -> int:
    query = "SELECT coalesce(sum(total_uncompressed_size), 0) FROM parquet_metadata(?)"
    row = connection.execute(query, [str(file)]).fetchone()
    return int(row[0]) if row else 0
