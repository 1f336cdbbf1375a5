"""Tables of the DuckDB file with telemetry, and the upgrade of files from earlier versions.

``Telemetry`` is a view of ``TelemetryRaw``, which also contains the time of ingestion of each row. The retention period
of a row begins at this time.
"""

from datetime import datetime

import duckdb

TABLE = "Telemetry"
RAW_TABLE = "TelemetryRaw"
COLUMNS = ("Timestamp", "ConnectionLookup", "SurfaceLookups", "DeviceId", "MessageId", "Payload")
COLUMN_LIST = ", ".join(f'"{name}"' for name in COLUMNS)
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS "{RAW_TABLE}" (
    "Timestamp" TIMESTAMP, "ConnectionLookup" VARCHAR, "SurfaceLookups" JSON, "DeviceId" VARCHAR,
    "MessageId" VARCHAR, "Payload" JSON, "IngestedAt" TIMESTAMP
);
CREATE VIEW IF NOT EXISTS "{TABLE}" AS SELECT {COLUMN_LIST} FROM "{RAW_TABLE}";
CREATE SCHEMA IF NOT EXISTS ingest;
CREATE TABLE IF NOT EXISTS ingest.offsets (
    hub_partition VARCHAR PRIMARY KEY, sequence BIGINT NOT NULL, newest TIMESTAMP NOT NULL
);
CREATE TABLE IF NOT EXISTS ingest.seen (high UBIGINT, low UBIGINT, first_seen TIMESTAMP);
CREATE TABLE IF NOT EXISTS ingest.tags (tag VARCHAR PRIMARY KEY, ingested TIMESTAMP NOT NULL);
CREATE TABLE IF NOT EXISTS ingest.set_aside (
    hub_partition VARCHAR, sequence BIGINT, reason VARCHAR, body BLOB, noticed TIMESTAMP
);
"""  # noqa: S608  constants


def create_or_upgrade_tables(connection: duckdb.DuckDBPyConnection, now: datetime) -> None:
    """Create the missing tables and views of the database; convert the table of an earlier version.

    Args:
        connection: connection to the database.
        now: the current time, a naive UTC datetime; becomes the time of ingestion of rows from an earlier version.
    """
    connection.begin()
    try:
        if _has_table_of_earlier_version(connection):
            _convert_earlier_table(connection, now)
        connection.execute(_SCHEMA)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _has_table_of_earlier_version(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether ``Telemetry`` is a table instead of a view, as in earlier versions of the file."""
    query = "SELECT 1 FROM duckdb_tables() WHERE schema_name = 'main' AND table_name = ?"
    return connection.execute(query, [TABLE]).fetchone() is not None


def _convert_earlier_table(connection: duckdb.DuckDBPyConnection, now: datetime) -> None:
    """Rename the table of an earlier version, and set the time of ingestion of its rows without rewriting the rows."""
    connection.execute(f'ALTER TABLE "{TABLE}" RENAME TO "{RAW_TABLE}"')
    default = f"TIMESTAMP '{now.isoformat(sep=' ')}'"
    connection.execute(f'ALTER TABLE "{RAW_TABLE}" ADD COLUMN "IngestedAt" TIMESTAMP DEFAULT {default}')
    connection.execute(f'ALTER TABLE "{RAW_TABLE}" ALTER COLUMN "IngestedAt" DROP DEFAULT')
