"""Replays to a stream that is live already: where live messages cannot be held back, the same ID marks a repeat."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

from shared.errors import Kind, WorkspaceError
from shared.live_stream.filters import StreamFilters
from shared.live_stream.history import History
from shared.live_stream.ports import Sleep, StreamSender
from shared.live_stream.publishing import ATTEMPTS, FIRST_PAUSE_SECONDS
from shared.live_stream.replay import REMEMBERED, SentImpulses
from shared.observability.logs import fields, get_logger
from shared.telemetry.ports import CurrentCatalog
from shared.timestamps import now

LAG_SECONDS = 15.0
"""How long the table takes at most, as a rule, to hold what the live stream handed out already."""

TAIL = timedelta(minutes=10)
"""What was measured so long before the stream opened is looked for once more when that time is over."""

SKEW = timedelta(seconds=5)
"""Clocks of devices may be ahead of ours by this without a gap."""

MOST_SECONDS = 200.0
MOST_IMPULSES = 50_000
AT_ONCE = 8
"""Replays of one instance at a time; each sends one message after the other, at the pace of the service's answers."""

MOST_WAITING = 32
LOOKED_FOR_EVERY = 500
"""After so many messages it is asked whether the stream is still there."""

_LOGGER = get_logger("live")


class CatchUp:
    """Replays the telemetry table to streams.

    The stream joined its groups before. Whatever reached the table until then is replayed at once; what was handed out
    live just before, and reaches the table only now, is replayed when the table had time to take it in.

    Args:
        catalog: the workspace.
        history: reads the table.
        service: sends to one stream.
        sleep: waits so many seconds.
        seconds: after which a replay is given up.
        most: impulses that a replay sends.
    """

    def __init__(
        self,
        catalog: CurrentCatalog,
        history: History,
        service: StreamSender,
        *,
        sleep: Sleep = asyncio.sleep,
        seconds: float = MOST_SECONDS,
        most: int = MOST_IMPULSES,
    ) -> None:
        self._catalog = catalog
        self._history = history
        self._service = service
        self._sleep = sleep
        self._seconds = seconds
        self._most = most
        self._waiting = 0
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def run(self, connection_id: str, filters: StreamFilters) -> None:
        """Replay what a stream asked for when it opened; one whose replay fails is closed, and says why.

        Args:
            connection_id: the message service's own.
            filters: as they were given, ``since`` an instant.

        Raises:
            WorkspaceError: UNAVAILABLE: the message service does not even close the stream.
        """
        if filters.since is None or not connection_id:
            return
        failure = await self._failure(connection_id, filters, filters.since)
        if failure:
            _LOGGER.warning("a replay is given up", extra=fields(reason=failure))
            await self._service.disconnect(connection_id, failure)

    async def _failure(self, connection_id: str, filters: StreamFilters, since: datetime) -> str:
        if self._waiting >= MOST_WAITING:
            return "Too many replays at once; try again."
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds), self._turn:
                await self._replay(connection_id, filters, since)
        except TimeoutError:
            return "The replay takes too long; ask for a shorter one."
        except OverflowError:
            return f"The replay is longer than {self._most} impulses; ask for a shorter one."
        except WorkspaceError as error:
            return f"The replay failed: {error.code}."
        except Exception:
            # Whoever waits for a replay that has ended would wait for good.
            _LOGGER.exception("a replay failed")
            return "The replay failed."
        finally:
            self._waiting -= 1
        return ""

    async def _replay(self, connection_id: str, filters: StreamFilters, since: datetime) -> None:
        opened = now()
        connections = filters.connections(await self._catalog())
        seen = SentImpulses(REMEMBERED)
        fresh = self._fresh(connections, since, opened, seen)
        if await self._sent_all(connection_id, fresh):
            await self._sleep(LAG_SECONDS)
            fresh = self._fresh(connections, max(since, opened - TAIL), opened + SKEW, seen)
            await self._sent_all(connection_id, fresh)

    async def _fresh(
        self, connections: Sequence[str], since: datetime, until: datetime, seen: SentImpulses
    ) -> AsyncIterator[bytes]:
        async for page in self._history.read_pages(connections, since, until):
            for past in page:
                if seen.is_new(past.key, past.timestamp):
                    if seen.count > self._most:
                        raise OverflowError
                    yield past.text

    async def _sent_all(self, connection_id: str, texts: AsyncIterator[bytes]) -> bool:
        """Send messages one after the other; return whether the stream was still there when it was last looked for."""
        count = 0
        async for text in texts:
            if count % LOOKED_FOR_EVERY == 0 and not await self._service.is_open(connection_id):
                return False
            await self._send(connection_id, text)
            count += 1
        return True

    async def _send(self, connection_id: str, text: bytes) -> None:
        """Send one message; what the service will never take is left out, what it cannot take now is tried again."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._service.send(connection_id, text)
            except WorkspaceError as error:
                if error.kind is not Kind.UNAVAILABLE:
                    _LOGGER.warning("the service refuses a message", extra=fields(code=error.code))
                    return
                if attempt == ATTEMPTS:
                    raise
            else:
                return
            await self._sleep(FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1))  # noqa: S311  no secret
