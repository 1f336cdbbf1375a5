"""Tests of creating the functions and macros of all extensions in a database."""

from pathlib import Path
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
            extensions.create_functions_and_macros(connection)
        assert connection.execute(_COUNT).fetchall() == [(0,)]


def test_macros_of_a_database_file_are_created_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second start creates no macros; a start after a change of one macro or of DuckDB creates all of them."""

    def restart(result: int) -> None:
        macro = f"CREATE OR REPLACE MACRO first_of_a_test() AS {result}"
        monkeypatch.setattr(extensions, "EXTENSIONS", (SimpleNamespace(macros=[macro]),))
        with duckdb.connect(tmp_path / "file.duckdb") as connection:
            extensions.create_functions_and_macros(connection)
            found.append(connection.execute("SELECT first_of_a_test()").fetchone())
            connection.execute("CREATE OR REPLACE MACRO first_of_a_test() AS 0")

    found: list[tuple[int] | None] = []
    restart(1)
    restart(1)
    restart(2)
    monkeypatch.setattr(duckdb, "__version__", "0.0.0")
    restart(2)
    assert found == [(1,), (0,), (2,), (2,)]


def test_a_start_with_unchanged_macros_writes_nothing(tmp_path: Path) -> None:
    """A start whose macros are those of the last start does not change the database file."""
    for is_changed in (True, False):
        with duckdb.connect(tmp_path / "file.duckdb") as connection:
            extensions.create_functions_and_macros(connection)
            assert (tmp_path / "file.duckdb.wal").exists() is is_changed
