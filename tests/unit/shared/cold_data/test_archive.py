"""Tests of the archive writer: names and contents of blobs, and repeated deliveries."""

import io
import json
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from shared.cold_data.archive import Archive
from shared.telemetry.models import HubEvent
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
    """A batch creates one blob per connection and hour; partition and sequence numbers are in its name."""
    store = open_folder_store(tmp_path)
    events = [build_event(7), build_event(8, connection="press"), build_event(9, at=NOON + HOUR), build_event(10)]
    await Archive(store).run(events)
    assert list(await read_contents(store)) == [
        "impulses/press/2026/01/05/12/0-00000000000000000008-00000000000000000008.parquet",
        "impulses/rig/2026/01/05/12/0-00000000000000000007-00000000000000000010.parquet",
        "impulses/rig/2026/01/05/13/0-00000000000000000009-00000000000000000009.parquet",
    ]


async def test_row_contains_all_members_of_an_impulse(tmp_path: Path) -> None:
    """Rows contain every member of an impulse and its position in the hub; integers in payloads can have any size."""
    store = open_folder_store(tmp_path)
    payload = {"big": 12345678901234567890123, "text": 'ü"\n', "nested": {"a": [1, None]}}
    await Archive(store).run([build_event(3, "id-3", at=NOON + timedelta(microseconds=5), payload=payload)])
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


async def test_redelivery_does_not_change_blobs(tmp_path: Path) -> None:
    """Delivering every batch three times creates the same files with the same bytes as one delivery."""
    store = open_folder_store(tmp_path)
    events = [build_event(number, at=NOON + number * timedelta(minutes=7)) for number in range(1, 40)]
    for batch in split_into_batches(events, 10):
        await Archive(store).run(batch)
    once = await read_contents(store)
    for _ in range(2):
        for batch in split_into_batches(events, 10):
            await Archive(store).run(batch)
    assert await read_contents(store) == once
    assert len(await read_rows(store)) == 39


async def test_rows_in_several_blobs_are_read_once(tmp_path: Path) -> None:
    """If a redelivery has other batch boundaries, some rows are in several blobs, but a read returns them once."""
    store = open_folder_store(tmp_path)
    events = [build_event(number) for number in range(1, 40)]
    for size in (10, 7, 39, 13):
        for batch in split_into_batches(events, size):
            await Archive(store).run(batch)
    assert await read_ids(store) == [f"m-0-{number}" for number in range(1, 40)]


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"{}", b'{"ID":"x"}', b"[" * 3000])
async def test_invalid_event_is_stored_as_unrouted(tmp_path: Path, body: bytes) -> None:
    """An invalid event is stored under _unrouted with the reason; other events are stored normally."""
    store = open_folder_store(tmp_path)
    await Archive(store).run([HubEvent(body, "0", 1, NOON, {}), build_event(2)])
    assert await read_ids(store) == ["m-0-2"]
    [row] = await read_rows(store, "_unrouted")
    assert row["messageId"] == "impulses-0-1"


@pytest.mark.parametrize("connection", ["", "..", "../../x", "a/b", "x" * 300, "ü\n", "~"])
async def test_any_lookup_is_stored_in_a_separate_folder(tmp_path: Path, connection: str) -> None:
    """Events with any lookup (id in URLs) of the connection are stored in a separate folder and can be read."""
    store = open_folder_store(tmp_path)
    await Archive(store).run([build_event(1, connection=connection), build_event(2)])
    assert await read_ids(store, connection) == ["m-0-1"]
    assert await read_ids(store) == ["m-0-2"]


async def test_events_after_a_hub_reset_are_stored(tmp_path: Path) -> None:
    """If the hub was reset, events with reused sequence numbers are stored in addition to the old events."""
    store = open_folder_store(tmp_path)
    await Archive(store).run([build_event(1, "old-1"), build_event(2, "old-2")])
    later = NOON + timedelta(days=3)
    anew = [build_event(1, "new-1", enqueued_at=later), build_event(2, "new-2", enqueued_at=later)]
    for _ in range(2):
        await Archive(store).run(anew)
    assert sorted(await read_ids(store)) == ["new-1", "new-2", "old-1", "old-2"]
    assert len(await read_contents(store)) == 2
