"""Replay before a live stream, joined without gaps or repeats."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from shared.live_stream.history import History, Key
from shared.telemetry.json_text import parse

REMEMBERED = 200_000
"""Number of replayed impulses whose repeats are recognised; far more than arrive while live data are fresh."""


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
