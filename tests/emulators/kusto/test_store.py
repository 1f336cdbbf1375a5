"""Tests of the writes to the DuckDB file, and of the filter of recent message keys."""

import random
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest

from emulators.kusto import store as store_module
from emulators.kusto.schema import COLUMNS, create_or_upgrade_tables
from emulators.kusto.store import Offset, RecentKeys, TelemetryRow, TelemetryStore, TimeRange, to_numpy_keys
from shared.telemetry.models import IMPULSES_HUB
from tests.emulators.kusto.test_ingest import Installation, build_message, build_processed_condition, installation

__all__ = ["installation"]

NOW = datetime(2026, 11, 23, 8)  # noqa: DTZ001  DuckDB stores instants in UTC without their zone
DAY = timedelta(days=1)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a connection to an empty database."""
    with duckdb.connect() as database:
        yield database


def append_old_row(store: TelemetryStore, name: str, now: datetime) -> None:
    """Append a row with an old timestamp."""
    values = (datetime(2001, 1, 1), "press", "[]", "dev", name, "{}")  # noqa: DTZ001  as above
    key = (hash(name) & 0xFFFF, 0)
    store.append_events_and_count_new_rows("0", Offset(1, now), [TelemetryRow(key, values, now)], [], now)


def read_message_ids(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the ids of the messages in the table."""
    return [row[0] for row in connection.execute('SELECT "MessageId" FROM "Telemetry" ORDER BY ALL').fetchall()]


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_duplicates_are_recognised_by_the_time_of_arrival(
    connection: duckdb.DuckDBPyConnection, batch_rows: int
) -> None:
    """An id is a duplicate for 24 hours after its first arrival, although days of events are ingested at once."""
    create_or_upgrade_tables(connection, NOW)
    store = TelemetryStore(connection)
    hours = [0, 23, 24, 25, 48, 50, 50]
    values = [(NOW, "press", "[]", "dev", str(hour), "{}") for hour in hours]
    rows = [TelemetryRow((1, 1), each, START + timedelta(hours=h)) for each, h in zip(values, hours, strict=True)]
    for first in range(0, len(rows), batch_rows):
        batch = rows[first : first + batch_rows]
        store.append_events_and_count_new_rows("0", Offset(first + 1, NOW), batch, [], NOW)
    assert read_message_ids(connection) == ["0", "25", "50"]


def test_message_keys_remain_until_waiting_events_are_stored(connection: duckdb.DuckDBPyConnection) -> None:
    """A key is deleted 24 hours after its arrival, counted to the arrival of the next event."""
    create_or_upgrade_tables(connection, NOW)
    append_old_row(TelemetryStore(connection), "a", NOW)
    store = TelemetryStore(connection)
    store.trim_keys_and_rejected_events(NOW + DAY)
    append_old_row(store, "a", NOW + DAY)
    assert read_message_ids(connection) == ["a"]
    store.trim_keys_and_rejected_events(NOW + DAY + timedelta(seconds=1))
    assert connection.execute("SELECT count(*) FROM ingest.seen").fetchall() == [(0,)]


def test_rows_are_deleted_a_fixed_time_after_ingestion(connection: duckdb.DuckDBPyConnection) -> None:
    """A row is deleted a fixed time after its ingestion; the timestamp of the row has no influence."""
    create_or_upgrade_tables(connection, NOW)
    store = TelemetryStore(connection)
    append_old_row(store, "a", NOW - 2 * DAY)
    append_old_row(store, "b", NOW)
    assert store.delete_and_count_rows_ingested_before(NOW - DAY) == 1
    assert read_message_ids(connection) == ["b"]
    assert store.delete_and_count_rows_ingested_before(NOW - DAY) == 0


def test_one_transaction_deletes_a_limited_number_of_rows(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One transaction deletes a limited number of expired rows; the following transactions delete the others."""
    monkeypatch.setattr(store_module, "MAX_DELETED_ROWS", 2)
    create_or_upgrade_tables(connection, NOW)
    store = TelemetryStore(connection)
    for name in "abc":
        append_old_row(store, name, NOW - 2 * DAY)
    assert [
        store.delete_and_count_rows_ingested_before(NOW),
        store.delete_and_count_rows_ingested_before(NOW),
        store.delete_and_count_rows_ingested_before(NOW),
    ] == [2, 1, 0]


def test_the_tag_of_a_file_is_deleted_after_its_rows(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag of an ingested file is stored until the last of the file's rows has expired and is deleted."""
    monkeypatch.setattr(store_module, "MAX_DELETED_ROWS", 2)
    create_or_upgrade_tables(connection, NOW)
    store = TelemetryStore(connection)
    names = ("ConnectionLookup", "SurfaceLookups", "DeviceId", "MessageId", "Payload")
    file = pa.table(
        {"Timestamp": pa.array([NOW] * 3, pa.timestamp("us", "UTC")), **{name: ["{}"] * 3 for name in names}}
    )
    for tag, ingested in (("old", NOW - 2 * DAY), ("new", NOW)):
        store.try_ingest_file_rows(tag, file.to_reader(), ingested)
    for deleted, tags in ((2, {"old", "new"}), (1, {"new"}), (0, {"new"})):
        assert store.delete_and_count_rows_ingested_before(NOW) == deleted
        assert {tag for (tag,) in connection.execute("SELECT tag FROM ingest.tags").fetchall()} == tags


class _WithoutRollback:
    """Connection whose transactions fail at the insertion, and cannot be rolled back."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def register(self, *_: object) -> None:
        raise duckdb.OutOfMemoryException("no memory for the insertion")

    def rollback(self) -> None:
        raise duckdb.OutOfMemoryException("no memory for the rollback")


def test_a_failed_rollback_ends_the_process(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a transaction cannot be rolled back, the process ends; otherwise, each later transaction would fail."""
    ended: list[str] = []
    monkeypatch.setattr(store_module, "abort_process", ended.append)
    create_or_upgrade_tables(connection, NOW)
    with pytest.raises(duckdb.OutOfMemoryException, match="for the insertion"):
        append_old_row(TelemetryStore(cast("Any", _WithoutRollback(connection))), "a", NOW)
    assert ended == ["a transaction could not be rolled back: no memory for the rollback"]


def test_a_failed_search_for_duplicates_raises_its_own_error(connection: duckdb.DuckDBPyConnection) -> None:
    """If the search for stored keys fails, its error is raised, not one of the clean-up in the aborted transaction."""
    create_or_upgrade_tables(connection, NOW)
    store = TelemetryStore(connection)
    append_old_row(store, "a", NOW)
    connection.execute("ALTER TABLE ingest.seen RENAME COLUMN first_seen TO other")
    with pytest.raises(duckdb.BinderException, match="first_seen"):
        append_old_row(store, "a", NOW)


def test_a_failed_commit_raises_its_own_error(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed commit, which ends the transaction itself, its error is raised and the next write succeeds."""
    ended: list[str] = []
    monkeypatch.setattr(store_module, "abort_process", ended.append)
    create_or_upgrade_tables(connection, NOW)
    connection.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
    store = TelemetryStore(connection)
    with connection.cursor() as other, monkeypatch.context() as patched:
        insertion = "INSERT INTO numbers VALUES (1)"
        patched.setattr(store, "_insert_and_count_new_rows", lambda *_: connection.execute(insertion))
        patched.setattr(store, "_insert_rejected_events", lambda *_: other.execute(insertion))
        with pytest.raises(duckdb.TransactionException, match="Failed to commit"):
            append_old_row(store, "a", NOW)
    assert ended == []
    append_old_row(store, "b", NOW)
    assert read_message_ids(connection) == ["b"]


def test_rows_without_ingestion_time_stay_for_the_full_retention_period(connection: duckdb.DuckDBPyConnection) -> None:
    """After an upgrade, rows without ingestion times stay stored for the full retention period."""
    types = ("TIMESTAMP", "VARCHAR", "JSON", "VARCHAR", "VARCHAR", "JSON")
    columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(COLUMNS, types, strict=True))
    connection.execute(f'CREATE TABLE "Telemetry" ({columns})')
    connection.execute("""INSERT INTO "Telemetry" VALUES ('2001-01-01', 'press', '[]', 'dev', 'a', '{}')""")
    for _ in range(2):
        create_or_upgrade_tables(connection, NOW)
    store = TelemetryStore(connection)
    append_old_row(store, "b", NOW + DAY)
    assert read_message_ids(connection) == ["a", "b"]
    assert [column[0] for column in connection.execute('DESCRIBE "Telemetry"').fetchall()] == list(COLUMNS)
    assert store.delete_and_count_rows_ingested_before(NOW) == 0
    assert store.delete_and_count_rows_ingested_before(NOW + timedelta(seconds=1)) == 1
    assert read_message_ids(connection) == ["b"]


def test_expired_rows_are_deleted_after_a_restart(installation: Installation, tmp_path: Path) -> None:
    """A restarted emulator deletes expired rows; queries cannot read the time of ingestion."""
    installation.send_messages(*(build_message(number) for number in range(3)))
    installation.start_emulator("--retention-days", "1").wait_for_statistics(build_processed_condition(3))
    installation.kill_emulator()
    with duckdb.connect(str(tmp_path / "kusto" / "telemetry.duckdb")) as database:
        database.execute("""UPDATE "TelemetryRaw" SET "IngestedAt" = "IngestedAt" - INTERVAL 2 DAY
                            WHERE "MessageId" <> 'm-1'""")
    installation.send_messages(build_message(3))
    endpoint = installation.start_emulator("--retention-days", "1")
    endpoint.wait_for_statistics(lambda stats: stats["ingest"]["expired"] == 2 and stats["ingest"]["added"] == 1)
    assert endpoint.query_rows("Telemetry | project MessageId | order by MessageId asc") == [["m-1"], ["m-3"]]
    assert endpoint.query_error_code("TelemetryRaw").startswith(("General_BadRequest", "BadRequest_"))
    assert count_events(installation.hub) == 4


def count_events(hub: Path) -> int:
    """Return the number of events in the hub, which the emulator never deletes."""
    connection = sqlite3.connect(hub)
    (count,) = connection.execute(
        "SELECT count(*) FROM events WHERE id >> 48 IN (SELECT id FROM partitions WHERE hub = ?)", (IMPULSES_HUB,)
    ).fetchone()
    connection.close()
    return int(count)


START = datetime(2026, 1, 5)  # noqa: DTZ001  the emulator stores naive times in UTC
SMALL = 1 << 12


def build_random_hash_pairs(seed: int, count: int) -> list[tuple[int, int]]:
    """Return random pairs of numbers that are distributed like the hashes of message keys."""
    source = random.Random(seed)
    return [(source.getrandbits(64), source.getrandbits(64)) for _ in range(count)]


def build_time_range(hour: int) -> TimeRange:
    """Return the time range that contains only the instant this number of hours after the start."""
    return TimeRange(START + timedelta(hours=hour), START + timedelta(hours=hour))


def test_the_key_filter_finds_every_stored_key() -> None:
    """The filter of recent message keys finds each key that was stored."""
    keys = RecentKeys(SMALL)
    pairs = build_random_hash_pairs(1, 2_000)
    for number in range(0, 2_000, 70):
        keys.add(to_numpy_keys(pairs[number : number + 70]), build_time_range(number))
    found, _ = keys.flag_possibly_stored_keys(to_numpy_keys(pairs))
    assert found.all()


def test_fewer_than_one_in_1000_new_keys_is_reported_as_stored() -> None:
    """A full filter of message keys reports fewer than one of 1,000 new keys as possibly stored."""
    keys = RecentKeys()
    keys.add(to_numpy_keys(build_random_hash_pairs(2, 100_000)), build_time_range(0))
    found, _ = keys.flag_possibly_stored_keys(to_numpy_keys(build_random_hash_pairs(3, 10_000)))
    assert found.sum() < 10
    assert RecentKeys().flag_possibly_stored_keys(to_numpy_keys(build_random_hash_pairs(3, 10)))[1] is None


def test_keys_of_large_batches_are_found_like_keys_of_small_batches() -> None:
    """Message keys that are added in large batches are found in the same way as keys from small batches."""
    pairs = build_random_hash_pairs(8, 40_000)
    bulk, single = RecentKeys(), RecentKeys()
    bulk.add(to_numpy_keys(pairs), build_time_range(0))
    for number in range(0, 40_000, 1_000):
        single.add(to_numpy_keys(pairs[number : number + 1_000]), build_time_range(0))
    others = to_numpy_keys(build_random_hash_pairs(9, 20_000) + pairs[::50])
    assert bulk.flag_possibly_stored_keys(to_numpy_keys(pairs))[0].all()
    assert (bulk.flag_possibly_stored_keys(others)[0] == single.flag_possibly_stored_keys(others)[0]).all()


def test_the_time_range_of_found_message_keys_contains_their_storage_times() -> None:
    """The time range that the filter returns contains the times at which the found keys were stored."""
    keys = RecentKeys(SMALL)
    first, second = build_random_hash_pairs(4, 170), build_random_hash_pairs(5, 170)
    keys.add(to_numpy_keys(first), build_time_range(0))
    keys.add(to_numpy_keys(second), build_time_range(5))
    assert keys.flag_possibly_stored_keys(to_numpy_keys(first[:1]))[1] == build_time_range(0)
    assert keys.flag_possibly_stored_keys(to_numpy_keys(second[-1:]))[1] == build_time_range(5)
    assert keys.flag_possibly_stored_keys(to_numpy_keys([first[0], second[-1]]))[1] == TimeRange(
        build_time_range(0).oldest, build_time_range(5).newest
    )


def test_old_filters_of_message_keys_are_removed() -> None:
    """A filter of message keys is removed when all its keys are older than the given time."""
    keys = RecentKeys(SMALL)
    first, second = build_random_hash_pairs(6, 170), build_random_hash_pairs(7, 10)
    keys.add(to_numpy_keys(first), build_time_range(0))
    keys.add(to_numpy_keys(second), build_time_range(5))
    keys.remove_keys_before(build_time_range(5).oldest)
    assert keys.flag_possibly_stored_keys(to_numpy_keys(first[:1]))[1] is None
    assert keys.flag_possibly_stored_keys(to_numpy_keys(second))[0].all()


def test_an_empty_batch_of_message_keys_stores_nothing() -> None:
    """An empty batch of message keys stores nothing in the filter and finds nothing."""
    keys = RecentKeys(SMALL)
    keys.add(to_numpy_keys([]), build_time_range(0))
    assert keys.flag_possibly_stored_keys(to_numpy_keys([]))[1] is None
