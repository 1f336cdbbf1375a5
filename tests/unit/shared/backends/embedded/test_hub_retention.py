"""Tests of the archive's progress through the embedded hub, and of the deletion of old events."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from shared.backends.embedded import hub_retention
from shared.backends.embedded.hub import HubReader, HubWriter
from shared.backends.embedded.hub_file import compute_partition_id
from shared.backends.embedded.hub_retention import HubArchiveProgress, HubTrimmer
from shared.runtime import Runtime
from shared.telemetry.models import IMPULSES_HUB, TELEMETRY_HUB, HubEvent, HubMessage
from shared.timestamps import now

MESSAGE = HubMessage(b"{}", "rig", {})


@pytest.fixture
async def archived_hub(tmp_path: Path) -> AsyncIterator[HubWriter]:
    """Yield an empty hub, and close it after the test."""
    log = HubWriter(tmp_path / "hub.sqlite")
    yield log
    await log.close()


def commit_as_read(hub_path: Path, hub: str, group: str) -> None:
    """Mark all events of a hub as read by a consumer group."""
    reader = HubReader(hub_path)
    for partition in reader.list_partition_ids(hub):
        reader.store_offset(hub, group, partition, reader.read_last_assigned_sequence_number(hub, partition))
    reader.close()


async def test_the_archive_of_an_empty_hub_is_complete(tmp_path: Path) -> None:
    """If the hub has no messages, the archive is complete."""
    assert await HubArchiveProgress(tmp_path / "hub.sqlite").wait_until_archived(0)


@pytest.mark.parametrize(("hub_name", "group"), [(TELEMETRY_HUB, "$Default"), (IMPULSES_HUB, "archive")])
async def test_the_archive_is_complete_after_all_events_are_read(
    tmp_path: Path, archived_hub: HubWriter, hub_name: str, group: str
) -> None:
    """The archive is complete only after its consumer group has read all events; other groups do not matter."""
    await archived_hub.send(hub_name, [MESSAGE])
    path = tmp_path / "hub.sqlite"
    commit_as_read(path, hub_name, "live")
    assert not await HubArchiveProgress(path).wait_until_archived(0)
    commit_as_read(path, hub_name, group)
    assert await HubArchiveProgress(path).wait_until_archived(0)


async def test_a_message_is_archived_with_its_normalised_form(tmp_path: Path, archived_hub: HubWriter) -> None:
    """A raw message counts as archived when its normalised form is archived, whatever happens to later messages."""
    path = tmp_path / "hub.sqlite"
    await archived_hub.send(TELEMETRY_HUB, [MESSAGE])
    waiting = asyncio.create_task(HubArchiveProgress(path).wait_until_archived(30))
    await archived_hub.send(IMPULSES_HUB, [MESSAGE])
    commit_as_read(path, TELEMETRY_HUB, "$Default")
    await asyncio.wait([waiting], timeout=0.5)
    assert not waiting.done()
    commit_as_read(path, IMPULSES_HUB, "archive")
    await archived_hub.send(TELEMETRY_HUB, [MESSAGE])
    assert await waiting


async def test_the_archive_of_an_unreadable_hub_is_not_complete(tmp_path: Path) -> None:
    """If the hub's file is damaged, the archive is not complete."""
    (tmp_path / "hub.sqlite").write_bytes(b"no database" * 1000)
    assert not await HubArchiveProgress(tmp_path / "hub.sqlite").wait_until_archived(0)


HUB = "telemetry"
PARTITION = compute_partition_id("key")
LATER = timedelta(hours=1)
TRIMMER = """
import sys
from datetime import timedelta
from pathlib import Path
from shared.backends.embedded import hub_retention
from shared.timestamps import now

hub_retention._CHUNK_EVENTS = 100
trimmer = hub_retention.HubTrimmer(Path(sys.argv[1]))
print("ready", flush=True)
print(trimmer.delete_and_count_old_events(now() + timedelta(hours=1), {"telemetry": ["live"]}), flush=True)
trimmer.close()
"""


def build_messages(count: int, size: int = 0) -> list[HubMessage]:
    return [HubMessage(f"{number}".encode().ljust(size), "key", {}) for number in range(count)]


def read_all_events(reader: HubReader) -> list[HubEvent]:
    return [
        event for partition in reader.list_partition_ids(HUB) for event in reader.read(HUB, partition, 0, 1_000_000)
    ]


@pytest.fixture
def hub_path(tmp_path: Path) -> Path:
    return tmp_path / "hub.sqlite"


@pytest.fixture
async def writer(hub_path: Path) -> AsyncIterator[HubWriter]:
    hub = HubWriter(hub_path)
    yield hub
    await hub.close()


@pytest.fixture
def reader(hub_path: Path) -> Iterator[HubReader]:
    hub = HubReader(hub_path)
    yield hub
    hub.close()


@pytest.fixture
def trimmer(hub_path: Path) -> Iterator[HubTrimmer]:
    hub = HubTrimmer(hub_path)
    yield hub
    hub.close()


async def test_trimming_retains_unread_events(writer: HubWriter, reader: HubReader, trimmer: HubTrimmer) -> None:
    """Trimming deletes an event only if all consumer groups have read it."""
    await writer.send(HUB, build_messages(6))
    reader.store_offset(HUB, "live", PARTITION, 6)
    assert trimmer.delete_and_count_old_events(now() + LATER, {HUB: ["live", "adx"]}) == 0
    reader.store_offset(HUB, "adx", PARTITION, 4)
    assert trimmer.delete_and_count_old_events(now() + LATER, {HUB: ["live", "adx"]}) == 4
    assert [event.sequence_number for event in read_all_events(reader)] == [5, 6]


async def test_trimming_reports_the_groups_that_have_not_read_old_events(
    writer: HubWriter, reader: HubReader, trimmer: HubTrimmer, caplog: pytest.LogCaptureFixture
) -> None:
    """Trimming logs a warning for each consumer group that has not read events older than the retention."""
    await writer.send(HUB, build_messages(2))
    reader.store_offset(HUB, "live", PARTITION, 2)
    trimmer.delete_and_count_old_events(now() - LATER, {HUB: ["live", "archive"]})
    assert caplog.records == []
    trimmer.delete_and_count_old_events(now() + LATER, {HUB: ["live", "archive"]})
    assert [vars(record)["fields"] for record in caplog.records] == [{"hub": HUB, "group": "archive"}]


async def test_trimming_retains_recent_events(writer: HubWriter, reader: HubReader, trimmer: HubTrimmer) -> None:
    """Trimming does not delete recent events, even if all groups have read them."""
    await writer.send(HUB, [HubMessage(b"old", "key", {})])
    border = now()
    await writer.send(HUB, [HubMessage(b"young", "key", {})])
    reader.store_offset(HUB, "live", PARTITION, 100)
    assert trimmer.delete_and_count_old_events(border, {HUB: ["live"]}) == 1
    assert [event.body for event in read_all_events(reader)] == [b"young"]


async def test_sequence_numbers_are_not_reused_after_trimming(
    hub_path: Path, writer: HubWriter, reader: HubReader, trimmer: HubTrimmer
) -> None:
    """After trimming, an empty partition continues its sequence numbers, also after a reopening."""
    await writer.send(HUB, build_messages(2))
    reader.store_offset(HUB, "live", PARTITION, 2)
    assert trimmer.delete_and_count_old_events(now() + LATER, {HUB: ["live"]}) == 2
    again = HubWriter(hub_path)
    await again.send(HUB, build_messages(1))
    await again.close()
    assert [event.sequence_number for event in read_all_events(reader)] == [3]


async def test_the_space_of_deleted_events_is_returned_to_the_disk(
    hub_path: Path, writer: HubWriter, reader: HubReader, trimmer: HubTrimmer
) -> None:
    """After trimming, at most a quarter of the file is free space."""
    await writer.send(HUB, build_messages(2_000, 4_000))
    reader.store_offset(HUB, "live", PARTITION, 1_990)
    before = measure_file(hub_path)
    trimmer.delete_and_count_old_events(now() + LATER, {HUB: ["live"]})
    assert measure_file(hub_path) < before / 10
    assert len(read_all_events(reader)) == 10


async def test_each_transaction_deletes_few_bytes(
    hub_path: Path, writer: HubWriter, reader: HubReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction deletes events up to a total size, or one larger event, so that senders do not wait long."""
    monkeypatch.setattr(hub_retention, "_CHUNK_BYTES", 10_000)
    small, large = build_messages(4, 6_000), build_messages(2, 20_000)
    await writer.send(HUB, [*small, *large])
    reader.store_offset(HUB, "live", PARTITION, 6)
    remaining: list[list[int]] = []

    def list_remaining_events(_: float) -> None:
        remaining.append([event.sequence_number for event in read_all_events(reader)])

    trimmer = HubTrimmer(hub_path, runtime=Runtime(block=list_remaining_events))
    assert trimmer.delete_and_count_old_events(now() + LATER, {HUB: ["live"]}) == 6
    trimmer.close()
    assert remaining[:4] == [[3, 4, 5, 6], [5, 6], [6], []]


async def test_a_hub_file_of_an_earlier_version_is_converted(tmp_path: Path) -> None:
    """A file of a version without incremental vacuum is converted, and trimming returns its free space."""
    path = tmp_path / "hub.sqlite"
    with sqlite3.connect(path) as old:
        old.execute("PRAGMA auto_vacuum=NONE")
        old.execute("CREATE TABLE earlier (value TEXT)")
    old.close()
    writer = HubWriter(path)
    await writer.send(HUB, build_messages(2_000, 4_000))
    await writer.close()
    before = measure_file(path)
    trimmer = HubTrimmer(path)
    assert trimmer.delete_and_count_old_events(now() + LATER, {HUB: []}) == 2_000
    trimmer.close()
    assert measure_file(path) < before / 10


async def test_a_second_process_trims_while_events_are_sent(
    hub_path: Path, writer: HubWriter, reader: HubReader
) -> None:
    """If another process trims the hub during sends and is killed, no event is lost."""
    await writer.send(HUB, build_messages(20_000))
    reader.store_offset(HUB, "live", PARTITION, 15_000)
    for expected in (-signal.SIGKILL, 0):
        process = subprocess.Popen([sys.executable, "-c", TRIMMER, hub_path], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220  waited for below
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(20):
            await writer.send(HUB, build_messages(1))
        if expected:
            process.kill()
        process.communicate(timeout=60)
        assert process.returncode == expected
    assert [event.sequence_number for event in read_all_events(reader)] == list(range(15_001, 20_041))


def measure_file(hub_path: Path) -> int:
    """Return the size of the hub's file with all committed changes."""
    connection = sqlite3.connect(hub_path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return hub_path.stat().st_size
