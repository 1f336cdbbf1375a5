"""Helpers of the archive tests: they build hub events with telemetry messages (impulses) and read the archive."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from shared.backends.embedded.blobs import FolderBlobStore
from shared.backends.embedded.file_links import FileLinks
from shared.cold_data.reading import ColdReader
from shared.telemetry.impulses import encode_impulse
from shared.telemetry.models import HubEvent, Impulse

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def open_folder_store(path: Path) -> FolderBlobStore:
    """Return the embedded store in a folder."""
    return FolderBlobStore(path / "cold", FileLinks("http://127.0.0.1", path / "key"))


def build_event(
    sequence: int,
    message_id: str = "",
    *,
    at: datetime = NOON,
    enqueued_at: datetime | None = None,
    connection: str = "rig",
    partition: str = "0",
    payload: dict[str, Any] | None = None,
) -> HubEvent:
    """Return an event with an impulse (telemetry message); without an id, the impulse gets a unique one."""
    named = message_id or f"m-{partition}-{sequence}"
    impulse = Impulse(named, at, connection, ("hall",), "d-1", {}, payload or {"n": sequence})
    arrived = enqueued_at or NOON + timedelta(seconds=sequence)
    return HubEvent(encode_impulse(impulse), partition, sequence, arrived, {})


async def read_rows(
    store: FolderBlobStore, connection: str = "rig", start: datetime = FIRST, end: datetime = LAST
) -> list[dict[str, Any]]:
    """Return the rows of a connection in the order in which the archive returns them."""
    return [row async for batch in ColdReader(store).stream_rows(connection, start, end) for row in batch.to_pylist()]


async def read_ids(store: FolderBlobStore, connection: str = "rig") -> list[str]:
    """Return the message ids of a connection in the order in which the archive returns them."""
    return [row["messageId"] for row in await read_rows(store, connection)]


async def read_contents(store: FolderBlobStore) -> dict[str, bytes]:
    """Return the content of each blob by name."""
    return {blob.name: await store.read(blob.name) async for blob in store.list("")}


def split_into_batches(events: Sequence[HubEvent], size: int) -> list[Sequence[HubEvent]]:
    """Divide events into batches."""
    return [events[first : first + size] for first in range(0, len(events), size)]
