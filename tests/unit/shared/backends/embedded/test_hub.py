"""Tests of the embedded event hub: durable appends, sequence numbers and offsets."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.backends.embedded.hub import HubReader, HubWriter
from shared.backends.embedded.hub_file import PARTITIONS, compute_partition_id
from shared.errors import Kind, WorkspaceError
from shared.telemetry.models import HubEvent, HubMessage
from shared.timestamps import now
from tests.random_examples import scale_examples

HUB = "telemetry"
SENDER = """
import asyncio, sys
from pathlib import Path
from shared.backends.embedded.hub import HubWriter
from shared.telemetry.models import HubMessage

async def main():
    log = HubWriter(Path(sys.argv[1]))
    for number in range(int(sys.argv[3])):
        await log.send("telemetry", [HubMessage(f"{sys.argv[2]}-{number}".encode(), "key", {})])
    await log.close()

asyncio.run(main())
"""


def build_message(body: bytes, key: str = "key") -> HubMessage:
    return HubMessage(body, key, {})


def read_all_events(reader: HubReader, hub: str = HUB) -> list[HubEvent]:
    return [event for partition in reader.list_partition_ids(hub) for event in reader.read(hub, partition, 0, 100_000)]


@pytest.fixture
def hub_path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "hub.sqlite"


@pytest.fixture
async def hub_writer(hub_path: Path) -> AsyncIterator[HubWriter]:
    hub_log = HubWriter(hub_path)
    yield hub_log
    await hub_log.close()


@pytest.fixture
def reader(hub_path: Path) -> Iterator[HubReader]:
    hub_reader = HubReader(hub_path)
    yield hub_reader
    hub_reader.close()


async def test_an_event_is_read_as_sent(hub_writer: HubWriter, reader: HubReader) -> None:
    """An event is read with its body, key and properties, its partition, and an enqueued time in UTC."""
    before = now()
    await hub_writer.send(HUB, [HubMessage(b"\x00\xff{}", "pümp", {"a": "ß"})])
    (event,) = read_all_events(reader)
    assert (event.body, event.partition_key, event.properties) == (b"\x00\xff{}", "pümp", {"a": "ß"})
    assert event.partition == compute_partition_id("pümp")
    assert before <= event.enqueued_at <= now()
    assert event.enqueued_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("text", ["", 'a"b', "line\nbreak", "\ud800", "\x00", "ß\u2028"])
async def test_properties_are_read_as_sent(hub_writer: HubWriter, reader: HubReader, text: str) -> None:
    """Names and values of properties can be any text, also with an unpaired surrogate."""
    await hub_writer.send(HUB, [HubMessage(b"{}", "key", {text: text, "other": text}), HubMessage(b"{}", "key", {})])
    assert [event.properties for event in read_all_events(reader)] == [{text: text, "other": text}, {}]


async def test_partitions_keep_the_order_of_several_keys(hub_writer: HubWriter, reader: HubReader) -> None:
    """Within a partition, the messages of one send call stay in order, whatever their keys are."""
    keys = [f"key-{number % 7}" for number in range(50)]
    await hub_writer.send(HUB, [build_message(str(number).encode(), key) for number, key in enumerate(keys)])
    for partition in reader.list_partition_ids(HUB):
        numbers = [int(event.body) for event in reader.read(HUB, partition, 0, 100)]
        expected = [number for number, key in enumerate(keys) if compute_partition_id(key) == partition]
        assert numbers == expected


async def test_messages_of_a_key_keep_order_and_partition(hub_writer: HubWriter, reader: HubReader) -> None:
    """Messages with one key are in one partition and in order, with ascending sequence numbers."""
    for number in range(20):
        await hub_writer.send(HUB, [build_message(f"{number}{half}".encode(), f"key-{number % 3}") for half in "ab"])
    for key in ("key-0", "key-1", "key-2"):
        events = [event for event in read_all_events(reader) if event.partition_key == key]
        numbers = [event.sequence_number for event in events]
        assert {event.partition for event in events} == {compute_partition_id(key)}
        assert numbers == sorted(set(numbers))
        assert [event.body for event in events] == sorted(
            (event.body for event in events), key=lambda b: (int(b[:-1]), b)
        )


async def test_concurrent_sends_share_commits_and_lose_nothing(hub_writer: HubWriter, reader: HubReader) -> None:
    """Concurrent sends share commits, and each message is stored exactly once."""
    await hub_writer.send(HUB, [build_message(b"first")])
    reader.has_changed_since_last_call()
    await asyncio.gather(
        *(hub_writer.send(HUB, [build_message(str(number).encode(), f"k{number}")]) for number in range(500))
    )
    events = read_all_events(reader)
    assert sorted(event.body for event in events) == sorted(
        [b"first", *(str(number).encode() for number in range(500))]
    )
    assert len({event.enqueued_at for event in events}) < 250


def test_several_processes_append_to_one_file(hub_path: Path, reader: HubReader) -> None:
    """If two processes append at once, no event is lost and sequence numbers are unique."""
    writers = [subprocess.Popen([sys.executable, "-c", SENDER, str(hub_path), name, "200"]) for name in ("a", "b")]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    events = reader.read(HUB, compute_partition_id("key"), 0, 1000)
    assert [event.sequence_number for event in events] == list(range(1, 401))
    for name in (b"a", b"b"):
        mine = [event.body for event in events if event.body.startswith(name)]
        assert mine == [name + b"-%d" % number for number in range(200)]


def test_acknowledged_events_survive_kill(hub_path: Path, reader: HubReader) -> None:
    """If the sender is killed, each event whose send was acknowledged is stored."""
    script = SENDER.replace("    await log.close()", "    print('done', flush=True)\n    await asyncio.sleep(60)")
    with subprocess.Popen([sys.executable, "-c", script, str(hub_path), "x", "50"], stdout=subprocess.PIPE) as sender:
        assert sender.stdout is not None
        assert sender.stdout.readline() == b"done\n"
        sender.kill()
    assert len(read_all_events(reader)) == 50


async def test_events_of_hubs_are_separate(hub_writer: HubWriter, reader: HubReader) -> None:
    """An event is stored only in the hub to which it was sent."""
    await hub_writer.send("impulses", [build_message(b"1")])
    await hub_writer.send(HUB, [build_message(b"2")])
    assert [event.body for event in read_all_events(reader, "impulses")] == [b"1"]
    assert [event.body for event in read_all_events(reader, HUB)] == [b"2"]
    assert read_all_events(reader, "never-sent-to") == []


async def test_a_read_starts_after_a_number_and_ends_at_the_limit(hub_writer: HubWriter, reader: HubReader) -> None:
    """A read returns up to ``limit`` events after the given sequence number."""
    await hub_writer.send(HUB, [build_message(str(number).encode()) for number in range(10)])
    events = reader.read(HUB, compute_partition_id("key"), 3, 4)
    assert [event.sequence_number for event in events] == [4, 5, 6, 7]
    assert reader.read(HUB, compute_partition_id("key"), 10, 4) == []


async def test_a_read_is_limited_in_bytes(
    hub_writer: HubWriter, reader: HubReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read ends at the byte limit, but returns at least one event."""
    monkeypatch.setattr("shared.backends.embedded.hub.MAX_READ_BYTES", 100)
    await hub_writer.send(HUB, [build_message(b"x" * 60) for _ in range(5)] + [build_message(b"y" * 500)])
    assert len(reader.read(HUB, compute_partition_id("key"), 0, 100)) == 2
    assert len(reader.read(HUB, compute_partition_id("key"), 5, 100)) == 1


@given(sent=st.lists(st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=9)), max_size=5), max_size=5))
@settings(max_examples=scale_examples(15), deadline=None)
def test_successive_reads_return_every_event_once(
    tmp_path_factory: pytest.TempPathFactory, sent: list[list[tuple[str, bytes]]]
) -> None:
    """Reads that each continue after the last sequence number together return each event exactly once."""
    path = tmp_path_factory.mktemp("hub") / "hub.sqlite"

    async def send() -> None:
        log = HubWriter(path)
        for batch in sent:
            await log.send(HUB, [build_message(body, key) for key, body in batch])
        await log.close()

    asyncio.run(send())
    reader = HubReader(path)
    bodies: list[bytes] = []
    for partition in reader.list_partition_ids(HUB):
        after = 0
        while events := reader.read(HUB, partition, after, 2):
            bodies += [event.body for event in events]
            after = events[-1].sequence_number
    reader.close()
    assert sorted(bodies) == sorted(body for batch in sent for _, body in batch)


def test_offsets_never_decrease(hub_path: Path, reader: HubReader) -> None:
    """The stored offset is 0 at first, then the highest committed offset, also after a reopening."""
    assert reader.read_offset(HUB, "live", "0") == 0
    for number in (5, 9, 3):
        reader.store_offset(HUB, "live", "0", number)
    other = HubReader(hub_path)
    assert other.read_offset(HUB, "live", "0") == 9
    assert (other.read_offset(HUB, "adx", "0"), other.read_offset(HUB, "live", "1")) == (0, 0)
    other.close()


async def test_has_changed_since_last_call_is_true_once_after_new_events(
    hub_writer: HubWriter, reader: HubReader
) -> None:
    """``has_changed_since_last_call`` returns True once after each write of another connection, otherwise False."""
    assert reader.has_changed_since_last_call()
    assert not reader.has_changed_since_last_call()
    await hub_writer.send(HUB, [build_message(b"1")])
    assert reader.has_changed_since_last_call()
    reader.store_offset(HUB, "live", "0", 1)
    assert not reader.has_changed_since_last_call()


async def test_a_locked_file_rejects_sends_and_recovers(
    hub_path: Path, hub_writer: HubWriter, reader: HubReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another process locks the file, sends fail as unavailable and store nothing; later sends succeed."""
    monkeypatch.setattr("shared.backends.embedded.hub._BUSY_TIMEOUT_MS", 50)
    monkeypatch.setattr("shared.backends.embedded.sqlite.BUSY_TIMEOUT_MS", 50)
    holder = sqlite3.connect(hub_path, autocommit=True)
    holder.execute("BEGIN IMMEDIATE")
    results = await asyncio.gather(
        *(hub_writer.send(HUB, [build_message(b"1")]) for _ in range(3)), return_exceptions=True
    )
    holder.execute("ROLLBACK")
    holder.close()
    for error in results:
        assert isinstance(error, WorkspaceError)
        assert (error.kind, error.code) == (Kind.UNAVAILABLE, "TELEMETRY_HUB_UNAVAILABLE")
        assert error.members == {"retryAfter": 1}
    assert read_all_events(reader) == []
    await hub_writer.send(HUB, [build_message(b"2")])
    assert [event.body for event in read_all_events(reader)] == [b"2"]


async def test_a_full_disk_stores_nothing_of_a_send(hub_writer: HubWriter, reader: HubReader) -> None:
    """If the disk is full, a send fails as unavailable and stores none of its messages."""
    await hub_writer.send(HUB, [build_message(b"1")])
    assert hub_writer._connection is not None
    hub_writer._connection.execute("PRAGMA max_page_count=20")
    with pytest.raises(WorkspaceError, match="cannot accept events"):
        await hub_writer.send(HUB, [build_message(b"x" * 9000, f"k{number}") for number in range(20)])
    assert [event.body for event in read_all_events(reader)] == [b"1"]
    await hub_writer.send(HUB, [build_message(b"x" * 9000, f"k{number}") for number in range(20)])
    assert len(read_all_events(reader)) == 21


async def test_a_closed_log_rejects_sends(hub_path: Path) -> None:
    """A send fails as unavailable after the log is closed."""
    log = HubWriter(hub_path)
    await log.send(HUB, [build_message(b"1")])
    await log.close()
    with pytest.raises(WorkspaceError):
        await log.send(HUB, [build_message(b"2")])


async def test_a_cancelled_send_does_not_affect_others(hub_writer: HubWriter, reader: HubReader) -> None:
    """If one send is cancelled, the other sends of the same commit are stored completely."""
    sends = [asyncio.ensure_future(hub_writer.send(HUB, [build_message(str(number).encode())])) for number in range(10)]
    await asyncio.sleep(0)
    sends[3].cancel()
    results = await asyncio.gather(*sends, return_exceptions=True)
    assert [type(result) for result in results].count(asyncio.CancelledError) == 1
    assert {event.body for event in read_all_events(reader)} >= {str(n).encode() for n in range(10) if n != 3}


@given(st.text())
def test_the_partition_of_a_key_is_stable_and_valid(key: str) -> None:
    """Each UTF-8 key has one partition, which never changes and belongs to the hub."""
    assert compute_partition_id(key) in {str(number) for number in range(PARTITIONS)}


def test_the_partitions_of_sample_keys_never_change() -> None:
    """The partitions of some sample keys are the same in each release."""
    assert [compute_partition_id(key) for key in ("", "pump-rig", "rig")] == ["0", "0", "1"]
