"""What a batch of impulses becomes in the archive: one blob per connection and hour."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.cold_data.inventory import summary
from shared.cold_data.names import SequenceRange, batch_name, batch_name_after_reset, floor_to_hour, hour_folder
from shared.cold_data.ports import Blob, BlobStore
from shared.cold_data.tables import BlobSummary, ReceivedImpulse, to_microseconds, to_parquet
from shared.observability.logs import fields, logger
from shared.telemetry import unrouted
from shared.telemetry.impulses import decode
from shared.telemetry.models import IMPULSES_HUB, HubEvent, Impulse

AT_ONCE = 4
"""Blobs of a batch that are stored at the same time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOGGER = logger("cold_data.archive")


@dataclass(frozen=True, slots=True)
class _Written:
    """A blob to be stored: its hour's prefix, its name below that, its bytes, and what it says of itself."""

    folder: str
    name: str
    content: bytes
    summary: BlobSummary


class Archive:
    """Keeps impulses; safe to run again over the same events, also when they come in other batches."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store

    async def run(self, events: Sequence[HubEvent]) -> None:
        """Store the impulses of a batch; when this returns, all of them are kept.

        An event that is no impulse is kept under ``_unrouted`` with the reason. Delivered again in the same batch an
        event changes nothing; in another batch its row is stored once more, and left out by whoever reads.

        Args:
            events: a batch, ascending in each partition, without a gap.

        Raises:
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``; the batch is to be delivered again.
        """
        if not events:
            return
        turns = asyncio.Semaphore(AT_ONCE)

        async def store(written: _Written) -> None:
            async with turns:
                await self._keep(written)

        # Reading and packing a large batch would hold up the event loop.
        await asyncio.gather(*map(store, await asyncio.to_thread(lambda: list(_written(events)))))

    async def _keep(self, written: _Written) -> None:
        if await self._store.create(written.folder + written.name, written.content):
            return
        try:
            there = await summary(self._store, Blob(written.folder + written.name, len(written.content), _EPOCH))
        except FileNotFoundError:
            return  # merged and removed since: its rows are kept
        if _is_same(there, written.summary):
            return
        # The hub began anew, and its numbers repeat: other events under a name that is taken.
        name = written.folder + batch_name_after_reset(written.name, written.summary.first_enqueued)
        await self._store.create(name, written.content)


def _written(events: Sequence[HubEvent]) -> Iterator[_Written]:
    groups: dict[tuple[str, datetime, str], list[ReceivedImpulse]] = {}
    for event in events:
        impulse = _impulse(event)
        groups.setdefault((impulse.connection, floor_to_hour(impulse.timestamp), event.partition), []).append(
            ReceivedImpulse(impulse, event)
        )
    for (connection, hour, partition), arrived in groups.items():
        numbers = [each.event.sequence_number for each in arrived]
        times = [each.event.enqueued_at for each in arrived]
        found = BlobSummary(len(arrived), 0, to_microseconds(min(times)), to_microseconds(max(times)))
        name = batch_name(SequenceRange(partition, min(numbers), max(numbers)))
        yield _Written(hour_folder(connection, hour), name, to_parquet(arrived, found), found)


def _impulse(event: HubEvent) -> Impulse:
    try:
        return decode(event.body)
    except (ValueError, RecursionError) as error:
        _LOGGER.warning(
            "an event that is no impulse is set aside",
            extra=fields(partition=event.partition, sequence=event.sequence_number, reason=str(error)[:300]),
        )
        return unrouted.build_impulse(IMPULSES_HUB, event, f"no impulse: {error}"[:500], "")


def _is_same(one: BlobSummary, other: BlobSummary) -> bool:
    return (one.rows, one.first_enqueued, one.last_enqueued) == (other.rows, other.first_enqueued, other.last_enqueued)
