"""Load generator with a fixed request rate. Latencies count from the time at which each request was due.

A caller that waits for each reply slows down together with the service, and so never measures an overload.
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
    """Result of one request.

    Attributes:
        due: time at which it should be sent, seconds of ``time.perf_counter``.
        seconds: from that time to the end of its reply.
        status: status of the reply; 0 without a reply.
        retry_after: whether the reply has a Retry-After header.
        late: delay of this process in sending it, which is included in ``seconds``.
    """

    due: float
    seconds: float
    status: int
    retry_after: bool
    late: float = 0.0

    @property
    def accepted(self) -> bool:
        """Whether the service executed the request."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


def build_raw_request(
    method: str, path: str, token: str = "", body: bytes = b"", headers: Mapping[str, str] | None = None
) -> bytes:
    """Return a request in the format of HTTP/1.1."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    lines += [f"Content-Length: {len(body)}"] if body else []
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def offer(
    url: str, requests: Sequence[bytes], rate: float, seconds: float, *, connections: int = 900
) -> list[RequestOutcome]:
    """Send requests in turn at a rate, and return their outcomes in the order of the replies.

    Args:
        url: address of the service.
        requests: requests in the format of HTTP/1.1.
        rate: requests per second.
        seconds: duration.
        connections: maximum number of open connections; a request waits for a free one while its time runs.
    """
    return uvloop.run(_offer(ConnectionPool(url, connections), requests, rate, seconds))


def saturate(url: str, requests: Sequence[bytes], seconds: float, *, connections: int = 16) -> float:
    """Return the completed requests per second of callers that each wait for their reply."""
    outcomes = uvloop.run(_saturate(ConnectionPool(url, connections), requests, seconds, connections))
    return sum(outcome.accepted for outcome in outcomes) / seconds


class ConnectionPool:
    """A limited number of connections, and a queue of requests.

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

    def send(self, request: bytes, due: float) -> None:
        """Send a request as soon as a connection is free."""
        self.sent += 1
        self._waiting.append((due, time.perf_counter() - due, request))
        self._dispatch()

    async def wait_for_replies(self) -> list[RequestOutcome]:
        """Wait for the replies; requests without a reply at the time limit count as failed."""
        deadline = time.perf_counter() + PATIENCE_SECONDS
        while len(self.outcomes) < self.sent and time.perf_counter() < deadline:  # noqa: ASYNC110  polled, not signalled
            await asyncio.sleep(TICK_SECONDS)
        await self._close()
        self.outcomes += [RequestOutcome(time.perf_counter(), PATIENCE_SECONDS, 0, retry_after=False)] * (
            self.sent - len(self.outcomes)
        )
        return self.outcomes

    def finish(self, connection: "_Connection", outcome: RequestOutcome, *, alive: bool) -> None:
        """Record an outcome and reuse the connection."""
        self.outcomes.append(outcome)
        if alive:
            self._free.append(connection)
        else:
            self._open -= 1
        self._dispatch()

    def remove(self, connection: "_Connection") -> None:
        """Remove a closed connection."""
        self._connections.discard(connection)
        if connection in self._free:
            self._free.remove(connection)
            self._open -= 1

    def _dispatch(self) -> None:
        while self._waiting and self._free:
            self._free.pop().send(*self._waiting.popleft())
        while len(self._waiting) > len(self._opening) and self._open < self._max_connections:
            self._open += 1
            task = asyncio.ensure_future(self._connect())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _connect(self) -> None:
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
        self._dispatch()

    async def _close(self) -> None:
        for connection in self._connections.copy():
            connection.close()
        while self._connections:  # noqa: ASYNC110  as above
            await asyncio.sleep(TICK_SECONDS)


class _Connection(asyncio.Protocol):
    """One connection, which reads replies with a Content-Length."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._due: float | None = None
        self._late = 0.0
        self._read = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, due: float, late: float, request: bytes) -> None:
        self._due, self._late = due, late
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
            self._end(int(head[9:12]), retry_after=b"retry-after" in fields, alive=not closes)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        if self._due is not None:
            self._end(0, retry_after=False, alive=False)
        self._pool.remove(self)

    def _end(self, status: int, *, retry_after: bool, alive: bool) -> None:
        if self._due is None:
            return
        due, self._due = self._due, None
        if not alive and self._transport is not None:
            self._transport.close()
        self._pool.finish(
            self, RequestOutcome(due, time.perf_counter() - due, status, retry_after, self._late), alive=alive
        )


async def _offer(pool: ConnectionPool, requests: Sequence[bytes], rate: float, seconds: float) -> list[RequestOutcome]:
    started = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = started + number / rate
        if due > time.perf_counter():
            await asyncio.sleep(max(TICK_SECONDS, due - time.perf_counter()))
        pool.send(requests[number % len(requests)], due)
    return await pool.wait_for_replies()


async def _saturate(
    pool: ConnectionPool, requests: Sequence[bytes], seconds: float, connections: int
) -> list[RequestOutcome]:
    ends_at = time.perf_counter() + seconds
    while time.perf_counter() < ends_at:
        while pool.sent - len(pool.outcomes) < connections:
            pool.send(requests[pool.sent % len(requests)], time.perf_counter())
        await asyncio.sleep(TICK_SECONDS)
    return await pool.wait_for_replies()
