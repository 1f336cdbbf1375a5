"""Tests of the limits of replies from untrusted servers, with local servers."""

import asyncio

import aiohttp
import pytest

from shared.backends.bounded_replies import MAX_BODY_BYTES, MAX_INTERIM_REPLIES, BoundedReplyConnector
from shared.backends.outbound_http import CheckedHttp
from shared.outbound.addresses import parse_outbound_url
from shared.outbound.ports import OutboundFailedError, OutboundRequest
from tests.unit.shared.backends.test_outbound_http import (
    LOOPBACK,
    OK,
    Respond,
    build_server,
    send_request,
    serve_connections,
)

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"
TOO_MANY_INTERIM_REPLIES = r"more than 20 interim replies \(status 1xx\)"
TOO_LONG_HEAD = "more than 65536 bytes before the body"


def build_endless_server(start: bytes, repeated: bytes) -> Respond:
    """Return a server function that sends bytes again and again until the client closes the connection."""

    async def send_without_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while not reader.at_eof():
            writer.write(repeated)
            await writer.drain()

    return send_without_end


@pytest.mark.parametrize(
    ("start", "repeated", "reason"),
    [
        (b"", CONTINUE * 1_000, TOO_MANY_INTERIM_REPLIES),
        (b"", EARLY_HINTS * 1_000, TOO_MANY_INTERIM_REPLIES),
        (b"", b"\r\n" * 10_000, TOO_LONG_HEAD),
        (b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 8_000 + b"\r\n", TOO_LONG_HEAD),
        (b"HTTP/1.1 200 OK\r\n", b"X: x\r\n" * 1_000, "not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 10_000, "not valid HTTP"),
    ],
)
async def test_a_server_that_sends_no_final_status_raises_an_error(start: bytes, repeated: bytes, reason: str) -> None:
    """Interim replies, blank lines and headers without end raise an error that names the limit."""
    async with serve_connections(build_endless_server(start, repeated)) as port:
        with pytest.raises(OutboundFailedError, match=reason):
            await send_request(f"http://127.0.0.1:{port}/", truncate=True)


async def test_a_reply_can_follow_a_few_interim_replies() -> None:
    """A reply after the permitted number of interim replies is returned."""
    async with serve_connections(build_server(EARLY_HINTS * MAX_INTERIM_REPLIES + OK)) as port:
        received = await send_request(f"http://127.0.0.1:{port}/")
    assert (received.status, received.body) == (200, b"ok")


async def test_no_reply_can_follow_more_interim_replies() -> None:
    """A reply after one interim reply too many is an error, even if all of them arrive at once."""
    async with serve_connections(build_server(CONTINUE * (MAX_INTERIM_REPLIES + 1) + OK)) as port:
        with pytest.raises(OutboundFailedError, match=TOO_MANY_INTERIM_REPLIES):
            await send_request(f"http://127.0.0.1:{port}/")


async def test_little_of_a_body_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The framing of a chunked body counts towards the limit of the bytes that are read."""
    monkeypatch.setattr("shared.backends.outbound_http.BODY_SECONDS", 0.05)
    head, chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1;" + b"x" * 1_000 + b"\r\na\r\n"
    async with serve_connections(build_endless_server(head, chunk)) as port:
        received = await send_request(f"http://127.0.0.1:{port}/", truncate=True)
    assert received.status == 200
    assert len(received.body) * len(chunk) < 80_000


async def test_a_connection_with_data_after_the_reply_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends data when no reply is expected loses its connection, so that nothing accumulates."""
    monkeypatch.setattr("shared.backends.outbound_http.KEEPALIVE_SECONDS", 600.0)
    replied, closed = asyncio.Event(), asyncio.Event()

    async def send_two_replies(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await replied.wait()
        writer.write(OK)
        await reader.read()
        closed.set()

    client = CheckedHttp(LOOPBACK)
    async with serve_connections(send_two_replies) as port:
        request = OutboundRequest(parse_outbound_url(f"http://127.0.0.1:{port}/"))
        assert (await client.send(request)).body == b"ok"
        replied.set()
        async with asyncio.timeout(30):
            await closed.wait()
    await client.close()


async def test_a_connection_with_a_large_body_is_closed() -> None:
    """A connection is not used for another request if its reply exceeded the limit, even if the whole body was read."""
    started, closed = asyncio.Event(), asyncio.Event()

    async def send_large_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1))
        # The bytes of the body that arrive together with the head are not counted.
        await started.wait()
        writer.write(b"x" * (MAX_BODY_BYTES + 1))
        await reader.read()
        closed.set()

    connector = BoundedReplyConnector(keepalive_timeout=600)
    async with serve_connections(send_large_body) as port, aiohttp.ClientSession(connector=connector) as session:
        async with session.get(f"http://127.0.0.1:{port}/") as response:
            started.set()
            assert len(await response.read()) == MAX_BODY_BYTES + 1
        async with asyncio.timeout(30):
            await closed.wait()
