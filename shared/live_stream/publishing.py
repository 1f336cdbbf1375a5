"""Publishing of recent impulses (telemetry messages) to live streams: each once, and in order within a connection."""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.live_stream.audience import Audience
from shared.live_stream.ports import MessageSender
from shared.observability.logs import fields, get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.models import UNROUTED, HubEvent

MAX_REMEMBERED: Final = 50_000
"""Maximum number of remembered message ids of all connections; they take about ten megabytes."""

REMEMBERED_SECONDS: Final = 600.0
"""Seconds for which a message id is remembered; retries after a timeout arrive sooner."""

_AFTER_ID: Final = b'","Timestamp":"'


class RecentImpulses:
    """Record of the impulses (telemetry messages) that this process published recently, by connection and id.

    Args:
        limit: maximum number of remembered impulses.
        runtime: clock, randomness and threads.
    """

    def __init__(self, limit: int = MAX_REMEMBERED, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._limit = limit
        self._until: OrderedDict[tuple[str, bytes], float] = OrderedDict()
        self._runtime = runtime

    def is_recently_published(self, group: str, impulse_json: bytes) -> bool:
        """Return whether an impulse (telemetry message) with the same id was published recently.

        Args:
            group: group of the listeners: the lookup (id in URLs) of the impulse's connection.
            impulse_json: the impulse as JSON text.
        """
        key = (group, _extract_json_up_to_id(impulse_json))
        until = self._until.get(key)
        if until is None or self._runtime.monotonic() < until:
            return until is not None
        del self._until[key]
        return False

    def remember_published(self, group: str, impulse_json: bytes) -> None:
        """Remember an impulse (telemetry message) as published; an impulse without an id is ignored."""
        prefix = _extract_json_up_to_id(impulse_json)
        if not prefix:
            return
        key = (group, prefix)
        self._until[key] = self._runtime.monotonic() + REMEMBERED_SECONDS
        if len(self._until) > self._limit:
            self._until.popitem(last=False)


def _extract_json_up_to_id(impulse_json: bytes) -> bytes:
    """Return the start of a telemetry message's JSON text up to the end of its id; this start identifies the message.

    Parsing the whole text as JSON would cost as much as publishing it.
    """
    return impulse_json[: max(0, impulse_json.find(_AFTER_ID))]


FRESH_FOR = timedelta(minutes=1)
"""Maximum age of a published message; messages that an outage delayed for longer are no longer live data."""

ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.1
CONCURRENT_CONNECTIONS = 16
"""Number of connections whose messages are sent concurrently; those of one connection are sent one after another."""

HEAVY_LOAD_PER_SECOND = 2_000
"""Messages per second of one partition above which ingestion needs the whole processor."""

PAUSE_FROM, PAUSE_UNTIL = timedelta(seconds=1), timedelta(seconds=20)
PAUSE_AFTER_MESSAGES, PAUSE_FACTOR = 10, 4
"""Pauses of publishing while ingestion on the same processor is busy.

If the messages of a batch are older than ``PAUSE_FROM``, publishing pauses after every ``PAUSE_AFTER_MESSAGES``
messages, for ``PAUSE_FACTOR`` times the duration of sending them. It does not pause if they are older than
``PAUSE_UNTIL``, because they would soon be too old to be published."""

_INSTANT_SECONDS = 0.02
_LOGGER = get_logger("live")


@dataclass(slots=True)
class PublishingCounters:
    """Numbers of impulses (telemetry messages) by outcome of publishing, since the process started.

    Attributes:
        published: number of impulses that were sent to Web PubSub.
        unheard: number of impulses that were not sent, because their group has no listeners.
        stale: number of impulses that were not sent, because they are older than a minute.
        refused: number of impulses that Web PubSub rejected.
        repeated: number of impulses that were not sent, because an impulse with the same id was sent recently.
        failures: number of batches that could not be sent completely.
    """

    published: int = 0
    unheard: int = 0
    stale: int = 0
    refused: int = 0
    repeated: int = 0
    failures: int = 0


class LivePublisher:
    """Publishes batches of the hub ``impulses`` (normalised telemetry messages) to live streams.

    Args:
        sender: sender of live messages.
        audience: cache of the groups that have listeners; None to send to all groups.
        shares_processor: True if ingestion runs on the same processor and has priority.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        sender: MessageSender,
        audience: Audience | None,
        *,
        shares_processor: bool = False,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._sender = sender
        self._audience = audience
        self._shares_processor = shares_processor
        self._limit = asyncio.Semaphore(CONCURRENT_CONNECTIONS)
        self._done: dict[str, set[int]] = {}
        self._repeats = RecentImpulses(runtime=runtime)
        self.counters = PublishingCounters()
        self._runtime = runtime

    async def publish_events(self, events: Sequence[HubEvent], at: datetime | None = None) -> None:
        """Publish a batch of hub events; a retry after a failure skips the events that are already published.

        Args:
            events: events of one partition in ascending order; the body of an event is an impulse (telemetry message)
                as JSON text, and its partition key is the connection.
            at: current time; None to read the clock.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE`` if part of the batch was not published.
        """
        if not events:
            return
        partition = events[0].partition
        done = self._done.setdefault(partition, set())
        done &= {event.sequence_number for event in events}
        at = at or self._runtime.now()
        unpublished = self._group_unpublished_events(events, done, at)
        behind = at - events[0].enqueued_at
        pauses = self._shares_processor and PAUSE_FROM < behind < PAUSE_UNTIL and _is_heavy_load(events)
        tasks = [self._publish_group(group, batch, done, pauses=pauses) for group, batch in unpublished.items()]
        failed = [error for error in await asyncio.gather(*tasks, return_exceptions=True) if error is not None]
        if failed:
            self._record_publishing_failure(partition, len(events), failed[0])
            raise failed[0]
        done.clear()

    async def try_skip_batch_without_listeners(self, groups: Collection[str], impulse_count: int) -> bool:
        """Skip a batch if none of its groups has a listener: count its impulses as unheard and return True.

        Otherwise, return False; the caller must then publish the batch.

        Args:
            groups: groups of the batch's impulses.
            impulse_count: number of impulses in the batch.
        """
        if self._audience is None:
            return False
        for group in groups:
            if group not in ("", UNROUTED) and await self._can_have_listeners(group):
                return False
        self.counters.unheard += impulse_count
        return True

    def _group_unpublished_events(
        self, events: Sequence[HubEvent], published_sequence_numbers: set[int], at: datetime
    ) -> dict[str, list[HubEvent]]:
        """Return the events to publish by group, without events that are too old, published, or have no group."""
        oldest = at - FRESH_FOR
        unpublished: dict[str, list[HubEvent]] = {}
        stale = 0
        for event in events:
            if event.enqueued_at < oldest:
                stale += 1
            elif event.partition_key not in ("", UNROUTED) and event.sequence_number not in published_sequence_numbers:
                unpublished.setdefault(event.partition_key, []).append(event)
        if stale:
            self.counters.stale += stale
            _LOGGER.info("stale impulses are not published", extra=fields(count=stale))
        return unpublished

    async def _publish_group(
        self, group: str, events: list[HubEvent], published_sequence_numbers: set[int], *, pauses: bool
    ) -> None:
        async with self._limit:
            if not await self._can_have_listeners(group):
                self.counters.unheard += len(events)
                published_sequence_numbers.update(event.sequence_number for event in events)
                return
            began = self._runtime.monotonic()
            for count, event in enumerate(events, 1):
                await self._publish_unless_repeated(group, event)
                published_sequence_numbers.add(event.sequence_number)
                if pauses and count % PAUSE_AFTER_MESSAGES == 0:
                    await self._runtime.sleep(PAUSE_FACTOR * (self._runtime.monotonic() - began))
                    began = self._runtime.monotonic()

    async def _can_have_listeners(self, group: str) -> bool:
        """Return whether a group possibly has listeners; return True if the message service does not respond."""
        try:
            return self._audience is None or await self._audience.can_have_listeners(group)
        except WorkspaceError:
            return True

    async def _publish_unless_repeated(self, group: str, event: HubEvent) -> None:
        """Publish a telemetry message unless it was published recently.

        Remember the message only after it was sent successfully.
        """
        if self._repeats.is_recently_published(group, event.body):
            self.counters.repeated += 1
            return
        await self._publish_with_retries(group, event)
        self._repeats.remember_published(group, event.body)

    async def _publish_with_retries(self, group: str, event: HubEvent) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._sender.publish(group, event.body)
            except WorkspaceError as error:
                if error.kind is not Kind.UNAVAILABLE:
                    self.counters.refused += 1
                    _LOGGER.warning(
                        "the message service rejected a message", extra=fields(group=group, code=error.code)
                    )
                    return
                if attempt == ATTEMPTS:
                    raise
            else:
                self.counters.published += 1
                return
            await self._runtime.sleep(FIRST_PAUSE_SECONDS * 2**attempt * self._runtime.uniform(0.5, 1))

    def _record_publishing_failure(self, partition_id: str, event_count: int, error: BaseException) -> None:
        self.counters.failures += 1
        _LOGGER.warning(
            "cannot publish impulses to the live stream",
            extra=fields(
                partition=partition_id, events=event_count, failures=self.counters.failures, reason=type(error).__name__
            ),
        )


def _is_heavy_load(events: Sequence[HubEvent]) -> bool:
    """Return whether the events of a batch arrived faster than ``HEAVY_LOAD_PER_SECOND``."""
    took = max((events[-1].enqueued_at - events[0].enqueued_at).total_seconds(), _INSTANT_SECONDS)
    return len(events) > HEAVY_LOAD_PER_SECOND * took
