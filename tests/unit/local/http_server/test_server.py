"""Tests of timeouts for incomplete requests and unread replies, and of the limit of connections."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from local.errors import StartError
from local.http_server.application import Message, Receive, Send
from local.http_server.server import ConnectionLimits, HttpConnection, Server, open_listening_socket

DEADLINE = 30
WHOLE = b"GET /whole HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
HALF_BODY = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc"
HANDSHAKE_IN_PARTS = (
    b"GET /oi-api/live HTTP/1.1\r\nHost: a\r\nx-request-id: mine\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
    *[b""] * 20,  # turns of the event loop, in which the host receives the first part alone
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
)
type Address = tuple[str, int]


class App:
    """Application that replies with the length of the request's body, padded with spaces."""

    def __init__(self) -> None:
        self.padding = b""
        self.free = asyncio.Event()
        self.free.set()
        self.called = asyncio.Event()
        self.gone = 0
        self.received = 0
        self.is_body_read = True
        self.headers: list[tuple[bytes, bytes]] = []

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Reply to a request with the length of its body."""
        self.called.set()
        size = 0
        message: Message = {"more_body": self.is_body_read}
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone += 1
                return
            size += len(message["body"])
            self.received += len(message["body"])
        self.headers = scope["headers"]
        await self.free.wait()
        text = str(size).encode() + self.padding
        headers = [(b"content-length", str(len(text)).encode())]
        if not self.is_body_read:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def limits() -> ConnectionLimits:
    return ConnectionLimits(connections=3, seconds=0.3)


@pytest.fixture
async def server(app: App, limits: ConnectionLimits) -> AsyncIterator[Server]:
    server = Server(app, 1, limits)
    serving = asyncio.create_task(server.serve([open_listening_socket("127.0.0.1", 0)]))
    await server.listening.wait()
    yield server
    server.should_exit = True
    await serving


@pytest.fixture
def address(server: Server) -> Address:
    address: Address = server.servers[0].sockets[0].getsockname()
    return address


async def send_in_parts(address: Address, *parts: bytes, pause: float = 0) -> bytes:
    """Send parts of a request with pauses; return all data until the host closes the connection."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        async with asyncio.timeout(DEADLINE):
            return await reader.read()
    finally:
        writer.close()


def parse_problem(answer: bytes) -> dict[str, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    document: dict[str, Any] = json.loads(body)
    assert f"HTTP/1.1 {document['status']} {document['title']}\r\n".encode() in head
    assert f"x-request-id: {document['traceId']}".encode() in head
    assert b"application/problem+json" in head
    return document


@pytest.mark.parametrize(
    "half",
    [
        b"GE",
        b"GET /a HTTP/1.1\r\nHost: a\r\nX-Slow",
        b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc",
        b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        WHOLE.replace(b"\r\n\r\n", b"\r\nContent-Length: 1\r\n\r\n"),
    ],
)
async def test_an_incomplete_request_gets_408(address: Address, half: bytes) -> None:
    """An incomplete request gets 408 after its timeout, and its connection is closed."""
    document = parse_problem(await send_in_parts(address, half))
    assert (document["status"], document["code"]) == (408, "REQUEST_TIMEOUT")
    assert document["type"] == "urn:oi:problem:request-timeout"


async def test_a_408_reply_contains_the_request_id(address: Address) -> None:
    """The 408 reply has the caller's request id."""
    half = b"POST /a HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\nContent-Length: 5\r\n\r\n"
    assert parse_problem(await send_in_parts(address, half))["traceId"] == "mine"


async def test_function_is_notified_of_a_stalled_caller(app: App, address: Address) -> None:
    """If a caller stops in the middle of a body, the application that waits for more of the body gets an error."""
    await send_in_parts(address, b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc")
    async with asyncio.timeout(DEADLINE):
        while not app.gone:  # noqa: ASYNC110  a counter has no event
            await asyncio.sleep(0.01)


async def test_a_disconnect_is_reported_for_each_pipelined_request() -> None:
    """If a client disconnects after several requests, the application is notified for the one that it processes."""
    is_running, is_gone = asyncio.Event(), asyncio.Event()

    async def wait_for_disconnect(_: Message, receive: Receive, __: Send) -> None:
        is_running.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        is_gone.set()

    listener = open_listening_socket("127.0.0.1", 0)
    server = Server(wait_for_disconnect, 1)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(WHOLE * 3)
        async with asyncio.timeout(DEADLINE):
            await is_running.wait()
            writer.close()
            await is_gone.wait()
    finally:
        server.should_exit = True
        await serving


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
async def test_connection_without_a_request_is_closed(address: Address, sent: bytes) -> None:
    """A connection without any request is closed without a reply."""
    assert await send_in_parts(address, sent) == b""


async def test_headers_share_one_timeout(address: Address) -> None:
    """All headers of a request share one timeout, which the arrival of further bytes does not extend."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET /a HTTP/1.1\r\nX-Slow: ")
    async with asyncio.timeout(DEADLINE):
        while not reader.at_eof() and not reader._buffer:  # type: ignore[attr-defined]  # peeks without waiting
            writer.write(b"x")
            await asyncio.sleep(0.05)
        assert (await reader.read(100)).startswith(b"HTTP/1.1 408 ")
    writer.close()


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=1.0)])
async def test_a_slow_request_body_is_accepted(address: Address) -> None:
    """A slow body is accepted as long as data arrive."""
    head = b"POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 6\r\n\r\n"
    answer = await send_in_parts(address, head, *[b"x"] * 6, pause=0.25)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\n6")


async def test_no_timeout_applies_to_the_application(app: App, address: Address) -> None:
    """While the application processes a request, no timeout applies."""
    app.free.clear()
    loop = asyncio.get_running_loop()
    loop.call_later(1.0, app.free.set)
    answer = await send_in_parts(address, WHOLE + b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1")
    first, second = answer.split(b"HTTP/1.1 ")[1:]
    assert first.startswith(b"200 ")
    assert second.startswith(b"408 ")


async def test_invalid_data_after_a_request_closes_the_connection(app: App, address: Address) -> None:
    """If invalid data follow a request, the connection is closed without a reply."""
    app.free.clear()
    assert await send_in_parts(address, WHOLE + b"\x00\x01\r\n\r\n") == b""
    app.free.set()
    assert parse_problem(await send_in_parts(address, b"\x00\x01\r\n\r\n"))["status"] == 400


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=DEADLINE)])
async def test_connections_over_the_limit_are_rejected(app: App, address: Address) -> None:
    """If all allowed connections are busy, a new one gets 503 with Retry-After."""
    app.free.clear()
    busy = [await asyncio.open_connection(*address) for _ in range(3)]
    for _, writer in busy:
        app.called.clear()
        writer.write(WHOLE)
        async with asyncio.timeout(DEADLINE):
            await app.called.wait()
    refused = await send_in_parts(address, WHOLE)
    document = parse_problem(refused)
    assert (document["status"], document["code"]) == (503, "TOO_MANY_CONNECTIONS")
    assert b"\r\nRetry-After: " in refused
    app.free.set()
    for _, writer in busy:
        writer.close()
        await writer.wait_closed()
    async with asyncio.timeout(DEADLINE):
        while not (await send_in_parts(address, LAST)).startswith(b"HTTP/1.1 200"):  # noqa: ASYNC110  the host closes connections later
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=DEADLINE, stalled_seconds=0)])
@pytest.mark.parametrize("begun", [b"", b"GET /a HTTP/1.1\r\nX-Slow: ", HALF_BODY])
async def test_an_idle_connection_is_closed_for_a_new_one(address: Address, begun: bytes) -> None:
    """If the limit of connections is reached, the connection that is idle longest is closed for the new one."""
    silent = []
    for _ in range(3):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(begun)
        silent.append((reader, writer))
    assert (await send_in_parts(address, LAST)).startswith(b"HTTP/1.1 200")
    async with asyncio.timeout(DEADLINE):
        left = await silent[0][0].read()
    assert left == b"" if not begun else parse_problem(left)["code"] == "TOO_MANY_CONNECTIONS"
    assert not silent[2][0].at_eof()
    for _, writer in silent:
        writer.close()


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=DEADLINE, stalled_seconds=DEADLINE)])
async def test_a_new_connection_replaces_none_that_sends_a_body(app: App, address: Address) -> None:
    """A new connection is rejected if all others have sent a part of a body shortly before."""
    sending = [await asyncio.open_connection(*address) for _ in range(3)]
    for _, writer in sending:
        app.called.clear()
        writer.write(HALF_BODY)
        async with asyncio.timeout(DEADLINE):
            await app.called.wait()
    assert parse_problem(await send_in_parts(address, WHOLE))["code"] == "TOO_MANY_CONNECTIONS"
    for reader, writer in sending:
        writer.write(b"de")
        async with asyncio.timeout(DEADLINE):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        writer.close()


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=DEADLINE)])
async def test_a_new_connection_replaces_one_that_waits_after_its_reply(app: App, address: Address) -> None:
    """A new connection replaces one whose request got a reply before its body was complete."""
    app.is_body_read = False
    replied = [await asyncio.open_connection(*address) for _ in range(3)]
    for reader, writer in replied:
        writer.write(HALF_BODY)
        async with asyncio.timeout(DEADLINE):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    assert (await send_in_parts(address, LAST)).startswith(b"HTTP/1.1 200 ")
    for _, writer in replied:
        writer.close()


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=DEADLINE, stalled_seconds=5)])
async def test_a_new_connection_replaces_the_slowest_sender_of_a_body(
    app: App, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new connection replaces the one that sends its body slowest, but none that sent 64 KiB in the last period."""
    loop = asyncio.get_running_loop()
    time, later = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: time() + later)
    senders = [await asyncio.open_connection(*address) for _ in range(3)]

    async def send_parts(*parts: bytes) -> None:
        expected = app.received + sum(len(part.removeprefix(head)) for part in parts)
        for (_, writer), part in zip(senders, parts, strict=True):
            writer.write(part)
        async with asyncio.timeout(DEADLINE):
            while app.received < expected:  # noqa: ASYNC110  a counter has no event
                await asyncio.sleep(0.01)

    head = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
    await send_parts(head + b"xx", head + b"x", head + b"x" * 65_536)
    assert parse_problem(await send_in_parts(address, WHOLE))["code"] == "TOO_MANY_CONNECTIONS"
    later += 5.0
    await send_parts(b"x", b"x", b"x")
    for slow in (1, 0):
        replacing = await asyncio.open_connection(*address)
        replacing[1].write(head)
        async with asyncio.timeout(DEADLINE):
            assert parse_problem(await senders[slow][0].read())["code"] == "TOO_MANY_CONNECTIONS"
        senders.append(replacing)
    assert parse_problem(await send_in_parts(address, WHOLE))["code"] == "TOO_MANY_CONNECTIONS"
    for _, writer in senders:
        writer.close()


async def send_without_reading(address: Address, data: bytes) -> socket.socket:
    """Open a connection with a small receive buffer, and send data; return the socket, from which nothing is read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, address)
    await asyncio.get_running_loop().sock_sendall(connection, data)
    return connection


def list_unread_connections(server: Server) -> list[HttpConnection]:
    open_connections: list[HttpConnection] = list(server.config.idle_order)  # type: ignore[attr-defined]  # a LimitedConfig
    return [each for each in open_connections if each.transport.get_write_buffer_size()]


@pytest.mark.parametrize("sent", [WHOLE, LAST, WHOLE * 8, WHOLE + b"GET /a", HALF_BODY.replace(b"5", b"3") + HALF_BODY])
async def test_a_connection_is_closed_if_its_client_does_not_read(app: App, server: Server, sent: bytes) -> None:
    """If a client reads nothing of a reply for the time limit, its connection is closed."""
    app.padding = b" " * 2_000_000
    address = server.servers[0].sockets[0].getsockname()
    with await send_without_reading(address, sent):
        async with asyncio.timeout(DEADLINE):
            await app.called.wait()
            while server.server_state.connections:  # noqa: ASYNC110  a set has no event
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=1.0)])
async def test_a_client_that_reads_slowly_gets_the_whole_reply(app: App, address: Address) -> None:
    """A client that reads slowly gets the complete reply, even if this takes longer than the time limit."""
    app.padding = b" " * 2_000_000
    loop, size = asyncio.get_running_loop(), 0
    with await send_without_reading(address, LAST) as connection:
        async with asyncio.timeout(DEADLINE):
            for _ in range(10):
                size += len(await loop.sock_recv(connection, 1_000_000))
                await asyncio.sleep(0.25)
            while part := await loop.sock_recv(connection, 1_000_000):
                size += len(part)
    assert size > len(app.padding)


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=DEADLINE, stalled_seconds=0)])
@pytest.mark.parametrize("sent", [WHOLE, LAST, WHOLE * 8])
async def test_connections_of_clients_that_do_not_read_are_closed_for_new_ones(
    app: App, server: Server, address: Address, sent: bytes
) -> None:
    """If the limit of connections is reached, a new one replaces one whose client does not read its reply."""
    app.padding = b" " * 2_000_000
    async with AsyncExitStack() as stack:
        for number in range(1, 7):
            stack.enter_context(await send_without_reading(address, sent))
            async with asyncio.timeout(DEADLINE):
                while len(list_unread_connections(server)) != min(number, 3):  # noqa: ASYNC110  a list has no event
                    await asyncio.sleep(0.01)
        app.padding = b""
        assert (await send_in_parts(address, LAST)).startswith(b"HTTP/1.1 200")
        assert len(server.config.idle_order) <= 3  # type: ignore[attr-defined]  # a LimitedConfig


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=DEADLINE, stalled_seconds=DEADLINE)])
async def test_a_new_connection_replaces_none_whose_client_still_reads(
    app: App, server: Server, address: Address
) -> None:
    """A new connection is rejected if the clients of all others have read a part of their replies shortly before."""
    app.padding = b" " * 2_000_000
    async with AsyncExitStack() as stack:
        reading = [stack.enter_context(await send_without_reading(address, LAST)) for _ in range(3)]
        async with asyncio.timeout(DEADLINE):
            while len(list_unread_connections(server)) != 3:  # noqa: ASYNC110  a list has no event
                await asyncio.sleep(0.01)
            for _ in range(2):
                assert parse_problem(await send_in_parts(address, LAST))["code"] == "TOO_MANY_CONNECTIONS"
            size = 0
            while part := await asyncio.get_running_loop().sock_recv(reading[0], 1_000_000):
                size += len(part)
    assert size > len(app.padding)


async def test_websockets_leave_connections_to_requests() -> None:
    """WebSockets use at most four fifths of the connections, so that other requests are still accepted.

    The rejection of a further one states its request id and the version of the API.
    """

    async def serve_websocket(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await App()(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.accept"})
        await receive()

    listener = open_listening_socket("127.0.0.1", 0)
    server = Server(serve_websocket, 1, ConnectionLimits(connections=5), web_sockets=True)
    serving = asyncio.create_task(server.serve([listener]))
    await server.listening.wait()
    host, port = listener.getsockname()
    async with AsyncExitStack() as stack:
        url = f"ws://{host}:{port}/"
        streams = [await stack.enter_async_context(connect(url, proxy=None)) for _ in range(4)]
        with pytest.raises(InvalidStatus) as refused:
            await stack.enter_async_context(connect(url, proxy=None))
        assert refused.value.response.status_code == 503
        assert b"TOO_MANY_CONNECTIONS" in (refused.value.response.body or b"")
        assert (await send_in_parts((host, port), LAST)).startswith(b"HTTP/1.1 200")
        answer = await send_in_parts((host, port), *HANDSHAKE_IN_PARTS)
        assert parse_problem(answer)["traceId"] == "mine"
        assert b"\r\nOi-Version: " in answer
        await streams[0].close()
        async with asyncio.timeout(DEADLINE):
            while len(server.server_state.connections) > 3:  # noqa: ASYNC110  the host closes connections later
                await asyncio.sleep(0.01)
        await stack.enter_async_context(connect(url, proxy=None))
    server.should_exit = True
    await serving


async def test_idle_connection_has_no_request_timeout(address: Address) -> None:
    """A connection that is idle between two requests is not closed by the timeout for requests."""
    with socket.create_connection(address) as connection:
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        for _ in range(2):
            await loop.sock_sendall(connection, WHOLE)
            assert (await loop.sock_recv(connection, 1000)).startswith(b"HTTP/1.1 200")
            await asyncio.sleep(0.8)


@pytest.mark.parametrize(
    "body",
    [b"Content-Length: 32\r\n\r\n" + WHOLE, b"Transfer-Encoding: chunked\r\n\r\n20\r\n" + WHOLE + b"\r\n0\r\n\r\n"],
)
@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize("is_split", [False, True])
async def test_an_unsupported_upgrade_is_ignored(
    address: Address, *, body: bytes, protocol: bytes, is_split: bool
) -> None:
    """A request for an unsupported upgrade is a plain request, whose body is never parsed as the next request."""
    assert len(WHOLE) == 32
    head = b"POST /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: %b\r\n" % protocol
    sent = (head + body) * 2
    parts = [bytes([each]) for each in sent] if is_split else [sent]
    answer = await send_in_parts(address, *parts, LAST)
    assert answer.count(b"HTTP/1.1 200 ") == answer.count(b"HTTP/1.1 ") == 3
    assert [part.partition(b"\r\n\r\n")[2] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"32", b"32", b"0"]


async def test_the_app_gets_the_header_of_an_ignored_upgrade(app: App, address: Address) -> None:
    """The app gets the headers of an upgrade that the server ignores, because it can redirect WebSocket handshakes."""
    head = b"GET http://b/a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    assert (await send_in_parts(address, head)).startswith(b"HTTP/1.1 200 ")
    assert app.headers == [(b"host", b"b"), (b"connection", b"Upgrade, close"), (b"upgrade", b"websocket")]


@pytest.mark.parametrize("target", [b"/\xff", b"ftp://a/"])
async def test_an_invalid_request_with_an_ignored_upgrade_gets_one_reply(address: Address, target: bytes) -> None:
    """An invalid request for an unsupported upgrade gets one 400 reply."""
    head = b"POST %b HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" % target
    assert parse_problem(await send_in_parts(address, head + WHOLE))["status"] == 400


def test_an_invalid_host_name_is_rejected() -> None:
    """The reason for a failed start names a host that is no valid host name."""
    with pytest.raises(StartError, match="cannot listen on aaa"):
        open_listening_socket("a" * 64, 0)


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=DEADLINE)])
async def test_a_client_that_sends_a_large_body_gets_an_early_reply(app: App, address: Address) -> None:
    """If the application replies without the body, a client that first sends its whole body still gets this reply."""
    app.is_body_read = False
    body = WHOLE * 1_000_000
    head = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    answer = await send_in_parts(address, head, body)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\n0")


@pytest.mark.parametrize("limits", [ConnectionLimits(connections=3, seconds=DEADLINE)])
async def test_a_stop_does_not_wait_for_the_rest_of_a_body(
    app: App, server: Server, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the application replies without the body while the server stops, the rest of the body does not delay it."""
    lingers: list[float] = []
    start_to_linger = HttpConnection._start_to_linger

    def record_linger(connection: HttpConnection, seconds: float) -> None:
        lingers.append(seconds)
        start_to_linger(connection, seconds)

    monkeypatch.setattr(HttpConnection, "_start_to_linger", record_linger)
    app.is_body_read = False
    for is_stopping in (False, True):
        app.free.clear()
        app.called.clear()
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HALF_BODY)
        async with asyncio.timeout(DEADLINE):
            await app.called.wait()
            if is_stopping:
                for connection in list(server.server_state.connections):
                    connection.shutdown()
            app.free.set()
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        writer.close()
    assert lingers == [DEADLINE, 1.0]


async def test_trailers_do_not_become_headers(app: App, address: Address) -> None:
    """Trailers of a chunked body do not become headers of this or the next request."""
    chunked = (
        b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nAuthorization: x\r\n\r\n"
    )
    await send_in_parts(address, chunked.replace(b"Host: a", b"Host: a\r\nConnection: close"))
    assert [name for name, _ in app.headers] == [b"host", b"connection", b"transfer-encoding"]
    answer = await send_in_parts(address, chunked + WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert answer.count(b"HTTP/1.1 200") == 2
    assert [name for name, _ in app.headers] == [b"host", b"connection"]
