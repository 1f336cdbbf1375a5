"""Publishing of impulses to listeners: each once, in order per connection, and only while fresh."""

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.live_stream.audience import Audience
from shared.live_stream.ports import Clock, MessageService, Sleep
from shared.observability.logs import fields, get_logger
from shared.telemetry.models import UNROUTED, HubEvent
from shared.timestamps import now

MAX_REMEMBERED: Final = 50_000
"""Impulses of all connections; about ten megabytes."""

REMEMBERED_SECONDS: Final = 600.0
"""Retries after a timeout arrive sooner; the table accepts an id again only after a day."""

_AFTER_ID: Final = b'","Timestamp":"'


class RecentImpulses:
    """Remembers connection and id of the impulses that this process published recently.

    Args:
        limit: maximum number of impulses.
        clock: monotonic seconds.
    """

    def __init__(self, limit: int = MAX_REMEMBERED, clock: Clock = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._until: OrderedDict[tuple[str, bytes], float] = OrderedDict()

    def has(self, group: str, text: bytes) -> bool:
        """Return whether an impulse with the same id was published recently.

        Args:
            group: connection of the impulse.
            text: the impulse as JSON text.
        """
        key = (group, _id_prefix(text))
        until = self._until.get(key)
        if until is None or self._clock() < until:
            return until is not None
        del self._until[key]
        return False

    def remember(self, group: str, text: bytes) -> None:
        """Remember an impulse; an impulse without an id is ignored."""
        prefix = _id_prefix(text)
        if not prefix:
            return
        key = (group, prefix)
        self._until[key] = self._clock() + REMEMBERED_SECONDS
        if len(self._until) > self._limit:
            self._until.popitem(last=False)


def _id_prefix(text: bytes) -> bytes:
    """Return the start of an impulse up to its id; quotation marks in the id are escaped.

    Parsing the whole text as JSON would cost as much as publishing it.
    """
    return text[: max(0, text.find(_AFTER_ID))]


FRESH_FOR = timedelta(minutes=1)
"""Older impulses, delayed by an outage of the host or the service, are no longer live data."""

ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.1
CONCURRENT_CONNECTIONS = 16
"""Connections that are served concurrently; messages of one connection are sent one after another."""

HEAVY_LOAD_PER_SECOND = 2_000
"""Impulses per second of one partition above which ingestion needs the whole processor."""

PAUSE_FROM, PAUSE_UNTIL = timedelta(seconds=1), timedelta(seconds=20)
PAUSE_AFTER_MESSAGES, PAUSE_FACTOR = 10, 4
"""Busy ingestion on the same processor has priority. If publishing is behind by a time in this range, it pauses after
every ``PAUSE_AFTER_MESSAGES`` messages for ``PAUSE_FACTOR`` times their duration. Beyond the range impulses would
become stale."""

_INSTANT_SECONDS = 0.02
_LOGGER = get_logger("live")


@dataclass(slots=True)
class Counters:
    """Numbers of impulses by outcome since the process started.

    Attributes:
        published: sent to the message service.
        unheard: not sent, because the group has no listeners.
        stale: not sent, because they are older than a minute.
        refused: rejected by the message service.
        repeated: not sent, because their id was sent recently.
        failures: batches that could not be sent completely.
    """

    published: int = 0
    unheard: int = 0
    stale: int = 0
    refused: int = 0
    repeated: int = 0
    failures: int = 0


class LivePublisher:
    """Publishes batches of the impulses hub.

    Args:
        service: message service.
        audience: knows groups without listeners; None if that is unknown.
        shares_processor: whether ingestion runs on the same processor.
        sleep: waits for a number of seconds.
    """

    def __init__(
        self,
        service: MessageService,
        audience: Audience | None,
        *,
        shares_processor: bool = False,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._service = service
        self._audience = audience
        self._shares_processor = shares_processor
        self._sleep = sleep
        self._limit = asyncio.Semaphore(CONCURRENT_CONNECTIONS)
        self._done: dict[str, set[int]] = {}
        self._repeats = RecentImpulses()
        self.counters = Counters()

    async def run(self, events: Sequence[HubEvent], at: datetime | None = None) -> None:
        """Publish a batch; a retry after a failure skips the impulses that were already published.

        Args:
            events: events of one partition in ascending order; body: impulse as JSON text, partition key: connection.
            at: current instant.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE`` if part of the batch was not published.
        """
        if not events:
            return
        partition = events[0].partition
        done = self._done.setdefault(partition, set())
        done &= {event.sequence_number for event in events}
        at = at or now()
        unpublished = self._group_unpublished(events, done, at)
        behind = at - events[0].enqueued_at
        pauses = self._shares_processor and PAUSE_FROM < behind < PAUSE_UNTIL and _is_heavy_load(events)
        tasks = [self._publish_all(group, batch, done, pauses=pauses) for group, batch in unpublished.items()]
        failed = [error for error in await asyncio.gather(*tasks, return_exceptions=True) if error is not None]
        if failed:
            self._record_failure(partition, len(events), failed[0])
            raise failed[0]
        done.clear()

    def _group_unpublished(self, events: Sequence[HubEvent], done: set[int], at: datetime) -> dict[str, list[HubEvent]]:
        oldest = at - FRESH_FOR
        unpublished: dict[str, list[HubEvent]] = {}
        stale = 0
        for event in events:
            if event.enqueued_at < oldest:
                stale += 1
            elif event.partition_key not in ("", UNROUTED) and event.sequence_number not in done:
                unpublished.setdefault(event.partition_key, []).append(event)
        if stale:
            self.counters.stale += stale
            _LOGGER.info("stale impulses are not published", extra=fields(count=stale))
        return unpublished

    async def _publish_all(self, group: str, events: list[HubEvent], done: set[int], *, pauses: bool) -> None:
        async with self._limit:
            if not await self._can_have_listeners(group):
                self.counters.unheard += len(events)
                done.update(event.sequence_number for event in events)
                return
            began = time.monotonic()
            for count, event in enumerate(events, 1):
                await self._publish_once(group, event)
                done.add(event.sequence_number)
                if pauses and count % PAUSE_AFTER_MESSAGES == 0:
                    await self._sleep(PAUSE_FACTOR * (time.monotonic() - began))
                    began = time.monotonic()

    async def _can_have_listeners(self, group: str) -> bool:
        """Return whether a group may have listeners; True in doubt."""
        try:
            return self._audience is None or await self._audience.can_have_listeners(group)
        except WorkspaceError:
            return True

    async def _publish_once(self, group: str, event: HubEvent) -> None:
        """Publish an impulse unless its id was published recently; failed impulses are not remembered."""
        if self._repeats.has(group, event.body):
            self.counters.repeated += 1
            return
        await self._publish(group, event)
        self._repeats.remember(group, event.body)

    async def _publish(self, group: str, event: HubEvent) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._service.publish(group, event.body)
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
            await self._sleep(FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1))  # noqa: S311  no secret

    def _record_failure(self, partition: str, events: int, error: BaseException) -> None:
        self.counters.failures += 1
        _LOGGER.warning(
            "cannot publish impulses to the live stream",
            extra=fields(
                partition=partition, events=events, failures=self.counters.failures, reason=type(error).__name__
            ),
        )


def _is_heavy_load(events: Sequence[HubEvent]) -> bool:
    took = max((events[-1].enqueued_at - events[0].enqueued_at).total_seconds(), _INSTANT_SECONDS)
    return len(events) > HEAVY_LOAD_PER_SECOND * took
