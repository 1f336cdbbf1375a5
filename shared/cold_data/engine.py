"""DuckDB as the archive uses it: bounded memory, what is over goes to a folder, no network."""

from pathlib import Path
from typing import TYPE_CHECKING

from shared.cold_data.sql import text

if TYPE_CHECKING:
    import duckdb

MEMORY = "300MB"


def opened(folder: Path) -> "duckdb.DuckDBPyConnection":
    """Return an engine that reads and writes the Parquet files of a folder; the caller closes it."""
    import duckdb  # noqa: PLC0415  loading it takes long

    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY,
        "temp_directory": str(folder / "spilled"),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    engine = duckdb.connect(":memory:", config=limits)
    engine.execute("SET TimeZone = 'UTC'")
    engine.execute(f"SET allowed_directories = [{text(str(folder))}]")
    engine.execute("SET enable_external_access = false")
    engine.execute("SET lock_configuration = true")
    return engine
