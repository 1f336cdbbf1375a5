"""Tests of the sandboxed database: SQL cannot access other files, the network or settings."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from emulators.kusto.sandbox import has_leaked_memory, open_database, restrict_database

ESCAPES = [
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM sniff_csv('{secret}')",
    "SELECT * FROM 'http://127.0.0.1/x.parquet'",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "ATTACH '{folder}/other.duckdb'",
    "EXPORT DATABASE '{folder}/dump'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '100GB'",
    "SET threads = 64",
    "SET TimeZone = 'Europe/Berlin'",
    "SET python_enable_replacements = true",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "PRAGMA temp_directory = '{folder}'",
    "SELECT * FROM python_variable",
]


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a locked in-memory database with one readable file."""
    (tmp_path / "secret.csv").write_text("a\nhidden\n")
    (tmp_path / "open.csv").write_text("a\nshown\n")
    connection = open_database(None)
    restrict_database(connection, memory_bytes=100_000_000, threads=1, readable_files=[tmp_path / "open.csv"])
    yield connection
    connection.close()


@pytest.mark.parametrize("statement", ESCAPES)
def test_sql_cannot_leave_the_sandbox(sandbox: duckdb.DuckDBPyConnection, tmp_path: Path, statement: str) -> None:
    """SQL has no access to files, network addresses, extensions, settings or Python variables."""
    python_variable = pa.table({"leaked": [1]})
    with sandbox.cursor() as cursor, pytest.raises(duckdb.Error):
        cursor.execute(statement.format(secret=tmp_path / "secret.csv", folder=tmp_path)).fetchall()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["open.csv", "secret.csv"]
    del python_variable


def test_the_allowed_files_can_be_read(sandbox: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """SQL can read the files that the sandbox allows."""
    with sandbox.cursor() as cursor:
        assert cursor.execute(f"SELECT a FROM read_csv('{tmp_path}/open.csv')").fetchall() == [("shown",)]


def test_cursors_inherit_the_database_settings(sandbox: duckdb.DuckDBPyConnection) -> None:
    """Time zone, threads and memory limit of the database apply to its cursors."""
    with sandbox.cursor() as cursor:
        settings = cursor.execute(
            "SELECT current_setting('TimeZone'), current_setting('threads'), current_setting('memory_limit')"
        ).fetchone()
        assert settings == ("UTC", 1, "95.3 MiB")
        with pytest.raises(duckdb.OutOfMemoryException):
            cursor.execute("SELECT i, random() r FROM range(50000000) t(i) ORDER BY r").fetchone()


def test_opening_a_locked_file_fails_after_the_wait(tmp_path: Path) -> None:
    """Opening a locked database file fails if the lock is not released in time."""
    path = tmp_path / "x.duckdb"
    script = f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(duckdb.IOException, match="lock"):
            open_database(path, lock_wait_seconds=0.3)
        timer = threading.Timer(0.3, holder.stdin.close)
        timer.start()
        open_database(path, lock_wait_seconds=30).close()
        timer.join()


def test_memory_of_stored_data_has_not_leaked() -> None:
    """Memory counts as leaked if more than half of it is used for other purposes than stored data."""
    connection = open_database(None)
    connection.execute("CREATE TABLE stored AS SELECT i, md5(i::VARCHAR) AS text FROM range(200000) t(i)")
    assert not has_leaked_memory(connection, 1_000_000)
    with connection.cursor() as other:
        other.execute("SELECT text, list(i) FROM stored GROUP BY text")
        assert has_leaked_memory(connection, 1_000_000)
    assert not has_leaked_memory(connection, 1_000_000)
    connection.close()
