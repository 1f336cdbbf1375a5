"""Load generator that sends requests at a fixed rate, whether or not the service replies in time.

The response time of a request begins when the request is due. A generator that waited for each reply would slow down
together with the service, and never overload it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast
from urllib.parse import urlsplit

import uvloop

TICK_SECONDS = 0.002
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """Status and response time of one request of the load generator.

    Attributes:
        due: time at which the request was due, in seconds of ``time.perf_counter``.
        seconds: time from ``due`` to the end of the reply.
        status: HTTP status of the reply; 0 if there was no reply.
        retry_after: True if the reply has a Retry-After header.
        late: seconds by which the load generator itself was late; they are part of ``seconds``.
    """

    due: float
    seconds: float
    status: int
    retry_after: bool
    late: float = 0.0

    @property
    def is_accepted(self) -> bool:
        """True if the reply has a 2xx status."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


def build_raw_request(
    method: str, path: str, token: str = "", body: bytes = b"", headers: Mapping[str, str] | None = None
) -> bytes:
    """Return an HTTP/1.1 request as bytes; the load generator builds all requests before the measurement."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    lines += [f"Content-Length: {len(body)}"] if body else []
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def send_at_rate(
    url: str, requests: Sequence[bytes], requests_per_second: float, duration_seconds: float, *, connections: int = 900
) -> list[RequestOutcome]:
    """Send the requests at a fixed rate, again and again; return their outcomes in the order of the replies.

    Args:
        url: address of the service.
        requests: requests as HTTP/1.1 bytes; after the last, the first is sent again.
        requests_per_second: number of requests per second.
        duration_seconds: duration of the load.
        connections: maximum number of open connections; waiting for a free connection counts as response time.
    """
    return uvloop.run(_send_at_rate(ConnectionPool(url, connections), requests, requests_per_second, duration_seconds))


def measure_accepted_requests_per_second(
    url: str, requests: Sequence[bytes], duration_seconds: float, *, caller_count: int = 16
) -> float:
    """Return the accepted requests per second of ``caller_count`` callers; each caller waits for its previous reply."""
    outcomes = uvloop.run(
        _send_with_concurrent_callers(ConnectionPool(url, caller_count), requests, duration_seconds, caller_count)
    )
    return sum(outcome.is_accepted for outcome in outcomes) / duration_seconds


class ConnectionPool:
    """Pool of HTTP connections with a queue of requests that wait for a free connection.

    Args:
        url: address of the service.
        connections: maximum number of open connections.
    """

    def __init__(self, url: str, connections: int) -> None:
        address = urlsplit(url)
        self._address = (address.hostname or "", address.port or 80)
        self._max_connections = connections
        self._open = 0
        self._free: list[_Connection] = []
        self._connections: set[_Connection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[float, float, bytes]] = deque()
        self.sent = 0
        self.outcomes: list[RequestOutcome] = []

    def queue_request(self, request: bytes, due_at: float) -> None:
        """Add a request to the queue.

        It is sent as soon as a connection is free, and its response time counts from ``due_at``.
        """
        self.sent += 1
        self._waiting.append((due_at, time.perf_counter() - due_at, request))
        self._dispatch_requests()

    async def wait_for_replies(self) -> list[RequestOutcome]:
        """Wait for all replies and return the outcomes; a request without a reply in time has the status 0."""
        deadline = time.perf_counter() + PATIENCE_SECONDS
        while len(self.outcomes) < self.sent and time.perf_counter() < deadline:  # noqa: ASYNC110  polled, not signalled
            await asyncio.sleep(TICK_SECONDS)
        await self._close_connections()
        self.outcomes += [RequestOutcome(time.perf_counter(), PATIENCE_SECONDS, 0, retry_after=False)] * (
            self.sent - len(self.outcomes)
        )
        return self.outcomes

    def record_outcome(self, connection: "_Connection", outcome: RequestOutcome, *, is_alive: bool) -> None:
        """Record the outcome of a request; use its connection for further requests if it is still alive."""
        self.outcomes.append(outcome)
        if is_alive:
            self._free.append(connection)
        else:
            self._open -= 1
        self._dispatch_requests()

    def remove_connection(self, connection: "_Connection") -> None:
        """Remove a closed connection from the pool."""
        self._connections.discard(connection)
        if connection in self._free:
            self._free.remove(connection)
            self._open -= 1

    def _dispatch_requests(self) -> None:
        while self._waiting and self._free:
            self._free.pop().send_request(*self._waiting.popleft())
        while len(self._waiting) > len(self._opening) and self._open < self._max_connections:
            self._open += 1
            task = asyncio.ensure_future(self._open_connection())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open_connection(self) -> None:
        try:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(lambda: _Connection(self), *self._address)
        except OSError:
            self._open -= 1
            if self._waiting:
                due, late, _ = self._waiting.popleft()
                self.outcomes.append(RequestOutcome(due, time.perf_counter() - due, 0, retry_after=False, late=late))
            return
        self._connections.add(connection)
        self._free.append(connection)
        self._dispatch_requests()

    async def _close_connections(self) -> None:
        for connection in self._connections.copy():
            connection.close()
        while self._connections:  # noqa: ASYNC110  as above
            await asyncio.sleep(TICK_SECONDS)


class _Connection(asyncio.Protocol):
    """HTTP/1.1 connection that supports only replies with a Content-Length, which keeps the load generator fast."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._due: float | None = None
        self._late = 0.0
        self._read = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send_request(self, due_at: float, late_seconds: float, request: bytes) -> None:
        self._due, self._late = due_at, late_seconds
        if self._transport is not None:
            self._transport.write(request)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, _ = bytes(self._read).partition(b"\r\n\r\n")
        if not found:
            return
        fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
        if len(self._read) - len(head) - len(found) >= int(fields.get(b"content-length", b"0")):
            self._read.clear()
            closes = fields.get(b"connection") == b"close"
            self._end_request(int(head[9:12]), retry_after=b"retry-after" in fields, is_alive=not closes)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        if self._due is not None:
            self._end_request(0, retry_after=False, is_alive=False)
        self._pool.remove_connection(self)

    def _end_request(self, status: int, *, retry_after: bool, is_alive: bool) -> None:
        if self._due is None:
            return
        due, self._due = self._due, None
        if not is_alive and self._transport is not None:
            self._transport.close()
        self._pool.record_outcome(
            self, RequestOutcome(due, time.perf_counter() - due, status, retry_after, self._late), is_alive=is_alive
        )


async def _send_at_rate(
    pool: ConnectionPool, requests: Sequence[bytes], requests_per_second: float, duration_seconds: float
) -> list[RequestOutcome]:
    started = time.perf_counter()
    for number in range(int(requests_per_second * duration_seconds)):
        due = started + number / requests_per_second
        if due > time.perf_counter():
            await asyncio.sleep(max(TICK_SECONDS, due - time.perf_counter()))
        pool.queue_request(requests[number % len(requests)], due)
    return await pool.wait_for_replies()


async def _send_with_concurrent_callers(
    pool: ConnectionPool, requests: Sequence[bytes], duration_seconds: float, caller_count: int
) -> list[RequestOutcome]:
    ends_at = time.perf_counter() + duration_seconds
    while time.perf_counter() < ends_at:
        while pool.sent - len(pool.outcomes) < caller_count:
            pool.queue_request(requests[pool.sent % len(requests)], time.perf_counter())
        await asyncio.sleep(TICK_SECONDS)
    return await pool.wait_for_replies()
