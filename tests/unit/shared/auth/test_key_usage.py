"""When keys were last used: noted beside the requests."""

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


def key(number: int = 0) -> ApiKey:
    """Return a key that was never used."""
    return ApiKey(f"AAAA{number:04}", bytes(16), bytes(32), "admin@x", "a key", None, AT, None)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    """Return the file of keys, whose writes give up soon."""
    made = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA, write_seconds=WRITE_SECONDS)
    yield made
    await made.close()


@pytest.fixture
async def store(database: SqliteDatabase) -> SqliteCredentialStore:
    """Return a store of one key."""
    made = SqliteCredentialStore(database)
    await made.add_key(key())
    return made


async def last_use(store: SqliteCredentialStore) -> datetime | None:
    """Return when the key was last used, as the store knows it."""
    return (await store.load()).keys[key().key_id].last_used_at


async def test_a_use_is_noted_about_once_a_minute(store: SqliteCredentialStore) -> None:
    """The first use is written, the next one a minute later."""
    uses = KeyUsageRecorder(store)
    for seconds, written in ((0, 0), (ACCURACY_SECONDS - 1, 0), (ACCURACY_SECONDS, ACCURACY_SECONDS)):
        uses.record(key(), AT + timedelta(seconds=seconds))
        await uses.close()
        assert await last_use(store) == AT + timedelta(seconds=written)


async def test_a_locked_store_is_told_to_the_log_once(
    tmp_path: Path, store: SqliteCredentialStore, caplog: pytest.LogCaptureFixture
) -> None:
    """While another process holds the file, uses are lost and the log has one warning; afterwards they are noted."""
    uses = KeyUsageRecorder(store)
    other = sqlite3.connect(tmp_path / "workspace.sqlite", autocommit=True)
    other.execute("BEGIN IMMEDIATE")
    for number in range(3):
        uses.record(key(number), AT)
    await uses.close()
    other.execute("ROLLBACK")
    other.close()
    assert [record.message for record in caplog.records] == ["the last use of keys cannot be stored"]
    later = AT + timedelta(seconds=ACCURACY_SECONDS)
    uses.record(key(), later)
    await uses.close()
    assert await last_use(store) == later


class SilentStore(SqliteCredentialStore):
    """A store that does not answer until it is let; a stand-in for one beyond a network."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self.asked = 0
        self.answers = asyncio.Event()

    async def touch_key(self, key_id: str, at: datetime) -> None:
        """Wait."""
        self.asked += 1
        await self.answers.wait()
        await super().touch_key(key_id, at)


async def test_what_waits_is_bounded(database: SqliteDatabase) -> None:
    """A store that is silent is asked for one key at a time, and no more than so many wait."""
    silent = SilentStore(database)
    uses = KeyUsageRecorder(silent)
    for number in range(MAX_WAITING + 10):
        uses.record(key(number), AT)
    await asyncio.sleep(0)
    assert silent.asked == 1
    silent.answers.set()
    await uses.close()
    assert silent.asked == MAX_WAITING


async def test_silence_has_an_end(database: SqliteDatabase) -> None:
    """A store that does not answer is given up."""
    silent = SilentStore(database)
    uses = KeyUsageRecorder(silent, write_seconds=WRITE_SECONDS)
    uses.record(key(), AT)
    await uses.close()
    assert silent.asked == 1
