"""Tables that the emulator reads from a folder of Parquet files; each table has the name of its file.

This module is separate from `process`, because the rules for files do not concern the start of the emulator.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from emulators.kusto.extensions.known_types import FINITE_OR_INFINITE

_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_ .-]*[A-Za-z0-9_])?")
"""Valid table names of Data Explorer; a query must write a name with a space, dot or dash as ``['...']``."""
_LOGGER = logging.getLogger(__name__)
_SAMPLE_ROWS = 1000


type ColumnNameAndDuckdbType = tuple[str, str]


class UnusableFolderError(Exception):
    """The data folder cannot be served; the message contains the reason."""


def create_parquet_views_and_list_files(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """Create a DuckDB view for each ``*.parquet`` file of a folder and return the files.

    A text column becomes ``dynamic`` if all its values are JSON objects or arrays. Timestamps with a time zone are
    converted to UTC. A file whose name is not a valid table name is skipped with a warning in the log.

    Raises:
        UnusableFolderError: no file has a valid table name, or two file names differ only in case.
    """
    files = [file for file in sorted(folder.glob("*.parquet")) if _has_valid_table_name(file)]
    if not files:
        raise UnusableFolderError(f"{folder} contains no .parquet file with a valid table name")
    seen: dict[str, Path] = {}
    for file in files:
        if file.stem.casefold() in seen:
            raise UnusableFolderError(
                f"{file.name} and {seen[file.stem.casefold()].name} differ only in letter case; rename one of the files"
            )
        seen[file.stem.casefold()] = file
        _create_parquet_view(connection, file)
    return [file.resolve() for file in files]


def _has_valid_table_name(file: Path) -> bool:
    if _NAME.fullmatch(file.stem):
        return True
    _LOGGER.warning(
        "%r is not served: a table name contains only letters, digits, underscores, spaces, dots and dashes", file.name
    )
    return False


def read_columns_by_table(
    connection: duckdb.DuckDBPyConnection, table_names: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """Return the column names of each table, in the table's order, by table name."""
    return {
        table: [name for name, _ in _list_columns_with_types(connection, _quote_identifier(table))]
        for table in table_names
    }


def read_type_by_column(connection: duckdb.DuckDBPyConnection, table_names: Sequence[str]) -> Mapping[str, str]:
    """Return the DuckDB type by column name, for columns that have the same type in all tables.

    In an in-memory table, a DOUBLE column without NaN has the type ``FINITE_OR_INFINITE``, because simpler SQL can sort
    its values.
    """
    types: dict[str, set[str]] = {}
    for table in table_names:
        columns = _list_columns_with_types(connection, _quote_identifier(table))
        plain = _find_columns_without_nan(connection, table, [name for name, kind in columns if kind == "DOUBLE"])
        for name, kind in columns:
            types.setdefault(name, set()).add(FINITE_OR_INFINITE if name in plain else kind)
    for kinds in types.values():
        if kinds == {"DOUBLE", FINITE_OR_INFINITE}:
            kinds.remove(FINITE_OR_INFINITE)
    return {name: kinds.pop() for name, kinds in sorted(types.items()) if len(kinds) == 1}


def _find_columns_without_nan(
    connection: duckdb.DuckDBPyConnection, table_name: str, columns: Sequence[str]
) -> set[str]:
    """Return the columns of an in-memory table that contain no NaN; none for a file, because its content can change."""
    query = "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = ?"
    if not columns or connection.execute(query, [LOADED, table_name]).fetchone() is None:
        return set()
    tests = ", ".join(f"coalesce(bool_or(isnan({_quote_identifier(name)})), false)" for name in columns)
    found = connection.execute(f"SELECT {tests} FROM {_quote_identifier(table_name)}").fetchone() or ()  # noqa: S608  quoted names
    return {name for name, has_nan in zip(columns, found, strict=True) if not has_nan}


def _create_parquet_view(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    source = "read_parquet('" + str(file.resolve()).replace("'", "''") + "')"
    description = _list_columns_with_types(connection, source)
    texts = [name for name, kind in description if kind == "VARCHAR"]
    dynamics = _find_json_columns(connection, source, texts)
    casts = [f"CAST({_quote_identifier(name)} AS JSON) AS {_quote_identifier(name)}" for name in dynamics]
    casts += [
        f"({_quote_identifier(name)} AT TIME ZONE 'UTC') AS {_quote_identifier(name)}"
        for name, kind in description
        if kind == "TIMESTAMP WITH TIME ZONE"
    ]
    replaced = f" REPLACE ({', '.join(casts)})" if casts else ""
    view = f"CREATE VIEW {_quote_identifier(file.stem)} AS SELECT *{replaced} FROM {source}"  # noqa: S608  names are checked, quoted
    connection.execute(view)


def _list_columns_with_types(connection: duckdb.DuckDBPyConnection, source_sql: str) -> list[ColumnNameAndDuckdbType]:
    query = f"DESCRIBE SELECT * FROM {source_sql}"  # noqa: S608  the caller quotes
    return [(row[0], row[1]) for row in connection.execute(query).fetchall()]


def _find_json_columns(
    connection: duckdb.DuckDBPyConnection, source_sql: str, text_columns: Sequence[str]
) -> list[str]:
    """Return the text columns that contain only JSON objects or arrays.

    All rows of a column are read only if its first rows contain only JSON objects or arrays, because reading takes
    time.
    """
    sample = f"(SELECT * FROM {source_sql} LIMIT {_SAMPLE_ROWS})"  # noqa: S608  the caller quotes
    sampled = _filter_json_columns(connection, sample, text_columns)
    return _filter_json_columns(connection, source_sql, sampled)


def _filter_json_columns(connection: duckdb.DuckDBPyConnection, source_sql: str, columns: Sequence[str]) -> list[str]:
    if not columns:
        return []
    tests = ", ".join(
        f"count({_quote_identifier(name)}) > 0 AND coalesce(bool_and(json_valid({_quote_identifier(name)}) "
        f"AND substr(ltrim({_quote_identifier(name)}), 1, 1) IN ('{{', '[')), false)"
        for name in columns
    )
    row = connection.execute(f"SELECT {tests} FROM {source_sql}").fetchone()  # noqa: S608  every name is quoted
    return [name for name, is_json in zip(columns, row or (), strict=True) if is_json]


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


LOADED = "loaded"
"""Name of the attached DuckDB database that contains the tables in memory."""
_MEMORY_DIVISOR = 4
"""Tables are loaded up to a total uncompressed size of the engine's memory divided by this number."""


def load_tables_into_memory(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], engine_memory_bytes: int
) -> None:
    """Load Parquet files into memory, smallest first, until a quarter of the engine's memory is used.

    The view of a loaded file then reads the table in memory, and later changes of the file have no effect. DuckDB
    compresses the tables to about the size of the files.

    Args:
        connection: connection to the database, which has a view for each file.
        files: the Parquet files to load.
        engine_memory_bytes: memory limit of the query engine.
    """
    connection.execute(f"ATTACH ':memory:' AS {LOADED} (COMPRESS)")
    available = engine_memory_bytes // _MEMORY_DIVISOR
    for size, file in sorted((_read_uncompressed_bytes(connection, file), file) for file in files):
        available -= size
        if available < 0:
            break
        table = f'{LOADED}."{file.stem}"'
        connection.execute(f'CREATE TABLE {table} AS FROM "{file.stem}"')
        connection.execute(f'CREATE OR REPLACE VIEW "{file.stem}" AS FROM {table}')
        connection.execute(f"FORCE CHECKPOINT {LOADED}")  # compresses the new table


def _read_uncompressed_bytes(connection: duckdb.DuckDBPyConnection, file: Path) -> int:
    query = "SELECT coalesce(sum(total_uncompressed_size), 0) FROM parquet_metadata(?)"
    row = connection.execute(query, [str(file)]).fetchone()
    return int(row[0]) if row else 0
