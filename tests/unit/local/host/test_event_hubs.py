"""Tests of Event Hub triggers on a local host with the embedded hub."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared.backends.embedded.hub import HubReader, HubWriter
from shared.backends.embedded.hub_file import compute_partition_id
from shared.telemetry.models import HubMessage

BATCHES = """
@app.event_hub_message_trigger(arg_name="events", event_hub_name="%HUB%", connection="EventHubs", consumer_group="live",
                               cardinality=func.Cardinality.MANY, data_type=func.DataType.BINARY)
async def batches(events: typing.List[func.EventHubEvent]) -> None:
    first = events[0]
    record({"bodies": [event.get_body().decode("latin-1") for event in events],
            "numbers": [event.sequence_number for event in events],
            "keys": [event.partition_key for event in events],
            "times": [event.enqueued_time.isoformat() for event in events],
            "metadata": first.metadata})
"""
SINGLE = """
@app.event_hub_message_trigger(arg_name="event", event_hub_name="telemetry", connection="EventHubs",
                               cardinality=func.Cardinality.ONE)
async def single(event: func.EventHubEvent) -> None:
    record([event.get_body().decode(), event.sequence_number, event.partition_key, event.offset,
            event.metadata["Properties"], event.metadata["PartitionContext"]["ConsumerGroup"]])
"""
FAILING = """
@app.event_hub_message_trigger(arg_name="events", event_hub_name="telemetry", connection="EventHubs",
                               consumer_group="live", data_type=func.DataType.BINARY)
{retry}
async def failing(events: typing.List[func.EventHubEvent], context: func.Context) -> None:
    bodies = [event.get_body().decode() for event in events]
    retry = context.retry_context
    record([bodies, retry.retry_count, retry.max_retry_count])
    if "bad" in bodies and not (DATA / "mended").exists():
        raise RuntimeError("cannot take it")
"""
BLOCKING = """
@app.event_hub_message_trigger(arg_name="events", event_hub_name="telemetry", connection="EventHubs",
                               consumer_group="live", data_type=func.DataType.BINARY)
async def blocking(events: typing.List[func.EventHubEvent]) -> None:
    bodies = [event.get_body().decode() for event in events]
    record(bodies)
    while "block" in bodies and not (DATA / "go").exists():
        await asyncio.sleep(0.01)
"""

CALLING = """
@app.route(route="pong")
async def pong(req: func.HttpRequest) -> str:
    return "pong"

@app.event_hub_message_trigger(arg_name="events", event_hub_name="telemetry", connection="EventHubs",
                               consumer_group="live", data_type=func.DataType.BINARY)
async def calling(events: typing.List[func.EventHubEvent]) -> None:
    import aiohttp, signal
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0.5)
    async with aiohttp.ClientSession() as session, session.get(os.environ["FILES_URL"] + "/pong") as reply:
        record(reply.status)
"""


def send_events(data_dir: Path, bodies: Sequence[bytes], hub: str = "telemetry") -> None:
    async def append() -> None:
        log = HubWriter(data_dir / "hub.sqlite")
        await log.send(hub, [HubMessage(body, "key", {"kind": "test"}) for body in bodies])
        await log.close()

    asyncio.run(append())


def read_committed_offset(data_dir: Path, hub: str = "telemetry", group: str = "live") -> int:
    reader = HubReader(data_dir / "hub.sqlite")
    try:
        return reader.read_offset(hub, group, compute_partition_id("key"))
    finally:
        reader.close()


def test_a_batch_has_the_metadata_of_the_functions_host(start_host: Any) -> None:
    """A function gets a batch's events in order and unchanged, with the same metadata as on the Functions host."""
    host = start_host(BATCHES, HUB="impulses")
    send_events(host.data_dir, [b"one", b"\xff\x00"], "impulses")
    host.wait_until(lambda: len(host.read_records()) == 1)
    (batch,) = host.read_records()
    assert batch["bodies"] == ["one", "\xff\x00"]
    assert (batch["numbers"], batch["keys"]) == ([1, 2], ["key", "key"])
    metadata = batch["metadata"]
    assert metadata["SequenceNumberArray"] == [1, 2]
    assert metadata["PartitionKeyArray"] == ["key", "key"]
    assert metadata["PropertiesArray"] == [{"kind": "test"}, {"kind": "test"}]
    assert metadata["EnqueuedTimeUtcArray"] == batch["times"]
    assert [entry["Offset"] for entry in metadata["SystemPropertiesArray"]] == [1, 2]
    for name in ("PartitionContext", "TriggerPartitionContext"):
        context = metadata[name]
        assert (context["EventHubName"], context["ConsumerGroup"]) == ("impulses", "live")
        assert context["PartitionId"] == compute_partition_id("key")


def test_batches_respect_the_limit_of_host_json(start_host: Any) -> None:
    """A batch has at most the size in host.json; all batches contain each event once and in order."""
    host = start_host("", HUB="telemetry")
    send_events(host.data_dir, [str(number).encode() for number in range(25)])
    assert host.terminate() == 0
    host = start_host(BATCHES, HUB="telemetry", batch=10)
    host.wait_until(lambda: read_committed_offset(host.data_dir) == 25)
    assert [len(batch["bodies"]) for batch in host.read_records()] == [10, 10, 5]
    assert [number for batch in host.read_records() for number in batch["numbers"]] == list(range(1, 26))


def test_cardinality_one_passes_single_events(start_host: Any) -> None:
    """A function with cardinality one is called once for each event, with the event's metadata."""
    host = start_host(SINGLE)
    send_events(host.data_dir, [b"a", b"b"])
    host.wait_until(lambda: read_committed_offset(host.data_dir, group="$Default") == 2)
    assert host.read_records() == [
        ["a", 1, "key", "1", {"kind": "test"}, "$Default"],
        ["b", 2, "key", "2", {"kind": "test"}, "$Default"],
    ]


def test_failed_batch_is_repeated_until_success(start_host: Any) -> None:
    """Without a retry policy, a failed batch is repeated until it succeeds, and is then committed."""
    host = start_host(FAILING.format(retry=""))
    send_events(host.data_dir, [b"bad"])
    host.wait_until(lambda: len(host.read_records()) >= 2)
    assert read_committed_offset(host.data_dir) == 0
    (host.data_dir / "mended").touch()
    host.wait_until(lambda: read_committed_offset(host.data_dir) == 1)
    assert [record[:2] for record in host.read_records()] == [
        [["bad"], number] for number in range(len(host.read_records()))
    ]
    assert "cannot take it" in host.read_log()


def test_batch_is_dropped_after_its_retries(start_host: Any) -> None:
    """A batch that fails in all retries is logged, dropped and committed, as on the Functions host."""
    retry = '@app.retry(strategy="fixed_delay", max_retry_count="2", delay_interval="00:00:00")'
    host = start_host(FAILING.format(retry=retry))
    send_events(host.data_dir, [b"bad"])
    host.wait_until(lambda: read_committed_offset(host.data_dir) == 1)
    send_events(host.data_dir, [b"good"])
    host.wait_until(lambda: read_committed_offset(host.data_dir) == 2)
    assert host.read_records() == [[["bad"], 0, 2], [["bad"], 1, 2], [["bad"], 2, 2], [["good"], 0, 2]]
    assert '"CRITICAL"' in host.read_log()


def test_kill_redelivers_uncommitted_batches(start_host: Any) -> None:
    """After kill -9, a batch in progress is delivered again, and committed batches are not."""
    host = start_host(BLOCKING)
    send_events(host.data_dir, [b"taken"])
    host.wait_until(lambda: read_committed_offset(host.data_dir) == 1)
    send_events(host.data_dir, [b"block"])
    host.wait_until(lambda: host.read_records()[-1:] == [["block"]])
    host.kill()
    (host.data_dir / "go").touch()
    host = start_host(BLOCKING)
    host.wait_until(lambda: read_committed_offset(host.data_dir) == 2)
    assert host.read_records() == [["taken"], ["block"], ["block"]]


def test_batch_in_progress_can_still_call_the_host(start_host: Any) -> None:
    """After SIGTERM, the HTTP server stops after the triggers, because a running batch can send requests to it."""
    host = start_host(CALLING)
    send_events(host.data_dir, [b"event"])
    assert host.process.wait(timeout=30) == 0
    assert host.read_records() == [200]
    assert host.read_log() == ""


def test_batch_in_progress_ends_before_the_host_does(start_host: Any) -> None:
    """After SIGTERM, the running batch is completed and committed before the host exits with 0."""
    host = start_host(BLOCKING)
    send_events(host.data_dir, [b"block"])
    host.wait_until(lambda: host.read_records() == [["block"]])
    host.process.terminate()
    (host.data_dir / "go").touch()
    assert host.process.wait(timeout=30) == 0
    assert read_committed_offset(host.data_dir) == 1


def test_unfinished_batch_is_not_committed(start_host: Any) -> None:
    """A batch that takes longer than the drain time is not committed, and the host exits."""
    host = start_host(BLOCKING)
    send_events(host.data_dir, [b"block"])
    host.wait_until(lambda: host.read_records() == [["block"]])
    assert host.terminate() == 0
    assert read_committed_offset(host.data_dir) == 0
