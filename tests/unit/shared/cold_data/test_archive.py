"""Tests of the archive: blob names, contents, repeated deliveries, and compaction."""

import io
import json
from collections.abc import AsyncIterator, Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from shared.backends.embedded.blobs import FolderBlobStore
from shared.cold_data.archive import Archive, Compaction
from shared.cold_data.inventory import list_hours
from shared.cold_data.ports import Blob
from shared.telemetry.models import HubEvent
from shared.timestamps import now
from tests.unit.shared.cold_data.archived import (
    NOON,
    build_event,
    open_folder_store,
    read_contents,
    read_ids,
    read_rows,
    split_into_batches,
)

HOUR = timedelta(hours=1)


async def test_batch_creates_one_blob_per_connection_and_hour(tmp_path: Path) -> None:
    """A batch creates one blob per connection and hour; its name has partition and sequence numbers."""
    store = open_folder_store(tmp_path)
    events = [build_event(7), build_event(8, connection="press"), build_event(9, at=NOON + HOUR), build_event(10)]
    await Archive(store).store_events(events)
    assert list(await read_contents(store)) == [
        "impulses/press/2026/01/05/12/0-00000000000000000008-00000000000000000008.parquet",
        "impulses/rig/2026/01/05/12/0-00000000000000000007-00000000000000000010.parquet",
        "impulses/rig/2026/01/05/13/0-00000000000000000009-00000000000000000009.parquet",
    ]


async def test_an_archive_row_contains_all_members_of_an_impulse(tmp_path: Path) -> None:
    """A row contains each property of an impulse and its position in the hub; integers may have any size."""
    store = open_folder_store(tmp_path)
    payload = {"big": 12345678901234567890123, "text": 'ü"\n', "nested": {"a": [1, None]}}
    await Archive(store).store_events([build_event(3, "id-3", at=NOON + timedelta(microseconds=5), payload=payload)])
    [content] = (await read_contents(store)).values()
    [row] = pq.read_table(io.BytesIO(content)).to_pylist()
    assert json.loads(row.pop("payload")) == payload
    assert row == {
        "timestamp": NOON + timedelta(microseconds=5),
        "connection": "rig",
        "device_id": "d-1",
        "message_id": "id-3",
        "headers": "{}",
        "surfaces": '["hall"]',
        "partition": "0",
        "sequence": 3,
        "enqueued_at": NOON + timedelta(seconds=3),
    }


async def test_repeated_delivery_does_not_change_blobs(tmp_path: Path) -> None:
    """If every batch is delivered three times, the files are byte for byte the same as after a single delivery."""
    store = open_folder_store(tmp_path)
    events = [build_event(number, at=NOON + number * timedelta(minutes=7)) for number in range(1, 40)]
    for batch in split_into_batches(events, 10):
        await Archive(store).store_events(batch)
    once = await read_contents(store)
    for _ in range(2):
        for batch in split_into_batches(events, 10):
            await Archive(store).store_events(batch)
    assert await read_contents(store) == once
    assert len(await read_rows(store)) == 39


async def test_rows_in_several_blobs_are_read_once(tmp_path: Path) -> None:
    """If a repeated delivery has other batch boundaries, rows are in several blobs, but a read returns each once."""
    store = open_folder_store(tmp_path)
    events = [build_event(number) for number in range(1, 40)]
    for size in (10, 7, 39, 13):
        for batch in split_into_batches(events, size):
            await Archive(store).store_events(batch)
    assert await read_ids(store) == [f"m-0-{number}" for number in range(1, 40)]


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"{}", b'{"ID":"x"}', b"[" * 3000])
async def test_invalid_event_is_stored_as_unrouted(tmp_path: Path, body: bytes) -> None:
    """An invalid event is stored under _unrouted with the reason, and other events are stored normally."""
    store = open_folder_store(tmp_path)
    await Archive(store).store_events([HubEvent(body, "0", 1, NOON, {}), build_event(2)])
    assert await read_ids(store) == ["m-0-2"]
    [row] = await read_rows(store, "_unrouted")
    assert row["messageId"] == "impulses-0-1"


@pytest.mark.parametrize("connection", ["", "..", "../../x", "a/b", "x" * 300, "ü\n", "~"])
async def test_each_lookup_is_stored_in_a_separate_folder(tmp_path: Path, connection: str) -> None:
    """Each lookup (id in URLs) of a connection has its own folder, from which its events can be read."""
    store = open_folder_store(tmp_path)
    await Archive(store).store_events([build_event(1, connection=connection), build_event(2)])
    assert await read_ids(store, connection) == ["m-0-1"]
    assert await read_ids(store) == ["m-0-2"]


async def test_events_after_a_hub_reset_are_stored(tmp_path: Path) -> None:
    """If the hub was reset, events with reused sequence numbers are stored beside the old events."""
    store = open_folder_store(tmp_path)
    await Archive(store).store_events([build_event(1, "old-1"), build_event(2, "old-2")])
    later = NOON + timedelta(days=3)
    anew = [build_event(1, "new-1", enqueued_at=later), build_event(2, "new-2", enqueued_at=later)]
    for _ in range(2):
        await Archive(store).store_events(anew)
    assert sorted(await read_ids(store)) == ["new-1", "new-2", "old-1", "old-2"]
    assert len(await read_contents(store)) == 2


QUIET = timedelta(minutes=10)


def compute_later_time(waiting_times: float = 1.1) -> datetime:
    """Return the current time plus a number of waiting times (the wait before blobs are merged)."""
    return now() + waiting_times * QUIET


class Crash(Exception):  # noqa: N818  not an error
    """Exception that simulates a crash of the process."""


class CrashingStore(FolderBlobStore):
    """Fake blob store that simulates a crash before or after a change that the test chooses."""

    changes_left = 10**9

    async def upload(self, name: str, source: Path) -> None:
        """Store a file, or crash if the test chose this change."""
        self._count_change_or_crash()
        await super().upload(name, source)
        self._count_change_or_crash()

    async def delete(self, names: Collection[str]) -> None:
        """Delete blobs one by one; crash between two of them if the test chose this change."""
        for name in names:
            self._count_change_or_crash()
            await super().delete([name])

    def _count_change_or_crash(self) -> None:
        self.changes_left -= 1
        if self.changes_left < 0:
            raise Crash


def build_crashing_store(path: Path, changes: int) -> CrashingStore:
    store = open_folder_store(path)
    store.__class__ = CrashingStore
    assert isinstance(store, CrashingStore)
    store.changes_left = changes
    return store


async def test_blobs_of_a_past_hour_are_merged_to_one(tmp_path: Path) -> None:
    """Blobs of a past hour are merged after a waiting time; one waiting time later, the source blobs are deleted."""
    store = open_folder_store(tmp_path)
    for batch in split_into_batches([build_event(number) for number in range(1, 31)], 10):
        await Archive(store).store_events(batch)
    before = await read_ids(store)
    compaction = Compaction(store, QUIET)
    assert await compaction.merge_due_hours_and_count_them(now()) == 0
    assert len(await read_contents(store)) == 3
    assert await compaction.merge_due_hours_and_count_them(compute_later_time()) == 1
    assert len(await read_contents(store)) == 4
    assert await read_ids(store) == before
    assert await compaction.merge_due_hours_and_count_them(now()) == 0
    assert len(await read_contents(store)) == 4
    assert await compaction.merge_due_hours_and_count_them(compute_later_time()) == 0
    assert len(await read_contents(store)) == 1
    assert await read_ids(store) == before


async def test_current_and_future_hours_are_not_merged(tmp_path: Path) -> None:
    """The current hour and future hours are not merged."""
    store = open_folder_store(tmp_path)
    for number in range(1, 4):
        await Archive(store).store_events([build_event(number, at=now() + 3 * HOUR)])
    assert await Compaction(store, QUIET).merge_due_hours_and_count_them(compute_later_time()) == 0


async def test_late_blobs_are_merged(tmp_path: Path) -> None:
    """Blobs that arrive after the merge of their hour are merged later, also if the first blobs were deleted."""
    store = open_folder_store(tmp_path)
    compaction = Compaction(store, QUIET)
    for number in range(1, 7):
        await Archive(store).store_events([build_event(number)])
        await compaction.merge_due_hours_and_count_them(compute_later_time())
    await compaction.merge_due_hours_and_count_them(compute_later_time())
    assert await read_ids(store) == [f"m-0-{number}" for number in range(1, 7)]
    assert len(await read_contents(store)) == 1


async def test_redelivered_sources_do_not_change_rows(tmp_path: Path) -> None:
    """If a batch is delivered again after its blob was merged and deleted, reads return the same rows."""
    store = open_folder_store(tmp_path)
    compaction = Compaction(store, QUIET)
    events = [build_event(number) for number in range(1, 11)]
    for _ in range(3):
        for size in (5, 3):
            for batch in split_into_batches(events, size):
                await Archive(store).store_events(batch)
            await compaction.merge_due_hours_and_count_them(compute_later_time())
            assert await read_ids(store) == [f"m-0-{number}" for number in range(1, 11)]


async def test_new_events_with_the_name_of_a_merged_blob_are_stored(tmp_path: Path) -> None:
    """After a hub reset, new events are stored even if their blob has the name of a merged blob."""
    store = open_folder_store(tmp_path)
    compaction = Compaction(store, QUIET)
    for number in (1, 2):
        await Archive(store).store_events([build_event(number, f"old-{number}")])
    for _ in range(2):
        await compaction.merge_due_hours_and_count_them(compute_later_time())
    await Archive(store).store_events([build_event(1, "new-1", enqueued_at=NOON + timedelta(days=2))])
    for _ in range(3):
        assert sorted(await read_ids(store)) == ["new-1", "old-1", "old-2"]
        await compaction.merge_due_hours_and_count_them(compute_later_time())


@pytest.mark.parametrize("changes", range(8))
async def test_crash_after_any_change_loses_no_row(tmp_path: Path, changes: int) -> None:
    """If compaction crashes after any change, no row is lost or repeated, and later runs complete it."""
    for number in range(1, 5):
        await Archive(open_folder_store(tmp_path)).store_events([build_event(number)])
    store = build_crashing_store(tmp_path, changes)
    for _ in range(2):
        await Compaction(store, QUIET).merge_due_hours_and_count_them(compute_later_time())
        assert await read_ids(open_folder_store(tmp_path)) == [f"m-0-{number}" for number in range(1, 5)]
    for _ in range(2):
        await Compaction(open_folder_store(tmp_path), QUIET).merge_due_hours_and_count_them(compute_later_time())
    assert len(await read_contents(open_folder_store(tmp_path))) == 1
    assert await read_ids(open_folder_store(tmp_path)) == [f"m-0-{number}" for number in range(1, 5)]


class SweptStore(FolderBlobStore):
    """Fake blob store that runs the whole compaction between a reader's listing and its first fetch."""

    swept = False

    async def download_to_file(self, name: str, target: Path) -> None:
        """Run all due compaction, then fetch the blob."""
        if not self.swept:
            self.swept = True
            for _ in range(2):
                await Compaction(self, QUIET).merge_due_hours_and_count_them(compute_later_time())
        await super().download_to_file(name, target)


async def test_reader_lists_an_hour_again_after_a_deletion(tmp_path: Path) -> None:
    """If blobs are deleted during a read, the hour is listed again, and each row is returned once."""
    store = open_folder_store(tmp_path)
    for number in range(1, 5):
        await Archive(store).store_events([build_event(number)])
    store.__class__ = SweptStore
    assert await read_ids(store) == [f"m-0-{number}" for number in range(1, 5)]
    assert len(await read_contents(store)) == 1


class StaleStore(FolderBlobStore):
    """Fake blob store that returns an outdated listing, as a concurrent compaction can see it."""

    seen: tuple[Blob, ...] = ()

    async def list(self, prefix: str) -> AsyncIterator[Blob]:
        """Yield the outdated listing."""
        for blob in self.seen:
            if blob.name.startswith(prefix):
                yield blob


async def test_concurrent_compactions_do_not_repeat_rows(tmp_path: Path) -> None:
    """If a concurrent run merges an outdated listing, rows are in two blobs, but a read returns each once."""
    store = open_folder_store(tmp_path)
    await Archive(store).store_events([build_event(1)])
    await Archive(store).store_events([build_event(2)])
    stale: Any = open_folder_store(tmp_path)
    stale.__class__ = StaleStore
    stale.seen = tuple([blob async for blob in store.list("")])
    await Archive(store).store_events([build_event(3)])
    await Compaction(store, QUIET).merge_due_hours_and_count_them(compute_later_time())
    await Compaction(stale, QUIET).merge_due_hours_and_count_them(compute_later_time())
    for _ in range(4):
        assert await read_ids(store) == ["m-0-1", "m-0-2", "m-0-3"]
        await Compaction(store, QUIET).merge_due_hours_and_count_them(compute_later_time())
    assert len(await read_contents(store)) == 1
    [hour] = await list_hours(store, "rig", NOON, NOON + HOUR)
    assert hour.row_count == 3
