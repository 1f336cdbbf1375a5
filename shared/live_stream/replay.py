"""What was, then what is: a replay joined to a running stream without a gap and without a repeat."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from shared.live_stream.history import History, Key
from shared.telemetry.json_text import parse

REMEMBERED = 200_000
"""Impulses last replayed whose repeats are known: far more than come in while live data are still fresh."""


class IngestionProgress(Protocol):
    """How far the readers of the hub of impulses are."""

    async def wait_for_table(self) -> None:
        """Return once the table holds everything that reached the hub before the call."""
        ...

    async def wait_for_live(self) -> None:
        """Return once everything that reached the hub before the call was handed to the streams."""
        ...


class Stream(Protocol):
    """A listener's stream, which is in its groups already."""

    def hold(self) -> None:
        """Keep live messages back from now on, and forget those kept back so far."""
        ...

    def has_overflowed(self) -> bool:
        """Return whether more came since ``hold`` than is kept back; some are lost then."""
        ...

    async def send(self, texts: Sequence[bytes]) -> bool:
        """Send messages at the listener's own pace; return whether it is still there."""
        ...

    async def release(self, repeated: Callable[[bytes], bool]) -> None:
        """Send what was kept back, except what is repeated, and hold nothing back any more."""
        ...


class Replay:
    """Replays impulses before a stream goes on live.

    Live messages are held back, then the table is read once it holds all that came before: what it misses is among
    those held back, and what both have is told by connection and ID. What the table had first is waited for, so that
    it does not come once more when nothing is held back any longer. Where more is held back than there is room for,
    it is dropped, and the table read again from the oldest impulse that is remembered, a shorter way each time.

    Args:
        history: reads the table.
        progress: of table and live stream.
        remembered: how many impulses are known again.
    """

    def __init__(self, history: History, progress: IngestionProgress, remembered: int = REMEMBERED) -> None:
        self._history = history
        self._progress = progress
        self._remembered = remembered

    async def run(self, stream: Stream, connections: Sequence[str], since: datetime) -> None:
        """Replay and release a stream whose messages are held back.

        Args:
            stream: to send to.
            connections: that it listens to.
            since: where the replay begins.

        Raises:
            WorkspaceError: what the query engine raises; the stream is not released then.
        """
        seen = SentImpulses(self._remembered)
        begins_at = since
        while True:
            stream.hold()
            await self._progress.wait_for_table()
            async for page in self._history.read_pages(connections, begins_at):
                fresh = [past.text for past in page if seen.is_new(past.key, past.timestamp)]
                if fresh and not await stream.send(fresh):
                    return
            await self._progress.wait_for_live()
            if not stream.has_overflowed():
                break
            begins_at = max(since, seen.oldest(since))
        await stream.release(seen.contains)


class SentImpulses:
    """The impulses sent last.

    Args:
        most: how many are remembered.

    Attributes:
        count: of all that were new.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._forgot = False
        self.count = 0
        self._sent: OrderedDict[Key, datetime] = OrderedDict()

    def is_new(self, key: Key, timestamp: datetime) -> bool:
        """Return whether an impulse was not sent yet, and remember it."""
        if key in self._sent:
            return False
        self._sent[key] = timestamp
        self.count += 1
        if len(self._sent) > self._most:
            self._sent.popitem(last=False)
            self._forgot = True
        return True

    def contains(self, text: bytes) -> bool:
        """Return whether an impulse as JSON text was sent."""
        impulse = parse(text)
        return (impulse["Metadata"]["ConnectionLookup"], impulse["ID"]) in self._sent

    def oldest(self, since: datetime) -> datetime:
        """Return from where on every impulse sent is still remembered."""
        return next(iter(self._sent.values())) if self._forgot else since
