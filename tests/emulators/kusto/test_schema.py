"""Tests of the tables in the telemetry file."""

from collections.abc import Iterator
from datetime import datetime

import duckdb
import pytest

from emulators.kusto.schema import COLUMNS, RAW_TABLE, TABLE, create_or_upgrade_tables

NOW = datetime(2026, 3, 1, 12, 0, 0)  # noqa: DTZ001  the database stores instants without a zone


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a connection to an empty database."""
    with duckdb.connect() as opened:
        yield opened


def _list_columns(connection: duckdb.DuckDBPyConnection, table: str) -> tuple[str, ...]:
    return tuple(column[0] for column in connection.execute(f'SELECT * FROM "{table}"').description or ())


def test_the_view_hides_the_time_of_ingestion(connection: duckdb.DuckDBPyConnection) -> None:
    """Queries can read the documented columns, but not the time of ingestion in the underlying table."""
    create_or_upgrade_tables(connection, NOW)
    assert _list_columns(connection, TABLE) == COLUMNS
    assert _list_columns(connection, RAW_TABLE) == (*COLUMNS, "IngestedAt")


def test_a_second_start_leaves_the_schema_unchanged(connection: duckdb.DuckDBPyConnection) -> None:
    """Starting the emulator again with the same file leaves the file's tables and rows unchanged."""
    create_or_upgrade_tables(connection, NOW)
    connection.execute(f"INSERT INTO \"{RAW_TABLE}\" VALUES (NULL, 'a', NULL, NULL, NULL, NULL, '2026-01-01')")
    create_or_upgrade_tables(connection, NOW)
    assert connection.execute(f'SELECT "IngestedAt" FROM "{RAW_TABLE}"').fetchall() == [(datetime(2026, 1, 1),)]  # noqa: DTZ001


@pytest.fixture
def earlier_database(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return a connection to a database of an earlier version with one row."""
    connection.execute(
        f'CREATE TABLE "{TABLE}" ("Timestamp" TIMESTAMP, "ConnectionLookup" VARCHAR, "SurfaceLookups" JSON, '
        '"DeviceId" VARCHAR, "MessageId" VARCHAR, "Payload" JSON)'
    )
    connection.execute(f"INSERT INTO \"{TABLE}\" VALUES (NULL, 'old', NULL, NULL, NULL, NULL)")
    return connection


def test_the_retention_period_of_earlier_rows_begins_at_the_upgrade(
    earlier_database: duckdb.DuckDBPyConnection,
) -> None:
    """After an upgrade, rows of the earlier version still exist, and their retention period begins at the upgrade."""
    create_or_upgrade_tables(earlier_database, NOW)
    assert earlier_database.execute(f'SELECT "ConnectionLookup" FROM "{TABLE}"').fetchall() == [("old",)]
    assert earlier_database.execute(f'SELECT "IngestedAt" FROM "{RAW_TABLE}"').fetchall() == [(NOW,)]


def test_rows_added_after_an_upgrade_have_no_default_ingestion_time(
    earlier_database: duckdb.DuckDBPyConnection,
) -> None:
    """Rows that are added after an upgrade have no default time of ingestion."""
    create_or_upgrade_tables(earlier_database, NOW)
    earlier_database.execute(f'INSERT INTO "{RAW_TABLE}" ("ConnectionLookup") VALUES (\'new\')')
    query = f'SELECT "IngestedAt" FROM "{RAW_TABLE}" WHERE "ConnectionLookup" = \'new\''
    assert earlier_database.execute(query).fetchall() == [(None,)]


def test_a_failed_schema_upgrade_changes_nothing(earlier_database: duckdb.DuckDBPyConnection) -> None:
    """If an upgrade fails, the table of the earlier version is unchanged, because the upgrade is one transaction."""
    earlier_database.execute(
        f'ALTER TABLE "{TABLE}" ADD COLUMN "IngestedAt" VARCHAR'
    )  # the upgrade cannot add it again
    with pytest.raises(duckdb.CatalogException):
        create_or_upgrade_tables(earlier_database, NOW)
    assert earlier_database.execute(f'SELECT count(*) FROM "{TABLE}"').fetchall() == [(1,)]
