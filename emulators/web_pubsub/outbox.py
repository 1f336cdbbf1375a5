"""Queue of limited size for the WebSocket frames of one client; senders wait only briefly for a slow client."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

MAX_MESSAGES = 10_000
MAX_BYTES = 4 * 1024 * 1024
"""Limits of the unsent data for a client; the connection of a client above a limit is closed."""

_HALF_BYTES = MAX_BYTES // 2
"""Number of queued bytes above which senders wait; from then on, ``MAX_BYTES`` also limits the socket's buffer."""

ROOM_SECONDS = 0.05
"""Time in which a client whose queue is half full must accept data; otherwise it counts as slow."""

MOST_ROOM_SECONDS = 0.5
_CHUNK_BYTES = 64 * 1024
_COALESCE_SECONDS = 0.05
"""Time after a write in which small frames are collected for the next write, because each write is expensive."""


class ClientSocket(Protocol):
    """Port to the socket that sends WebSocket frames to a client."""

    def can_accept_data(self) -> bool:
        """Return whether the socket accepts more data now, because its buffer is not full."""
        ...

    def write(self, data: bytes) -> None:
        """Write complete frames to the socket."""
        ...

    def count_buffered_bytes(self) -> int:
        """Return the number of bytes that were written to the socket but not sent yet."""
        ...

    def call_when_writable(self, callback: Callable[[], None]) -> None:
        """Register a function that is called when the socket accepts data again, and when the connection is lost."""
        ...

    def close_with_code(self, code: int, reason: str) -> None:
        """Close the socket with a close code and a reason; later writes and closes have no effect."""
        ...


class Outbox:
    """Queue of the frames that wait to be sent to one client.

    The first frame after a pause is written immediately; frames in quick succession are written together. Frames wait
    in the queue, up to a limit, while the buffer of the socket is full.
    """

    def __init__(self, client_socket: ClientSocket, on_overflow: Callable[[], None]) -> None:
        """Create a queue that writes to a socket; ``on_overflow`` is called when the queue exceeds a limit."""
        self._socket = client_socket
        self._on_overflow = on_overflow
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._scheduled: asyncio.Handle | None = None
        self._flush_is_immediate = False
        self._flushed_at = 0.0
        self._closed = False
        self._is_slow = False
        self._written = 0
        self._waiters: list[asyncio.Future[None]] = []
        client_socket.call_when_writable(self._write_frames)

    def put_and_check_if_wait_needed(self, frame: bytes) -> bool:
        """Queue a frame; call ``on_overflow`` if the queue exceeds a limit.

        Returns:
            True if the sender should wait with :meth:`wait_for_queue_room` before it sends more.
        """
        if self._closed:
            return False
        self._frames.append(frame)
        self._bytes += len(frame)
        if len(self._frames) > MAX_MESSAGES or (
            self._bytes > _HALF_BYTES and self._bytes + self._socket.count_buffered_bytes() > MAX_BYTES
        ):
            self.discard_and_close()
            self._on_overflow()
        elif self._scheduled is None or (not self._flush_is_immediate and self._bytes >= _CHUNK_BYTES):
            self._schedule_flush()
        return self._is_half_full() and not self._is_slow

    async def wait_for_queue_room(self) -> None:
        """Wait until the queue is less than half full, as long as the client accepts data.

        A client counts as slow if it accepts nothing for ``ROOM_SECONDS``, or if its queue is still half full after
        ``MOST_ROOM_SECONDS``. Senders do not wait for a slow client again until its queue is less than half full.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + MOST_ROOM_SECONDS
        while self._is_half_full() and not self._is_slow:
            written = self._written
            with suppress(TimeoutError):
                async with asyncio.timeout(ROOM_SECONDS):
                    await self._wait_for_write()
            has_stopped = self._written == written or loop.time() > end
            self._is_slow = has_stopped and self._is_half_full()

    async def try_put_when_drained(self, frame: bytes) -> bool:
        """Wait until all earlier frames are written, then queue a frame; return False if the client is disconnected."""
        while not self._closed and (self._frames or not self._socket.can_accept_data()):
            await self._wait_for_write()
        self.put_and_check_if_wait_needed(frame)
        return not self._closed

    def flush(self) -> None:
        """Write as many queued frames as the socket accepts now."""
        self._write_frames()

    def discard_and_close(self) -> None:
        """Drop all queued frames, and ignore all frames that are added later."""
        self._closed = True
        self._frames.clear()
        self._bytes = 0
        self._wake_waiters()

    def _is_half_full(self) -> bool:
        return not self._closed and (self._bytes > _HALF_BYTES or len(self._frames) > MAX_MESSAGES // 2)

    async def _wait_for_write(self) -> None:
        """Wait until frames were written or dropped."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _schedule_flush(self) -> None:
        """Schedule a write of the queue.

        The write is immediate if nothing was written recently or the queue is long; otherwise it follows after a short
        delay.
        """
        loop = asyncio.get_running_loop()
        delay = self._flushed_at + _COALESCE_SECONDS - loop.time()
        is_immediate = delay <= 0 or self._bytes >= _CHUNK_BYTES
        if self._scheduled is None or (is_immediate and not self._flush_is_immediate):
            if self._scheduled is not None:
                self._scheduled.cancel()
            self._flush_is_immediate = is_immediate
            self._scheduled = (
                loop.call_soon(self._write_frames) if is_immediate else loop.call_later(delay, self._write_frames)
            )

    def _write_frames(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
            self._flushed_at = asyncio.get_running_loop().time()
        while self._frames and self._socket.can_accept_data():
            self._socket.write(self._remove_frames_for_one_write())
            self._written += 1
        if self._is_half_full():
            return
        self._is_slow = False
        self._wake_waiters()

    def _remove_frames_for_one_write(self) -> bytes:
        """Remove the oldest frames that fit into one write (at least one frame) and return their joined bytes."""
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
