"""Tests of SQLite files: closing, and writes that share commits."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from shared.backends.embedded import sqlite
from shared.backends.embedded.sqlite import ReadBatcher, SqliteDatabase, WriteBatcher
from shared.errors import Kind, WorkspaceError
from shared.runtime import Runtime

SCHEMA = "CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, m INTEGER)"


async def test_a_file_is_closed_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If opening a file is cancelled, closing it leaves no connection open."""
    begun, go_on = threading.Event(), threading.Event()
    opened: list[sqlite3.Connection] = []
    genuine = sqlite.connect

    def connect_slowly(path: Path, runtime: Runtime) -> sqlite3.Connection:
        begun.set()
        go_on.wait()
        opened.append(genuine(path, runtime))
        return opened[0]

    monkeypatch.setattr(sqlite, "connect", connect_slowly)
    database = SqliteDatabase(tmp_path / "a.sqlite", "")
    reading = asyncio.create_task(database.read(lambda connection: connection.execute("SELECT 1").fetchone()))
    await asyncio.to_thread(begun.wait)
    reading.cancel()
    closing = asyncio.create_task(database.close())
    await asyncio.sleep(0)
    go_on.set()
    await closing
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
    await database.close()


@pytest.fixture
async def write_batcher(tmp_path: Path) -> AsyncIterator[WriteBatcher]:
    """Provide a WriteBatcher for a new file with one table."""
    opened = WriteBatcher(SqliteDatabase(tmp_path / "t.sqlite", SCHEMA))
    yield opened
    await opened.close()


def _read_rows(folder: Path) -> list[int]:
    connection = sqlite3.connect(folder / "t.sqlite")
    try:
        return [n for (n,) in connection.execute("SELECT n FROM t ORDER BY n")]
    finally:
        connection.close()


async def test_each_write_has_its_own_result(write_batcher: WriteBatcher, tmp_path: Path) -> None:
    """A failed write raises its error and stores nothing; the other writes of its batch are stored."""

    async def insert_row(n: int) -> str:
        def work(connection: sqlite3.Connection) -> str:
            connection.execute("INSERT INTO t VALUES (?, 1)", (n,))
            if n % 3 == 0:
                raise KeyError(n)
            return f"did {n}"

        done = await write_batcher.write(work)
        assert n in _read_rows(tmp_path)
        return done

    outcomes = await asyncio.gather(*(insert_row(n) for n in range(30)), return_exceptions=True)
    for n, outcome in enumerate(outcomes):
        assert isinstance(outcome, KeyError) if n % 3 == 0 else outcome == f"did {n}"
    assert _read_rows(tmp_path) == [n for n in range(30) if n % 3]


async def test_waiting_writes_share_a_commit(tmp_path: Path) -> None:
    """Writes that arrive during a commit are committed together in the next one."""
    database = SqliteDatabase(tmp_path / "t.sqlite", SCHEMA)
    writes = WriteBatcher(database)
    transactions: list[str] = []
    await database.read(lambda connection: connection.set_trace_callback(transactions.append))
    insert = "INSERT INTO t VALUES (NULL, 1)"
    await asyncio.gather(*(writes.write(lambda connection: connection.execute(insert).rowcount) for _ in range(100)))
    assert transactions.count("BEGIN IMMEDIATE") <= 3
    assert len(_read_rows(tmp_path)) == 100
    await writes.close()


async def test_the_timeout_of_the_lock_is_set_only_when_it_changes(tmp_path: Path) -> None:
    """Writes that may wait equally long do not set the timeout of the file's lock again; a shorter limit sets it."""
    now, seconds_between_readings = 0.0, 0.001

    def read_clock() -> float:
        nonlocal now
        now += seconds_between_readings
        return now

    runtime = Runtime(monotonic=read_clock)
    database = SqliteDatabase(tmp_path / "t.sqlite", SCHEMA, write_seconds=4, runtime=runtime)
    statements: list[str] = []

    def find_timeout(connection: sqlite3.Connection) -> int:
        return int(connection.execute("PRAGMA busy_timeout").fetchone()[0])

    await database.write(lambda connection: connection.set_trace_callback(statements.append))
    assert await database.write(find_timeout) == 4000
    seconds_between_readings = 3.0
    assert await database.write(find_timeout) == 1000
    seconds_between_readings = 0.001
    assert await database.write(find_timeout) == 4000
    changes = [text for text in statements if "busy_timeout=" in text]
    assert changes == ["PRAGMA busy_timeout=1000", "PRAGMA busy_timeout=4000"]
    await database.close()


async def test_a_failed_transaction_fails_each_write_of_its_batch(write_batcher: WriteBatcher) -> None:
    """If a transaction fails, each write of its batch gets an error, and later writes succeed."""

    def roll_back(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")

    def insert_row(connection: sqlite3.Connection) -> int:
        return connection.execute("INSERT INTO t VALUES (NULL, 1)").rowcount

    outcomes = await asyncio.gather(
        *(write_batcher.write(work) for work in (insert_row, roll_back, insert_row)), return_exceptions=True
    )
    assert all(isinstance(outcome, sqlite3.Error) for outcome in outcomes[-2:])
    assert await write_batcher.write(insert_row) == 1


async def test_a_cancelled_write_does_not_affect_others(write_batcher: WriteBatcher, tmp_path: Path) -> None:
    """If a caller is cancelled while it waits, the writes of other callers are still stored."""

    def insert_row(connection: sqlite3.Connection) -> int:
        return connection.execute("INSERT INTO t VALUES (NULL, 1)").rowcount

    tasks = [asyncio.create_task(write_batcher.write(insert_row)) for _ in range(5)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [outcome == 1 for outcome in outcomes] == [True, True, False, True, True]
    assert len(_read_rows(tmp_path)) >= 4


async def test_each_read_gets_its_own_result(tmp_path: Path) -> None:
    """Each of several concurrent reads gets its own rows or error; cancelling one read does not affect other reads."""
    database = SqliteDatabase(tmp_path / "file.sqlite", "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1), (2);")
    reads = ReadBatcher(database)
    gone = asyncio.create_task(reads.read(lambda connection: connection.execute("SELECT 1").fetchone()))
    good = [asyncio.create_task(reads.read(partial(_read_sums, n))) for n in range(50)]
    bad = asyncio.create_task(reads.read(lambda connection: connection.execute("SELECT * FROM nothing")))
    await asyncio.sleep(0)
    gone.cancel()
    assert await asyncio.gather(*good) == [[(n + 1,), (n + 2,)] for n in range(50)]
    with pytest.raises(sqlite3.OperationalError):
        await bad
    await database.close()


def _read_sums(number: int, connection: sqlite3.Connection) -> list[tuple[int]]:
    return connection.execute("SELECT ? + n FROM t", (number,)).fetchall()


@pytest.mark.parametrize(
    ("content", "detail", "members"),
    [
        (
            b"no database" * 100,
            "The file of the store of quotas is damaged; requests that need it fail until an operator repairs it.",
            {"retryAfter": None},
        ),
        (None, "The store of quotas does not respond; retry later.", {}),
    ],
    ids=["damaged", "folder"],
)
def test_failures_of_a_file_are_converted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None, detail: str, members: dict[str, object]
) -> None:
    """The error about a damaged file has no Retry-After, and the cause is logged; other failures can be temporary."""
    path = tmp_path / "t.sqlite"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with (
        pytest.raises(WorkspaceError) as caught,
        sqlite.convert_sqlite_errors("QUOTAS_UNAVAILABLE", "the store of quotas"),
        closing(sqlite3.connect(path)) as connection,
    ):
        connection.execute("SELECT * FROM t")
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "QUOTAS_UNAVAILABLE")
    assert (caught.value.detail, caught.value.members) == (detail, members)
    logged = ["the file of the store of quotas is damaged: file is not a database"] if content else []
    assert caplog.messages == logged


async def test_a_cancelled_read_ends_its_statement(tmp_path: Path) -> None:
    """If the caller of a read is cancelled, its running statement ends, so that later reads do not wait for it."""
    database = SqliteDatabase(tmp_path / "a.sqlite", SCHEMA)
    begun = threading.Event()

    def count_endlessly(connection: sqlite3.Connection) -> object:
        begun.set()
        endless = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT 1 FROM number) SELECT count(*) FROM number"
        return connection.execute(endless).fetchone()

    reading = asyncio.create_task(database.read_until_cancelled(count_endlessly))
    await asyncio.to_thread(begun.wait)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await database.read(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)
    await database.close()
