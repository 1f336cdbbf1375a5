"""A folder of Parquet files as tables: the file's name is the table's name."""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from emulators.kusto.loading import LOADED

FINITE_OR_INFINITE = "DOUBLE WITHOUT NAN"
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_ .-]*[A-Za-z0-9_])?")
"""What Data Explorer takes as a table's name; other than letters, digits and underscores, it is written ``['...']``."""
_LOGGER = logging.getLogger(__name__)
_SAMPLE_ROWS = 1000


class UnusableFolderError(Exception):
    """The folder cannot be served; the message says which file and why."""


def create_views(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """Define a view over each ``*.parquet`` of a folder and return the files.

    A text column whose values all are JSON objects or arrays becomes ``dynamic``; an instant with a zone becomes
    UTC. A file whose name is no table name is left out, with a warning in the log.

    Raises:
        UnusableFolderError: there is no such file, or two names differ in case alone.
    """
    files = [file for file in sorted(folder.glob("*.parquet")) if _is_named(file)]
    if not files:
        raise UnusableFolderError(f"{folder} holds no .parquet file that can be a table")
    seen: dict[str, Path] = {}
    for file in files:
        if file.stem.casefold() in seen:
            raise UnusableFolderError(f"{file.name} and {seen[file.stem.casefold()].name} differ in case alone")
        seen[file.stem.casefold()] = file
        _create_view(connection, file)
    return [file.resolve() for file in files]


def _is_named(file: Path) -> bool:
    if _NAME.fullmatch(file.stem):
        return True
    _LOGGER.warning(
        "%r is not served: a table's name is letters, digits, underscores, spaces, dots and dashes", file.name
    )
    return False


def columns_of(connection: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the columns of each table, in order."""
    return {table: [name for name, _ in _described(connection, _quoted(table))] for table in tables}


def column_types(connection: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> Mapping[str, str]:
    """Return DuckDB's type of each column that is of one type in every table that has it, by name.

    Reals of tables in memory that hold no NaN are of the type ``FINITE_OR_INFINITE``: they need no care when sorted.
    """
    types: dict[str, set[str]] = {}
    for table in tables:
        columns = _described(connection, _quoted(table))
        plain = _without_nan(connection, table, [name for name, kind in columns if kind == "DOUBLE"])
        for name, kind in columns:
            types.setdefault(name, set()).add(FINITE_OR_INFINITE if name in plain else kind)
    for kinds in types.values():
        if kinds == {"DOUBLE", FINITE_OR_INFINITE}:
            kinds.remove(FINITE_OR_INFINITE)
    return {name: kinds.pop() for name, kinds in sorted(types.items()) if len(kinds) == 1}


def _without_nan(connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> set[str]:
    """Return which columns hold no NaN, and never will: the table is one that was read into memory."""
    query = "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = ?"
    if not columns or connection.execute(query, [LOADED, table]).fetchone() is None:
        return set()
    tests = ", ".join(f"coalesce(bool_or(isnan({_quoted(name)})), false)" for name in columns)
    found = connection.execute(f"SELECT {tests} FROM {_quoted(table)}").fetchone() or ()  # noqa: S608  quoted names
    return {name for name, holds in zip(columns, found, strict=True) if not holds}


def _create_view(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    source = "read_parquet('" + str(file.resolve()).replace("'", "''") + "')"
    described = _described(connection, source)
    texts = [name for name, kind in described if kind == "VARCHAR"]
    dynamics = _json_columns(connection, source, texts)
    casts = [f"CAST({_quoted(name)} AS JSON) AS {_quoted(name)}" for name in dynamics]
    casts += [
        f"({_quoted(name)} AT TIME ZONE 'UTC') AS {_quoted(name)}"
        for name, kind in described
        if kind == "TIMESTAMP WITH TIME ZONE"
    ]
    replaced = f" REPLACE ({', '.join(casts)})" if casts else ""
    view = f"CREATE VIEW {_quoted(file.stem)} AS SELECT *{replaced} FROM {source}"  # noqa: S608  names are checked, quoted
    connection.execute(view)


def _described(connection: duckdb.DuckDBPyConnection, source: str) -> list[tuple[str, str]]:
    query = f"DESCRIBE SELECT * FROM {source}"  # noqa: S608  the caller quotes
    return [(row[0], row[1]) for row in connection.execute(query).fetchall()]


def _json_columns(connection: duckdb.DuckDBPyConnection, source: str, texts: Sequence[str]) -> list[str]:
    """Return the columns that hold JSON objects or arrays only: guessed from a sample, then proved on every row."""
    sample = f"(SELECT * FROM {source} LIMIT {_SAMPLE_ROWS})"  # noqa: S608  the caller quotes
    sampled = _only_json(connection, sample, texts)
    return _only_json(connection, source, sampled)


def _only_json(connection: duckdb.DuckDBPyConnection, source: str, columns: Sequence[str]) -> list[str]:
    if not columns:
        return []
    tests = ", ".join(
        f"count({_quoted(name)}) > 0 AND coalesce(bool_and(json_valid({_quoted(name)}) "
        f"AND substr(ltrim({_quoted(name)}), 1, 1) IN ('{{', '[')), false)"
        for name in columns
    )
    row = connection.execute(f"SELECT {tests} FROM {source}").fetchone()  # noqa: S608  every name is quoted
    return [name for name, holds in zip(columns, row or (), strict=True) if holds]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
