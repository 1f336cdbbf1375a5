"""A folder of Parquet files as tables: the file's name is the table's name."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAMPLE_ROWS = 1000


class UnusableFolderError(Exception):
    """The folder cannot be served; the message says which file and why."""


def create_views(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """Define a view over each ``*.parquet`` of a folder and return the files.

    A text column whose values all are JSON objects or arrays becomes ``dynamic``; an instant with a zone becomes
    UTC.

    Raises:
        UnusableFolderError: there is no such file, or a name is no table name or clashes with another.
    """
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise UnusableFolderError(f"{folder} holds no .parquet file")
    seen: dict[str, Path] = {}
    for file in files:
        if _NAME.fullmatch(file.stem) is None:
            raise UnusableFolderError(f"{file.name}: a table's name is letters, digits and underscores")
        if file.stem.casefold() in seen:
            raise UnusableFolderError(f"{file.name} and {seen[file.stem.casefold()].name} differ in case alone")
        seen[file.stem.casefold()] = file
        _create_view(connection, file)
    return [file.resolve() for file in files]


def columns_of(connection: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the columns of each table, in order."""
    return {table: [name for name, _ in _described(connection, f'"{table}"')] for table in tables}


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
    view = f'CREATE VIEW "{file.stem}" AS SELECT *{replaced} FROM {source}'  # noqa: S608  names are checked, quoted
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
