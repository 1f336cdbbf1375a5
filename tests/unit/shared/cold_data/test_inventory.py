"""Tests of the archive's inventory of hours and blobs."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from shared.backends.embedded.blobs import FolderBlobStore
from shared.cold_data import inventory
from shared.cold_data.archive import Archive
from shared.cold_data.inventory import list_hours, load_hour
from shared.errors import WorkspaceError
from tests.unit.shared.cold_data.archived import NOON, build_event, open_folder_store

HOUR = timedelta(hours=1)


async def archive_events(store: FolderBlobStore, *sequences: int) -> None:
    """Archive one batch of events with the given sequence numbers."""
    await Archive(store).store_events([build_event(sequence) for sequence in sequences])


async def test_hours_of_a_range_are_listed(tmp_path: Path) -> None:
    """The hours of one connection are listed from the start up to, but excluding, the end."""
    store = open_folder_store(tmp_path)
    batch = [build_event(number, at=NOON + number * HOUR) for number in range(3)]
    await Archive(store).store_events([*batch, build_event(9, connection="press")])
    hours = await list_hours(store, "rig", NOON, NOON + 2 * HOUR)
    assert [each.hour for each in hours] == [NOON, NOON + HOUR]
    assert [(each.row_count, len(each.live), each.can_have_duplicate_rows) for each in hours] == [(1, 1, False)] * 2


@pytest.mark.parametrize(("second", "overlapping"), [((3, 4), False), ((2, 3), True)])
async def test_batches_with_overlapping_ranges_may_share_rows(
    tmp_path: Path, second: tuple[int, ...], *, overlapping: bool
) -> None:
    """Two batches may share rows only if their ranges of sequence numbers overlap."""
    store = open_folder_store(tmp_path)
    await archive_events(store, 1, 2)
    await archive_events(store, *second)
    [hour] = await list_hours(store, "rig", NOON, NOON + HOUR)
    assert (hour.row_count, hour.can_have_duplicate_rows) == (4, overlapping)
    assert await load_hour(store, hour.folder) == hour


async def test_only_wanted_hours_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the hours that are not wanted, no blob is read."""
    store = open_folder_store(tmp_path)
    await Archive(store).store_events([build_event(number, at=NOON + number * HOUR) for number in range(5)])
    read: list[str] = []
    read_range = store.read_range

    async def record_read(name: str, start: int, size: int, etag: str | None = None) -> bytes:
        read.append(name)
        return await read_range(name, start, size, etag)

    monkeypatch.setattr(store, "read_range", record_read)
    hours = await list_hours(store, "rig", NOON, NOON + 5 * HOUR, {NOON, NOON + 4 * HOUR})
    assert [each.hour for each in hours] == [NOON, NOON + 4 * HOUR]
    assert len(read) == 2


async def test_blobs_of_several_hours_are_read_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing of many hours reads a limited number of blobs at a time, also if each hour has only one."""
    store = open_folder_store(tmp_path)
    count = 2 * inventory.CONCURRENT_READS
    await Archive(store).store_events([build_event(number, at=NOON + number * HOUR) for number in range(count)])
    await archive_events(store, *range(count, count + 5))
    read_range, running, most = store.read_range, 0, 0
    is_limit_reached = asyncio.Event()

    async def read_when_limit_is_reached(name: str, start: int, size: int, etag: str | None = None) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == inventory.CONCURRENT_READS:
            is_limit_reached.set()
        await is_limit_reached.wait()
        content = await read_range(name, start, size, etag)
        running -= 1
        return content

    monkeypatch.setattr(store, "read_range", read_when_limit_is_reached)
    hours = await list_hours(store, "rig", NOON, NOON + count * HOUR)
    assert [each.hour for each in hours] == [NOON + number * HOUR for number in range(count)]
    assert most == inventory.CONCURRENT_READS


async def test_a_blob_that_is_replaced_during_a_read_is_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a blob is replaced after its listing, the summary is read from the end of the new blob."""
    store = open_folder_store(tmp_path)
    await archive_events(store, 1)
    [old] = [blob async for blob in store.list("")]
    await Archive(store).store_events([build_event(number, enqueued_at=NOON) for number in (2, 3)])
    [new] = [blob async for blob in store.list("") if blob.name != old.name]
    (tmp_path / "new").write_bytes(await store.read(new.name))
    await store.delete([new.name])
    read_range = store.read_range

    async def replace_and_read(name: str, start: int, size: int, etag: str | None = None) -> bytes:
        monkeypatch.setattr(store, "read_range", read_range)
        await store.upload(name, tmp_path / "new")
        return await read_range(name, start, size, etag)

    monkeypatch.setattr(store, "read_range", replace_and_read)
    [hour] = await list_hours(store, "rig", NOON, NOON + HOUR)
    assert hour.row_count == 2


async def test_a_folder_without_blobs_is_an_hour_without_rows(tmp_path: Path) -> None:
    """A folder without blobs is read as an hour without rows; the folder's name states the hour."""
    hour = await load_hour(open_folder_store(tmp_path), "impulses/rig/2026/01/05/12/")
    assert (hour.hour, hour.live, hour.row_count) == (NOON, (), 0)


async def test_an_archive_that_changes_at_each_attempt_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If blobs are deleted during a read, it is repeated; after several attempts it raises UNAVAILABLE."""
    store = open_folder_store(tmp_path)
    await archive_events(store, 1)

    async def raise_missing_blob(name: str, *_: object) -> bytes:
        raise FileNotFoundError(name)

    monkeypatch.setattr(store, "read_range", raise_missing_blob)
    with pytest.raises(WorkspaceError) as raised:
        await list_hours(store, "rig", NOON, NOON + HOUR)
    assert raised.value.code == "BLOB_STORE_UNAVAILABLE"
