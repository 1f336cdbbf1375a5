"""Parquet tables in memory, and parsed statements."""

from pathlib import Path

import duckdb
import pytest

from emulators.kusto.errors import QueryError
from emulators.kusto.loading import load
from emulators.kusto.sandbox import open_database
from emulators.kusto.statements import CHARACTERS, Statements
from emulators.kusto.tables import columns_of, create_views


@pytest.mark.parametrize(("memory_bytes", "survives"), [(1_000_000_000, True), (0, False)])
def test_what_fits_is_loaded(tmp_path: Path, memory_bytes: int, *, survives: bool) -> None:
    """A table that fits is independent of its file, with the same columns; another is read from it by each query."""
    file = tmp_path / "Things.parquet"
    with open_database(None) as connection:
        connection.execute(f"COPY (SELECT range AS id, '{{\"a\": 1}}' AS d FROM range(5)) TO '{file}'")
        files = create_views(connection, tmp_path)
        columns = columns_of(connection, ["Things"])
        load(connection, files, memory_bytes)
        assert columns_of(connection, ["Things"]) == columns
        file.unlink()
        if survives:
            assert connection.execute('SELECT count(*), any_value(typeof(d)) FROM "Things"').fetchall() == [(5, "JSON")]
        else:
            with pytest.raises(duckdb.IOException):
                connection.execute('SELECT count(*) FROM "Things"')


def test_a_statement_is_parsed_once() -> None:
    """The same text gives the same statement, which runs with other values and on another cursor."""
    statements = Statements()
    with duckdb.connect() as connection:
        statement = statements.select(connection, "SELECT $n + 1")
        assert statements.select(connection.cursor(), "SELECT $n + 1") is statement
        answers = [connection.cursor().execute(statement, {"n": n}).fetchall() for n in (1, 2)]
    assert answers == [[(2,)], [(3,)]]


@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "CREATE TABLE t (i INT)", ""])
def test_one_select_and_nothing_else(sql: str) -> None:
    """A text that is not one SELECT is never executed."""
    with duckdb.connect() as connection, pytest.raises(QueryError):
        Statements().select(connection, sql)


def test_long_statements_push_others_out() -> None:
    """What is kept stays within a number of characters."""
    statements = Statements()
    with duckdb.connect() as connection:
        first = statements.select(connection, "SELECT 1")
        statements.select(connection, f"SELECT '{'x' * (CHARACTERS - 10)}'")
        assert statements.select(connection, "SELECT 1") is not first
