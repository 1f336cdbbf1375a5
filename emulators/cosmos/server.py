"""Cosmos DB test server: an ASGI application, and an HTTP server that runs in a thread of the test process."""

import asyncio
import itertools
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from emulators.cosmos.account import AccountOptions
from emulators.cosmos.faults import FaultInjector, FaultKind, InjectedFault
from emulators.cosmos.request_log import RequestLog
from emulators.cosmos.service import DEFAULT_KEY, CosmosService, build_injected_error
from emulators.cosmos.wire import ITEM_WRITES, MAX_BYTES, CosmosError, CosmosReply, CosmosRequest, get_operation_name

type Scope = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
type Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_DROPS = (FaultKind.DROP_BEFORE_COMMIT, FaultKind.DROP_AFTER_COMMIT)
_START_SECONDS = 10.0
_WRITE_FORBIDDEN = 3
_connection_numbers = itertools.count(1)
"""Numbers of the connections to all servers of this process, in the order in which they were opened."""


class CosmosApp:
    """Simulated Cosmos DB account as an ASGI application.

    Args:
        service: The account that executes the requests.
        latency: Seconds to wait before each request is executed.
    """

    def __init__(self, service: CosmosService, latency: float) -> None:
        self.service = service
        self.latency = latency
        self.faults = FaultInjector()
        self.requests = RequestLog()
        self._first_connection = 0

    def move_write_region(self) -> None:
        """Move the write region: writes over connections that are open now get status 403 with sub-status 3.

        New connections reach the new write region, as after a failover that changes the address of the account.
        """
        self._first_connection = next(_connection_numbers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI 3)."""
        request = await _read_request(scope, receive)
        started = time.perf_counter()
        fault = self.faults.find_fault_for_request(request)
        reply = await self._build_reply_unless_dropped(request, fault, scope["connection_number"])
        if reply is None:
            self.requests.add(request, 0, 0, fault.kind if fault else None)
            _drop_connection(scope, reset=bool(fault and fault.reset))
            return
        reply.headers["x-ms-request-duration-ms"] = f"{(time.perf_counter() - started) * 1000:.3f}"
        substatus = int(reply.headers.get("x-ms-substatus", "0"))
        self.requests.add(request, reply.status, substatus, fault.kind if fault else None)
        await _send_reply(send, reply, scope if fault and fault.kind is FaultKind.DROP_IN_REPLY else None)

    async def _build_reply_unless_dropped(
        self, request: CosmosRequest, fault: InjectedFault | None, connection_number: int
    ) -> CosmosReply | None:
        """Execute a request, possibly with an injected fault.

        Return the reply, or None if the connection must be dropped.
        """
        if self.latency:
            await asyncio.sleep(self.latency)
        if fault is not None and fault.kind is FaultKind.DELAY:
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.kind is FaultKind.DROP_BEFORE_COMMIT:
            return None
        if request.operation in ITEM_WRITES and connection_number < self._first_connection:
            message = "The requested operation cannot be performed at this region"
            return CosmosError(403, message, _WRITE_FORBIDDEN).build_reply()
        reply = self.service.execute(request, fault)
        if fault is not None and fault.kind is FaultKind.DELAY_AFTER_COMMIT:
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.kind is FaultKind.DROP_AFTER_COMMIT:
            return None
        if fault is not None and fault.kind is FaultKind.STATUS_AFTER_COMMIT:
            return build_injected_error(fault).build_reply()
        return reply


async def _read_request(scope: Scope, receive: Receive) -> CosmosRequest:
    """Receive a request and return it; if the body is larger than the limit, cut it one byte after the limit."""
    raw: bytes = scope["raw_path"]
    segments = tuple(unquote(part) for part in raw.decode().split("/") if part)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        part: bytes = message.get("body", b"")[: MAX_BYTES + 1 - size]
        size += len(part)
        parts.append(part)
        more = message.get("more_body", False)
    operation = get_operation_name(scope["method"], segments, headers)
    return CosmosRequest(scope["method"], segments, headers, b"".join(parts), operation)


async def _send_reply(send: Send, reply: CosmosReply, truncated_scope: Scope | None) -> None:
    """Send a reply; if the reply must be truncated, send only half of the body and close the connection.

    `truncated_scope` is the ASGI scope of a request whose reply must be truncated; None for a complete reply.
    """
    body = reply.encode_body()
    headers = [(name.encode(), value.encode("latin-1")) for name, value in reply.headers.items()]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if truncated_scope is None:
        await send({"type": "http.response.body", "body": body})
        return
    await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
    truncated_scope["connection"].close()


def _drop_connection(scope: Scope, *, reset: bool) -> None:
    """Close (FIN) or reset (RST) the connection of a request, without a reply."""
    connection: asyncio.Transport = scope["connection"]
    if reset:
        raw = connection.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.abort()


class _Protocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, which adds the connection and its number to the ASGI scope.

    Injected faults close the connection; `CosmosApp.move_write_region` recognises old connections by their number.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own type
        super().connection_made(transport)
        self._number = next(_connection_numbers)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["connection_number"] = self._number  # type: ignore[typeddict-unknown-key]  # the app's own key
        self.scope["connection"] = self.transport  # type: ignore[typeddict-unknown-key]  # the app's own key


class _CosmosHttpServer(uvicorn.Server):
    """uvicorn server that stops immediately on request, instead of at its next timer tick."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        """Serve requests until the server is stopped."""
        self._loop = asyncio.get_running_loop()
        await self.on_tick(0)
        if not self.should_exit:
            await self._ending.wait()

    def request_stop(self) -> None:
        """Stop the server from any thread."""
        self.should_exit = True
        # If the main loop has not started, it will check ``should_exit`` before it waits.
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ending.set)


class CosmosServer:
    """Cosmos DB test server on the loopback interface, used as a context manager (`with` or `async with`).

    Args:
        key: The master key of the account, in Base64.
        options: Consistency, regions, throughput and authentication of the account; None for the defaults.
        physical_partitions: The number of physical partitions of each container.
        latency: Seconds to wait before each request is executed.
        port: The port to listen on; 0 for any free port.
        certificate: Paths of a TLS certificate and its key in PEM; None to serve HTTP.
        clock: Returns the current time in seconds since 1970.
    """

    def __init__(
        self,
        *,
        key: str = DEFAULT_KEY,
        options: AccountOptions | None = None,
        physical_partitions: int = 1,
        latency: float = 0.0,
        port: int = 0,
        certificate: tuple[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.key = key
        service = CosmosService(key=key, options=options, physical_partitions=physical_partitions, clock=clock)
        self.app = CosmosApp(service, latency)
        self._port = port
        self._certificate = certificate
        self._thread: threading.Thread | None = None
        self._server: _CosmosHttpServer | None = None

    @property
    def endpoint(self) -> str:
        """URL of the server; valid after the server has started."""
        return self.app.service.endpoint

    @property
    def faults(self) -> FaultInjector:
        """Faults that tests inject into requests."""
        return self.app.faults

    def move_write_region(self) -> None:
        """Move the write region; see :meth:`CosmosApp.move_write_region`."""
        self.app.move_write_region()

    @property
    def requests(self) -> RequestLog:
        """Log of the received requests and of the status of their replies."""
        return self.app.requests

    def start(self) -> None:
        """Start the server in a new thread; return when clients can connect.

        Raises:
            RuntimeError: the server did not start within the time limit.
        """
        listener = socket.create_server(("127.0.0.1", self._port), backlog=512)
        # A restarted server has the same port and data.
        self._port = listener.getsockname()[1]
        scheme = "https" if self._certificate else "http"
        self.app.service.endpoint = f"{scheme}://127.0.0.1:{self._port}/"
        server = _CosmosHttpServer(self._build_uvicorn_config())
        self._server = server
        self._thread = threading.Thread(target=server.run, args=([listener],), name="cosmos-server", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError(f"the Cosmos DB test server ended or did not start within {_START_SECONDS} seconds")
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop the server and wait for its thread."""
        if self._server is not None and self._thread is not None:
            self._server.request_stop()
            self._thread.join()
            self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _build_uvicorn_config(self) -> uvicorn.Config:
        certificate, private_key = self._certificate or (None, None)
        return uvicorn.Config(
            self.app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=3600,
            timeout_graceful_shutdown=1,
            ssl_certfile=certificate,
            ssl_keyfile=private_key,
        )
