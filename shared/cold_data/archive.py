"""Archive writer: stores each batch of impulses (telemetry messages) as one blob per connection and hour.

Separate from ``compaction`` because each trigger batch stores blobs, and a background job merges them later.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.cold_data.inventory import read_summary
from shared.cold_data.names import (
    SequenceRange,
    build_batch_name,
    build_batch_name_after_reset,
    build_hour_folder,
)
from shared.cold_data.ports import Blob, BlobStore
from shared.cold_data.tables import BlobSummary, ReceivedImpulse, to_parquet
from shared.observability.logs import fields, get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry import unrouted
from shared.telemetry.impulses import ImpulseTexts, read_impulse_texts, to_impulse_texts
from shared.telemetry.models import IMPULSES_HUB, HubEvent
from shared.timestamps import from_microseconds, to_microseconds

CONCURRENT_WRITES = 4
"""Maximum number of blobs of a batch that are stored concurrently."""

_MICROSECONDS_OF_AN_HOUR = 3_600_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOGGER = get_logger("cold_data.archive")


@dataclass(frozen=True, slots=True)
class _NewBlob:
    """Blob to store: the folder of its connection and hour, its name in the folder, its bytes and its summary."""

    folder: str
    name: str
    content: bytes
    summary: BlobSummary


class Archive:
    """Stores impulses (normalised telemetry messages) as Parquet blobs; the hub may deliver an event several times."""

    def __init__(self, store: BlobStore, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._store = store
        self._runtime = runtime

    async def run(self, events: Sequence[HubEvent]) -> None:
        """Store the telemetry messages of an event batch; return after all of them are stored.

        An event without a valid message is stored under ``_unrouted`` with the reason. If an event is delivered
        again in the same batch, nothing changes. In another batch, its row is stored again and readers drop the copy.

        Args:
            events: batch in which the sequence numbers of each partition ascend without gaps.

        Raises:
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``; the hub must deliver the batch again.
        """
        if not events:
            return
        semaphore = asyncio.Semaphore(CONCURRENT_WRITES)

        async def store(blob: _NewBlob) -> None:
            async with semaphore:
                await self._store_blob(blob)

        # Decoding and compressing a large batch would block the event loop.
        await asyncio.gather(*map(store, await self._runtime.run_in_thread(lambda: list(_build_blobs(events)))))

    async def _store_blob(self, blob: _NewBlob) -> None:
        if await self._store.create(blob.folder + blob.name, blob.content):
            return
        try:
            stored = await read_summary(self._store, Blob(blob.folder + blob.name, len(blob.content), _EPOCH))
        except FileNotFoundError:
            return  # already merged into another blob and removed: its rows are stored there
        if _is_same_batch(stored, blob.summary):
            return
        # The hub was reset and reuses sequence numbers: the name belongs to other events.
        name = blob.folder + build_batch_name_after_reset(blob.name, blob.summary.first_enqueued)
        await self._store.create(name, blob.content)


def _build_blobs(events: Sequence[HubEvent]) -> Iterator[_NewBlob]:
    groups: defaultdict[tuple[str, int, str], list[ReceivedImpulse]] = defaultdict(list)
    for event in events:
        impulse = _decode_event(event)
        key = (impulse.connection, impulse.microseconds // _MICROSECONDS_OF_AN_HOUR, event.partition)
        groups[key].append(ReceivedImpulse(impulse, event))
    for (connection, hours, partition), received in groups.items():
        hour = from_microseconds(hours * _MICROSECONDS_OF_AN_HOUR)
        numbers = [each.event.sequence_number for each in received]
        times = [each.event.enqueued_at for each in received]
        summary_of_batch = BlobSummary(len(received), 0, to_microseconds(min(times)), to_microseconds(max(times)))
        name = build_batch_name(SequenceRange(partition, min(numbers), max(numbers)))
        yield _NewBlob(
            build_hour_folder(connection, hour), name, to_parquet(received, summary_of_batch), summary_of_batch
        )


def _decode_event(event: HubEvent) -> ImpulseTexts:
    try:
        return read_impulse_texts(event.body)
    except (ValueError, RecursionError) as error:
        _LOGGER.warning(
            "event is not a valid impulse; stored as unrouted",
            extra=fields(partition=event.partition, sequence=event.sequence_number, reason=str(error)[:300]),
        )
        message = unrouted.parse_if_json(event.body)
        reason = f"the event is not a valid telemetry message: {error}"[:500]
        return to_impulse_texts(unrouted.build_impulse(IMPULSES_HUB, event, message, reason, ""))


def _is_same_batch(one: BlobSummary, other: BlobSummary) -> bool:
    return (one.rows, one.first_enqueued, one.last_enqueued) == (other.rows, other.first_enqueued, other.last_enqueued)
