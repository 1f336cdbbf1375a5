"""The archive's blobs: what they are called, what they hold, and what redelivery does to them."""

import io
import json
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from shared.cold_data.archive import Archive
from shared.telemetry.models import HubEvent
from tests.unit.shared.cold_data.archived import NOON, batches, contents, event, folder_store, ids, rows

HOUR = timedelta(hours=1)


async def test_a_blob_per_connection_and_hour(tmp_path: Path) -> None:
    """A batch becomes one blob for each connection and hour of its impulses, named by where they stand in the hub."""
    store = folder_store(tmp_path)
    events = [event(7), event(8, connection="press"), event(9, at=NOON + HOUR), event(10)]
    await Archive(store).run(events)
    assert list(await contents(store)) == [
        "impulses/press/2026/01/05/12/0-00000000000000000008-00000000000000000008.parquet",
        "impulses/rig/2026/01/05/12/0-00000000000000000007-00000000000000000010.parquet",
        "impulses/rig/2026/01/05/13/0-00000000000000000009-00000000000000000009.parquet",
    ]


async def test_a_row_keeps_everything(tmp_path: Path) -> None:
    """Every member of an impulse and its place in the hub are columns; payloads keep integers of any size."""
    store = folder_store(tmp_path)
    payload = {"big": 12345678901234567890123, "text": 'ü"\n', "nested": {"a": [1, None]}}
    await Archive(store).run([event(3, "id-3", at=NOON + timedelta(microseconds=5), payload=payload)])
    [content] = (await contents(store)).values()
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


async def test_redelivery_changes_nothing(tmp_path: Path) -> None:
    """Every batch delivered three times leaves the same files with the same bytes."""
    store = folder_store(tmp_path)
    events = [event(number, at=NOON + number * timedelta(minutes=7)) for number in range(1, 40)]
    for batch in batches(events, 10):
        await Archive(store).run(batch)
    once = await contents(store)
    for _ in range(2):
        for batch in batches(events, 10):
            await Archive(store).run(batch)
    assert await contents(store) == once
    assert len(await rows(store)) == 39


async def test_other_batches_of_the_same_events(tmp_path: Path) -> None:
    """Where batch boundaries moved, rows stand in several blobs and are read once."""
    store = folder_store(tmp_path)
    events = [event(number) for number in range(1, 40)]
    for size in (10, 7, 39, 13):
        for batch in batches(events, size):
            await Archive(store).run(batch)
    assert await ids(store) == [f"m-0-{number}" for number in range(1, 40)]


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"{}", b'{"ID":"x"}', b"[" * 3000])
async def test_an_event_that_is_no_impulse_is_set_aside(tmp_path: Path, body: bytes) -> None:
    """It is kept under _unrouted with the reason, and holds up nobody."""
    store = folder_store(tmp_path)
    await Archive(store).run([HubEvent(body, "0", 1, NOON, {}), event(2)])
    assert await ids(store) == ["m-0-2"]
    [row] = await rows(store, "_unrouted")
    assert row["messageId"] == "impulses-0-1"


@pytest.mark.parametrize("connection", ["", "..", "../../x", "a/b", "x" * 300, "ü\n", "~"])
async def test_no_lookup_leads_out_of_its_folder(tmp_path: Path, connection: str) -> None:
    """Whatever a hub event claims to be of, it is kept, apart from others, and read back."""
    store = folder_store(tmp_path)
    await Archive(store).run([event(1, connection=connection), event(2)])
    assert await ids(store, connection) == ["m-0-1"]
    assert await ids(store) == ["m-0-2"]


async def test_a_hub_that_begins_anew_loses_nothing(tmp_path: Path) -> None:
    """Other events under numbers that were there before are kept beside them."""
    store = folder_store(tmp_path)
    await Archive(store).run([event(1, "old-1"), event(2, "old-2")])
    later = NOON + timedelta(days=3)
    anew = [event(1, "new-1", enqueued_at=later), event(2, "new-2", enqueued_at=later)]
    for _ in range(2):
        await Archive(store).run(anew)
    assert sorted(await ids(store)) == ["new-1", "new-2", "old-1", "old-2"]
    assert len(await contents(store)) == 2
