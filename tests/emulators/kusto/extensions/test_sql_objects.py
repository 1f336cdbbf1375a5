"""Tests of creating the functions and macros of all extensions in a database."""

from types import SimpleNamespace

import duckdb
import pytest

from emulators.kusto import extensions

_COUNT = "SELECT count(*) FROM duckdb_functions() WHERE function_name IN ('first_of_a_test', 'second_of_a_test')"


def test_no_macro_is_created_if_one_cannot_be_created(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the statement of one macro fails, no macro is created, and the connection can be used further."""
    macros = ["CREATE OR REPLACE MACRO first_of_a_test(a) AS a + 1", "CREATE OR REPLACE MACRO second_of_a_test(a)"]
    monkeypatch.setattr(extensions, "EXTENSIONS", (SimpleNamespace(macros=macros),))
    with duckdb.connect() as connection:
        with pytest.raises(duckdb.ParserException):
            extensions.create_sql_objects(connection)
        assert connection.execute(_COUNT).fetchall() == [(0,)]
