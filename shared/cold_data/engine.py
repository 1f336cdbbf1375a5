"""DuckDB as the archive uses it: bounded memory, what is over goes to a folder with a bound of its own, no network."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from shared.cold_data.scratch import room
from shared.cold_data.sql import text

if TYPE_CHECKING:
    import duckdb

MEMORY = "300MB"
_MOST_THREADS = 4


def opened(folder: Path) -> "duckdb.DuckDBPyConnection":
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
        "max_temp_directory_size": f"{room(folder)}B",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    engine = duckdb.connect(":memory:", config=limits)
    engine.execute("SET TimeZone = 'UTC'")
    engine.execute(f"SET allowed_directories = [{text(str(folder))}]")
    engine.execute("SET enable_external_access = false")
    engine.execute("SET lock_configuration = true")
    return engine
