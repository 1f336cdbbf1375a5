"""Which impulses were handed on a short while ago, so that a message that is sent again is not heard again."""

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

REMEMBERED: Final = 50_000
"""Impulses of all connections together; about ten megabytes."""

KNOWN_SECONDS: Final = 600.0
"""Whoever sends again after a time-out does so sooner; far below the day after which the table takes an ID anew."""

_AFTER_ID: Final = b'","Timestamp":"'


class RecentImpulses:
    """Remembers connection and ID of the impulses that this process handed on last.

    Args:
        most: how many.
        clock: monotonic seconds.
    """

    def __init__(self, most: int = REMEMBERED, clock: Clock = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._until: OrderedDict[tuple[str, bytes], float] = OrderedDict()

    def has(self, group: str, text: bytes) -> bool:
        """Return whether an impulse with the ID of this one was noted a short while ago.

        Args:
            group: its connection.
            text: the impulse as JSON text.
        """
        key = (group, _named(text))
        until = self._until.get(key)
        if until is None or self._clock() < until:
            return until is not None
        del self._until[key]
        return False

    def note(self, group: str, text: bytes) -> None:
        """Remember an impulse; one whose ID is not found is not remembered."""
        named = _named(text)
        if not named:
            return
        key = (group, named)
        self._until[key] = self._clock() + KNOWN_SECONDS
        if len(self._until) > self._most:
            self._until.popitem(last=False)


def _named(text: bytes) -> bytes:
    """Return the impulse's begin, which is its ID; within the ID every quotation mark is escaped.

    Reading the whole text as JSON would cost as much as handing it on.
    """
    return text[: max(0, text.find(_AFTER_ID))]


FRESH_FOR = timedelta(minutes=1)
"""What waited longer, because this host was down or the service was, is no live data any more."""

ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.1
AT_ONCE = 16
"""Connections that are served at a time; the messages of one go one after the other."""

HEAVY = 2_000
"""Impulses a second of one partition from which on ingestion is busy enough to need the processor for itself."""

RESTS_FROM, RESTS_UNTIL = timedelta(seconds=1), timedelta(seconds=20)
REST_AFTER, REST_TIMES = 10, 4
"""Where ingestion shares the processor and is busy it goes first: who is so far behind rests so many times as long
as it works, every so many messages; further behind no more, or impulses would be lost for being stale."""

_INSTANT_SECONDS = 0.02
_LOGGER = get_logger("live")


@dataclass(slots=True)
class Counters:
    """What became of impulses since the process began.

    Attributes:
        published: handed to the service.
        unheard: not sent, since nobody listens.
        stale: not sent, since they are older than a minute.
        refused: the service will never take them.
        repeated: not sent, since their ID was sent a short while ago.
        failures: batches that could not be handed on whole.
    """

    published: int = 0
    unheard: int = 0
    stale: int = 0
    refused: int = 0
    repeated: int = 0
    failures: int = 0


class LivePublisher:
    """Publishes batches of the hub of impulses.

    Args:
        service: hands messages on.
        audience: knows where nobody listens; None where that cannot be known.
        beside_ingestion: whether ingestion runs on the same processor.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        service: MessageService,
        audience: Audience | None,
        *,
        beside_ingestion: bool = False,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._service = service
        self._audience = audience
        self._beside_ingestion = beside_ingestion
        self._sleep = sleep
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._done: dict[str, set[int]] = {}
        self._repeats = RecentImpulses()
        self.counters = Counters()

    async def run(self, events: Sequence[HubEvent], at: datetime | None = None) -> None:
        """Publish a batch; given again after a failure, what was published before is left out.

        Args:
            events: of one partition, ascending; each an impulse as JSON text, its partition key the connection.
            at: now.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``: part of the batch is not published.
        """
        if not events:
            return
        partition = events[0].partition
        done = self._done.setdefault(partition, set())
        done &= {event.sequence_number for event in events}
        at = at or now()
        waiting = self._waiting(events, done, at)
        behind = at - events[0].enqueued_at
        rests = self._beside_ingestion and RESTS_FROM < behind < RESTS_UNTIL and _came_fast(events)
        tasks = [self._publish_all(group, batch, done, rests=rests) for group, batch in waiting.items()]
        failed = [error for error in await asyncio.gather(*tasks, return_exceptions=True) if error is not None]
        if failed:
            self._report(partition, len(events), failed[0])
            raise failed[0]
        done.clear()

    def _waiting(self, events: Sequence[HubEvent], done: set[int], at: datetime) -> dict[str, list[HubEvent]]:
        oldest = at - FRESH_FOR
        waiting: dict[str, list[HubEvent]] = {}
        stale = 0
        for event in events:
            if event.enqueued_at < oldest:
                stale += 1
            elif event.partition_key not in ("", UNROUTED) and event.sequence_number not in done:
                waiting.setdefault(event.partition_key, []).append(event)
        if stale:
            self.counters.stale += stale
            _LOGGER.info("impulses too old for the live stream are left out", extra=fields(count=stale))
        return waiting

    async def _publish_all(self, group: str, events: list[HubEvent], done: set[int], *, rests: bool) -> None:
        async with self._limit:
            if not await self._heard(group):
                self.counters.unheard += len(events)
                done.update(event.sequence_number for event in events)
                return
            began = time.monotonic()
            for count, event in enumerate(events, 1):
                await self._publish_once(group, event)
                done.add(event.sequence_number)
                if rests and count % REST_AFTER == 0:
                    await self._sleep(REST_TIMES * (time.monotonic() - began))
                    began = time.monotonic()

    async def _heard(self, group: str) -> bool:
        """Return whether somebody may listen; in doubt yes, since sending says for itself when the service is down."""
        try:
            return self._audience is None or await self._audience.can_have_listeners(group)
        except WorkspaceError:
            return True

    async def _publish_once(self, group: str, event: HubEvent) -> None:
        """Publish an impulse, unless its ID was heard a short while ago; what could not be published is not noted."""
        if self._repeats.has(group, event.body):
            self.counters.repeated += 1
            return
        await self._publish(group, event)
        self._repeats.note(group, event.body)

    async def _publish(self, group: str, event: HubEvent) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._service.publish(group, event.body)
            except WorkspaceError as error:
                if error.kind is not Kind.UNAVAILABLE:
                    self.counters.refused += 1
                    _LOGGER.warning("the service refuses a message", extra=fields(group=group, code=error.code))
                    return
                if attempt == ATTEMPTS:
                    raise
            else:
                self.counters.published += 1
                return
            await self._sleep(FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1))  # noqa: S311  no secret

    def _report(self, partition: str, events: int, error: BaseException) -> None:
        self.counters.failures += 1
        _LOGGER.warning(
            "impulses could not be handed to the live stream",
            extra=fields(
                partition=partition, events=events, failures=self.counters.failures, reason=type(error).__name__
            ),
        )


def _came_fast(events: Sequence[HubEvent]) -> bool:
    took = max((events[-1].enqueued_at - events[0].enqueued_at).total_seconds(), _INSTANT_SECONDS)
    return len(events) > HEAVY * took
