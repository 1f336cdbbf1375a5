"""Benchmark: processor time of the function code for one telemetry message, without the host and the stores.

In the cloud, the same functions run on paid processors; so this time determines the cost of a message there.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from types import SimpleNamespace
from typing import Final, cast

from bench.figures import Figure
from bench.ingest import build_messages
from functions.hub_events import TriggerBatch, read_hub_events
from shared.catalog.models import Connection, Surface
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.cold_data.archive import Archive
from shared.cold_data.ports import BlobStore
from shared.live_stream.ports import MessageService
from shared.live_stream.publishing import LivePublisher
from shared.runtime import SYSTEM_RUNTIME
from shared.telemetry.acceptance import TelemetryService
from shared.telemetry.ingest import TelemetryIngestor
from shared.telemetry.models import HubMessage
from shared.telemetry.ports import ConnectionStateStore
from shared.text_formats.strict_json import parse_json_body

EVENTS: Final = 20_000
BATCH: Final = 500
ROUNDS: Final = 5
MOST_READINGS: Final = 17.5
"""Maximum ratio of a message's cost to ``json.loads``: half of 35, the ratio when every step parsed the payload."""

_ENQUEUED = "2026-01-05T08:00:00.123Z"
_INSTANT = datetime(2026, 1, 5, 8, tzinfo=UTC)


class _StoreStubs:
    """Substitute for hub, state store, blob store and message service; it stores only the last sent messages."""

    def __init__(self) -> None:
        self.sent: Sequence[HubMessage] = ()

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:  # noqa: ARG002  port EventSender
        self.sent = messages

    async def add_arrived_messages_to_counts(self, arrivals: Sequence[object]) -> None:
        """Do nothing: this stub of the port ConnectionStateStore counts no messages."""

    async def set_status(self, connections: Collection[str], status: str) -> None:
        """Do nothing: this stub of the port ConnectionStateStore stores no status."""

    async def load_statuses_by_connection(self) -> Mapping[str, str]:
        return {}

    async def create_if_missing(self, name: str, content: bytes) -> bool:
        return bool(name and content)

    async def publish(self, group: str, text: bytes) -> None:
        """Do nothing: this stub of the port MessageService sends no messages."""


def measure_message_cost() -> Iterator[Figure]:
    """Measure the processor time of each step that handles a telemetry message; yield the medians of several rounds.

    The steps are acceptance over HTTP, ingestion, archive and live stream.
    """
    rounds, readings = [], []
    for _ in range(ROUNDS):
        rounds.append(asyncio.run(_measure_microseconds_per_message_by_step()))
        readings.append(_measure_json_parsing_microseconds())
    totals = [sum(steps.values()) for steps in rounds]
    ratios = [total / reading for total, reading in zip(totals, readings, strict=True)]
    parts = {name: round(median(steps[name] for steps in rounds), 1) for name in rounds[0]}
    detail = {"messages": EVENTS, "batch": BATCH, "rounds": ROUNDS, "microseconds": parts}
    yield Figure("message_cost", median(totals), "µs", detail=detail | _get_minimum_and_maximum(totals))
    yield Figure(
        "message_cost_in_readings",
        median(ratios),
        "ratio",
        at_most=MOST_READINGS,
        detail={"readingMicroseconds": round(median(readings), 2)} | _get_minimum_and_maximum(ratios),
    )


def _get_minimum_and_maximum(values: Sequence[float]) -> dict[str, float]:
    return {"minimum": round(min(values), 1), "maximum": round(max(values), 1)}


async def _measure_microseconds_per_message_by_step() -> dict[str, float]:
    """Run every processing step once on a batch; return each step's processor time per message in microseconds."""
    stores = _StoreStubs()
    catalog = _build_catalog()

    async def get_catalog() -> Catalog:
        return catalog

    async def require_disk_space() -> None:
        """Do nothing: this stub of the port RequireSpace does not check the disk space."""

    service = TelemetryService(get_catalog, stores, require_disk_space=require_disk_space)
    ingestor = TelemetryIngestor(get_catalog, stores, cast("ConnectionStateStore", stores))
    archive = Archive(cast("BlobStore", stores))
    publisher = LivePublisher(cast("MessageService", stores), None)
    bodies = [json.dumps(batch).encode() for batch in build_messages(EVENTS, BATCH)]
    accepted: list[Sequence[HubMessage]] = []
    impulses: list[Sequence[HubMessage]] = []

    async def accept_body(body: bytes) -> None:
        value = await parse_json_body(body, SYSTEM_RUNTIME)
        await service.accept_and_count_messages("line", value, body_bytes=len(body))
        accepted.append(stores.sent)

    async def ingest_batch(batch: TriggerBatch) -> None:
        await ingestor.run("telemetry", read_hub_events(batch))
        impulses.append(stores.sent)

    async def archive_batch(batch: TriggerBatch) -> None:
        await archive.store_events(read_hub_events(batch))

    async def publish(batch: TriggerBatch) -> None:
        await publisher.publish_events(read_hub_events(batch), _INSTANT)

    cost = {"accept": await _measure_step_microseconds_per_message(accept_body, bodies)}
    cost["ingest"] = await _measure_step_microseconds_per_message(
        ingest_batch, [_build_trigger_batch(number, each) for number, each in enumerate(accepted)]
    )
    batches = [_build_trigger_batch(number, each) for number, each in enumerate(impulses)]
    cost["archive"] = await _measure_step_microseconds_per_message(archive_batch, batches)
    cost["live"] = await _measure_step_microseconds_per_message(publish, batches)
    return cost


async def _measure_step_microseconds_per_message[T](
    run_step: Callable[[T], Awaitable[None]], inputs: Sequence[T]
) -> float:
    started = time.process_time()
    for each in inputs:
        await run_step(each)
    return (time.process_time() - started) / EVENTS * 1e6


def _build_trigger_batch(batch_number: int, messages: Sequence[HubMessage]) -> TriggerBatch:
    """Build the input of an Event Hub trigger, in the form that the Functions host sends to the worker."""
    places = [
        {"SequenceNumber": at, "Offset": str(at), "PartitionKey": each.partition_key, "EnqueuedTimeUtc": _ENQUEUED}
        for at, each in enumerate(messages, batch_number * BATCH)
    ]
    metadata = {
        "PartitionContext": {"PartitionId": "0", "ConsumerGroup": "$Default"},
        "PropertiesArray": [dict(each.properties) for each in messages],
        "SystemPropertiesArray": places,
    }
    return TriggerBatch(
        [each.body for each in messages],
        {name: SimpleNamespace(value=json.dumps(value)) for name, value in metadata.items()},
    )


def _measure_json_parsing_microseconds() -> float:
    """Return the microseconds that the standard library's JSON parser needs for one message."""
    texts = [json.dumps(message) for batch in build_messages(EVENTS, BATCH) for message in batch]
    started = time.process_time()
    for _ in range(4):
        for text in texts:
            json.loads(text)
    return (time.process_time() - started) / 4 / EVENTS * 1e6


def _build_catalog() -> Catalog:
    connection = Connection.model_validate({"lookup": "line", "name": "Line", "type": "CLOUD_EVENT_HUB"})
    surface = Surface(lookup="hall", name="Hall", connections=("line",))
    return Catalog(
        version=1,
        connections={"line": CatalogEntry(connection, _INSTANT, _INSTANT, "admin@bench")},
        surfaces={"hall": CatalogEntry(surface, _INSTANT, _INSTANT, "admin@bench")},
    )
