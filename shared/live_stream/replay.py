"""Replay of earlier impulses to a live stream, without gaps.

``Replay`` joins history and live stream without repeats, because it can hold the stream; the local host uses it.
``CatchUp`` replays to a stream that is already live, as on Azure; a repeated impulse has the same id.
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from shared.errors import Kind, WorkspaceError
from shared.live_stream.filters import StreamFilters
from shared.live_stream.history import History, Key
from shared.live_stream.ports import Sleep, StreamSender
from shared.live_stream.publishing import ATTEMPTS, FIRST_PAUSE_SECONDS
from shared.observability.logs import fields, get_logger
from shared.telemetry.json_text import parse
from shared.telemetry.ports import CurrentCatalog
from shared.timestamps import now

REMEMBERED = 200_000
"""Number of replayed impulses whose repeats are recognised; far more than arrive while live data are fresh."""
LAG_SECONDS = 15.0
"""Usual maximum delay between the live stream and the query table."""

REREAD_TIME = timedelta(minutes=10)
"""Impulses measured this long before the stream opened are read a second time after the lag."""

SKEW = timedelta(seconds=5)
"""Tolerated clock difference of devices."""

MAX_SECONDS = 200.0
MAX_IMPULSES = 50_000
CONCURRENT_REPLAYS = 8
"""Concurrent replays of one instance; each sends its messages one after another."""

MAX_WAITING = 32
MESSAGES_PER_CHECK = 500
"""Number of messages between two checks that the stream is still open."""

_LOGGER = get_logger("live")


class IngestionProgress(Protocol):
    """Progress of the consumers of the impulses hub."""

    async def wait_for_table(self) -> None:
        """Return when the table contains everything that reached the hub before the call."""
        ...

    async def wait_for_live(self) -> None:
        """Return when everything that reached the hub before the call was sent to the streams."""
        ...


class Stream(Protocol):
    """A listener's stream that has already joined its groups."""

    def hold(self) -> None:
        """Start to buffer live messages; discard the current buffer."""
        ...

    def has_overflowed(self) -> bool:
        """Return whether the buffer overflowed since ``hold`` and messages were lost."""
        ...

    async def send(self, texts: Sequence[bytes]) -> bool:
        """Send messages at the listener's pace; return whether the stream is still open."""
        ...

    async def release(self, repeated: Callable[[bytes], bool]) -> None:
        """Send the buffered messages except repeats, and stop buffering."""
        ...


class Replay:
    """Replays impulses before a stream goes live.

    Live messages are buffered. The table is read when it contains everything that came before. Impulses missing in the
    table are in the buffer; impulses in both are recognised by connection and id. The replay waits until the live
    stream has sent the impulses of the table, so that they are not sent again after the buffer is released. If the
    buffer overflows, it is discarded and the table is read again from the oldest_remembered remembered impulse.

    Args:
        history: reads the table.
        progress: progress of table and live stream.
        remembered: number of impulses that are remembered.
    """

    def __init__(self, history: History, progress: IngestionProgress, remembered: int = REMEMBERED) -> None:
        self._history = history
        self._progress = progress
        self._remembered = remembered

    async def run(self, stream: Stream, connections: Sequence[str], since: datetime) -> None:
        """Replay impulses to a buffering stream and release it.

        Args:
            stream: target of the replay.
            connections: connections of the stream.
            since: start of the replay.

        Raises:
            WorkspaceError: any error of the query engine; the stream is not released.
        """
        seen = SentImpulses(self._remembered)
        replay_from = since
        while True:
            stream.hold()
            await self._progress.wait_for_table()
            async for page in self._history.read_pages(connections, replay_from):
                new_impulses = [impulse.text for impulse in page if seen.is_new(impulse.key, impulse.timestamp)]
                if new_impulses and not await stream.send(new_impulses):
                    return
            await self._progress.wait_for_live()
            if not stream.has_overflowed():
                break
            replay_from = max(since, seen.find_oldest_remembered(since))
        await stream.release(seen.contains)


class SentImpulses:
    """The limit recently sent impulses.

    Args:
        limit: maximum number of remembered impulses.

    Attributes:
        count: number of all new impulses.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._has_evicted = False
        self.count = 0
        self._sent: OrderedDict[Key, datetime] = OrderedDict()

    def is_new(self, key: Key, timestamp: datetime) -> bool:
        """Remember an impulse; return whether it is new."""
        if key in self._sent:
            return False
        self._sent[key] = timestamp
        self.count += 1
        if len(self._sent) > self._limit:
            self._sent.popitem(last=False)
            self._has_evicted = True
        return True

    def contains(self, text: bytes) -> bool:
        """Return whether an impulse, given as JSON text, was sent."""
        impulse = parse(text)
        return (impulse["Metadata"]["ConnectionLookup"], impulse["ID"]) in self._sent

    def find_oldest_remembered(self, since: datetime) -> datetime:
        """Return the instant from which all sent impulses are remembered."""
        return next(iter(self._sent.values())) if self._has_evicted else since


class CatchUp:
    """Replays impulses from the query table to streams.

    The stream has already joined its groups. Impulses in the table are replayed immediately. Impulses that were
    published shortly before the stream opened may reach the table later; they are replayed after the lag of the table.

    Args:
        catalog: returns the current catalog.
        history: reads the query table.
        service: sends messages to one stream.
        sleep: waits for a number of seconds.
        seconds: maximum duration of a replay.
        most: maximum number of impulses of a replay.
    """

    def __init__(
        self,
        catalog: CurrentCatalog,
        history: History,
        service: StreamSender,
        *,
        sleep: Sleep = asyncio.sleep,
        seconds: float = MAX_SECONDS,
        most: int = MAX_IMPULSES,
    ) -> None:
        self._catalog = catalog
        self._history = history
        self._service = service
        self._sleep = sleep
        self._seconds = seconds
        self._most = most
        self._waiting = 0
        self._turn = asyncio.Semaphore(CONCURRENT_REPLAYS)

    async def run(self, connection_id: str, filters: StreamFilters) -> None:
        """Replay the impulses that a stream requested; close the stream with a reason if the replay fails.

        Args:
            connection_id: id of the stream at the message service.
            filters: filters of the stream; ``since`` is an instant.

        Raises:
            WorkspaceError: UNAVAILABLE if the message service cannot close the stream.
        """
        if filters.since is None or not connection_id:
            return
        failure = await self._try_replay(connection_id, filters, filters.since)
        if failure:
            _LOGGER.warning("replay failed; the stream is closed", extra=fields(reason=failure))
            await self._service.disconnect(connection_id, failure)

    async def _try_replay(self, connection_id: str, filters: StreamFilters, since: datetime) -> str:
        if self._waiting >= MAX_WAITING:
            return "Too many concurrent replays; try again."
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds), self._turn:
                await self._replay(connection_id, filters, since)
        except TimeoutError:
            return "The replay takes too long; request a shorter time range."
        except OverflowError:
            return f"The replay exceeds {self._most} impulses; request a shorter time range."
        except WorkspaceError as error:
            return f"The replay failed: {error.code}."
        except Exception:
            # Catch every error: otherwise the client waits for a replay that never continues.
            _LOGGER.exception("unexpected error in a replay")
            return "The replay failed."
        finally:
            self._waiting -= 1
        return ""

    async def _replay(self, connection_id: str, filters: StreamFilters, since: datetime) -> None:
        opened_at = now()
        connections = filters.select_connections(await self._catalog())
        seen = SentImpulses(REMEMBERED)
        new_impulses = self._read_new(connections, since, opened_at, seen)
        if await self._send_all(connection_id, new_impulses):
            await self._sleep(LAG_SECONDS)
            new_impulses = self._read_new(connections, max(since, opened_at - REREAD_TIME), opened_at + SKEW, seen)
            await self._send_all(connection_id, new_impulses)

    async def _read_new(
        self, connections: Sequence[str], since: datetime, until: datetime, seen: SentImpulses
    ) -> AsyncIterator[bytes]:
        async for page in self._history.read_pages(connections, since, until):
            for impulse in page:
                if seen.is_new(impulse.key, impulse.timestamp):
                    if seen.count > self._most:
                        raise OverflowError
                    yield impulse.text

    async def _send_all(self, connection_id: str, texts: AsyncIterator[bytes]) -> bool:
        """Send messages one after another; return False if the stream closed."""
        count = 0
        async for text in texts:
            if count % MESSAGES_PER_CHECK == 0 and not await self._service.is_open(connection_id):
                return False
            await self._send(connection_id, text)
            count += 1
        return True

    async def _send(self, connection_id: str, text: bytes) -> None:
        """Send one message; retry if the service is unavailable, skip the message if it is rejected."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._service.send(connection_id, text)
            except WorkspaceError as error:
                if error.kind is not Kind.UNAVAILABLE:
                    _LOGGER.warning("the message service rejected a message", extra=fields(code=error.code))
                    return
                if attempt == ATTEMPTS:
                    raise
            else:
                return
            await self._sleep(FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1))  # noqa: S311  no secret
