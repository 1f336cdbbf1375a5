"""Tests of recording the last use of API keys."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.auth.key_usage import ACCURACY_SECONDS, MAX_WAITING, KeyUsageRecorder
from shared.auth.ports import ApiKey
from shared.backends.embedded.credentials import SCHEMA, SqliteCredentialStore
from shared.backends.embedded.sqlite import SqliteDatabase

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
WRITE_SECONDS = 0.1


def make_key(number: int = 0) -> ApiKey:
    """Return an API key that was never used."""
    return ApiKey(f"AAAA{number:04}", bytes(16), bytes(32), "admin@x", "a key", None, AT, None)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    """Return the database of keys, with a short write timeout."""
    made = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA, write_seconds=WRITE_SECONDS)
    yield made
    await made.close()


@pytest.fixture
async def store(database: SqliteDatabase) -> SqliteCredentialStore:
    """Return a store with one key."""
    made = SqliteCredentialStore(database)
    await made.add_key(make_key())
    return made


async def read_last_use(store: SqliteCredentialStore) -> datetime | None:
    """Return the stored last use of the key."""
    return (await store.load()).keys[make_key().key_id].last_used_at


async def test_use_is_stored_once_a_minute(store: SqliteCredentialStore) -> None:
    """The first use of an API key is stored at once, later uses at most once a minute."""
    uses = KeyUsageRecorder(store)
    for seconds, written in ((0, 0), (ACCURACY_SECONDS - 1, 0), (ACCURACY_SECONDS, ACCURACY_SECONDS)):
        uses.record(make_key(), AT + timedelta(seconds=seconds))
        await uses.close()
        assert await read_last_use(store) == AT + timedelta(seconds=written)


async def test_locked_store_is_logged_once(
    tmp_path: Path, store: SqliteCredentialStore, caplog: pytest.LogCaptureFixture
) -> None:
    """While another process locks the file, last uses are skipped with one warning; later uses are stored."""
    uses = KeyUsageRecorder(store)
    other = sqlite3.connect(tmp_path / "workspace.sqlite", autocommit=True)
    other.execute("BEGIN IMMEDIATE")
    for number in range(3):
        uses.record(make_key(number), AT)
    await uses.close()
    other.execute("ROLLBACK")
    other.close()
    assert [record.message for record in caplog.records] == ["the time of an API key's last use could not be stored"]
    later = AT + timedelta(seconds=ACCURACY_SECONDS)
    uses.record(make_key(), later)
    await uses.close()
    assert await read_last_use(store) == later


class UnresponsiveStore(SqliteCredentialStore):
    """Store that does not reply until the test releases it."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self.write_count = 0
        self.answers = asyncio.Event()

    async def store_last_use(self, key_id: str, at: datetime) -> None:
        """Wait until the test releases the write."""
        self.write_count += 1
        await self.answers.wait()
        await super().store_last_use(key_id, at)


async def test_number_of_waiting_writes_is_limited(database: SqliteDatabase) -> None:
    """Last uses are written one at a time, and the number of keys that wait for their write is limited."""
    unresponsive = UnresponsiveStore(database)
    uses = KeyUsageRecorder(unresponsive)
    for number in range(MAX_WAITING + 10):
        uses.record(make_key(number), AT)
    await asyncio.sleep(0)
    assert unresponsive.write_count == 1
    unresponsive.answers.set()
    await uses.close()
    assert unresponsive.write_count == MAX_WAITING


async def test_write_times_out(database: SqliteDatabase) -> None:
    """A write of a last use to an unresponsive store ends with a timeout."""
    unresponsive = UnresponsiveStore(database)
    uses = KeyUsageRecorder(unresponsive, write_seconds=WRITE_SECONDS)
    uses.record(make_key(), AT)
    await uses.close()
    assert unresponsive.write_count == 1
