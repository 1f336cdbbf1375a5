"""What one client still has to be sent: bounded, and never waited for by who sends."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

MAX_MESSAGES = 10_000
MAX_BYTES = 4 * 1024 * 1024
"""What a client may be behind by before it is given up."""

_CHECK_SOCKET_BYTES = MAX_BYTES // 2
"""Up to here it need not be asked what the socket still holds, which is a high-water mark and a message at most."""

_CHUNK_BYTES = 64 * 1024
_COALESCE_SECONDS = 0.05
"""How long little that was put soon after a write waits for more: writing is what costs most."""


class ClientSocket(Protocol):
    """The socket of a client."""

    def has_room(self) -> bool:
        """Return whether more may be written for now."""
        ...

    def write(self, data: bytes) -> None:
        """Write whole frames."""
        ...

    def buffered_bytes(self) -> int:
        """Return how many bytes were written and not yet taken by the network."""
        ...

    def call_on_room(self, call: Callable[[], None]) -> None:
        """Have a function called each time there is room again, and when the socket is lost."""
        ...

    def end(self, code: int, reason: str) -> None:
        """Close with a code; nothing can be written afterwards, and doing it twice does nothing."""
        ...


class Outbox:
    """The queue of frames of one client.

    A frame after a pause leaves at once; frames that come in quick succession leave together. What the socket
    does not take waits here, up to a bound.
    """

    def __init__(self, wire: ClientSocket, on_overflow: Callable[[], None]) -> None:
        """Take the socket, and what to call when the client is too far behind."""
        self._wire = wire
        self._on_overflow = on_overflow
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._scheduled: asyncio.Handle | None = None
        self._flush_is_immediate = False
        self._flushed_at = 0.0
        self._closed = False
        self._waiters: list[asyncio.Future[None]] = []
        wire.call_on_room(self._flush)

    def put(self, frame: bytes) -> None:
        """Send a frame after those before it; a client that falls too far behind by it is given up."""
        if self._closed:
            return
        self._frames.append(frame)
        self._bytes += len(frame)
        if len(self._frames) > MAX_MESSAGES or (
            self._bytes > _CHECK_SOCKET_BYTES and self._bytes + self._wire.buffered_bytes() > MAX_BYTES
        ):
            self.discard()
            self._on_overflow()
        elif self._scheduled is None or (not self._flush_is_immediate and self._bytes >= _CHUNK_BYTES):
            self._schedule()

    async def put_when_drained(self, frame: bytes) -> bool:
        """Send a frame once the client took everything before it; return False when the client is gone."""
        while not self._closed and (self._frames or not self._wire.has_room()):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        self.put(frame)
        return not self._closed

    def flush(self) -> None:
        """Write what the socket takes at once, for what is said before an end."""
        self._flush()

    def discard(self) -> None:
        """Forget what was not yet written, and take nothing more."""
        self._closed = True
        self._frames.clear()
        self._bytes = 0
        self._wake_waiters()

    def _schedule(self) -> None:
        """Have the queue written: at once after a pause or where it is long, else together with what comes next."""
        loop = asyncio.get_running_loop()
        left = self._flushed_at + _COALESCE_SECONDS - loop.time()
        soon = left <= 0 or self._bytes >= _CHUNK_BYTES
        if self._scheduled is None or (soon and not self._flush_is_immediate):
            if self._scheduled is not None:
                self._scheduled.cancel()
            self._flush_is_immediate = soon
            self._scheduled = loop.call_soon(self._flush) if soon else loop.call_later(left, self._flush)

    def _flush(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
            self._flushed_at = asyncio.get_running_loop().time()
        while self._frames and self._wire.has_room():
            self._wire.write(self._chunk())
        if not self._frames and self._wire.has_room():
            self._wake_waiters()

    def _chunk(self) -> bytes:
        """Take frames off the queue: those that fit into one write, at least one."""
        chunk = [self._frames.popleft()]
        size = len(chunk[0])
        while self._frames and size + len(self._frames[0]) <= _CHUNK_BYTES:
            chunk.append(self._frames.popleft())
            size += len(chunk[-1])
        self._bytes -= size
        return b"".join(chunk) if len(chunk) > 1 else chunk[0]

    def _wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
