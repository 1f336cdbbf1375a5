"""Tests of the WebSocket protocol (RFC 6455) with raw bytes over sockets."""

import asyncio
import base64
import itertools
import json
import os
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulators.web_pubsub.asgi import Message, Receive, Send
from emulators.web_pubsub.sockets import EXTENSION, MAX_MESSAGE_BYTES, FrameSocket
from local.http_server.server import Server
from tests.emulators.web_pubsub.echo import echo_messages
from tests.emulators.web_pubsub.serving import run_server
from tests.random_examples import scale_examples

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
_MASK = b"\x37\xfa\x21\x3d"


@dataclass(frozen=True)
class Frame:
    """WebSocket frame that a test sends or receives."""

    opcode: int
    data: bytes = b""
    fin: bool = True
    reserved: int = 0
    masked: bool = True

    def encode(self) -> bytes:
        """Encode the frame as a client must send it (RFC 6455 section 5.2)."""
        head = bytes([self.fin << 7 | self.reserved << 4 | self.opcode])
        size, mask_bit = len(self.data), 0x80 if self.masked else 0
        if size < 126:
            head += bytes([mask_bit | size])
        elif size < 65536:
            head += struct.pack("!BH", mask_bit | 126, size)
        else:
            head += struct.pack("!BQ", mask_bit | 127, size)
        if not self.masked:
            return head + self.data
        whole = (_MASK * (size // 4 + 1))[:size]
        masked = int.from_bytes(self.data) ^ int.from_bytes(whole)
        return head + _MASK + masked.to_bytes(size)


class Peer:
    """Raw WebSocket client that can send valid and invalid frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def send_frames(self, *frames: Frame) -> None:
        """Send WebSocket frames to the server."""
        self.writer.write(b"".join(frame.encode() for frame in frames))
        await self.writer.drain()

    async def receive_frame(self) -> Frame:
        """Receive and return the next WebSocket frame."""
        async with asyncio.timeout(20):
            first, second = await self._reader.readexactly(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", await self._reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", await self._reader.readexactly(8))
            data = await self._reader.readexactly(size)
        return Frame(first & 0x0F, data, bool(first >> 7), first >> 4 & 7, masked=bool(second >> 7))

    async def read_close_code(self) -> int:
        """Return the code of the close frame, and check that the connection then ends."""
        frame = await self.receive_frame()
        assert frame.opcode == CLOSE, frame
        assert await asyncio.wait_for(self._reader.read(), 20) == b""
        return int.from_bytes(frame.data[:2])


@asynccontextmanager
async def connect_peer(port: int) -> AsyncIterator[Peer]:
    """Connect with a WebSocket handshake (RFC 6455 section 4.1)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        yield Peer(reader, writer)
    finally:
        writer.close()


@asynccontextmanager
async def serve_echo() -> AsyncIterator[int]:
    """Context manager: run the echo server on a free port and yield the port."""
    server = Server(echo_messages, 1, web_sockets=True)
    async with run_server(server) as port:
        yield port


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with serve_echo() as port:
        yield port


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, MAX_MESSAGE_BYTES])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
async def test_websocket_messages_of_any_length_are_echoed(port: int, size: int, opcode: int) -> None:
    """The echo server returns a message of any length in one unmasked frame (section 5.2)."""
    async with connect_peer(port) as peer:
        await peer.send_frames(Frame(opcode, b"*" * size))
        assert await peer.receive_frame() == Frame(opcode, b"*" * size, masked=False)


async def test_a_frame_that_arrives_byte_by_byte_is_read(port: int) -> None:
    """A frame whose bytes arrive one at a time is read in the same way as any other frame."""
    async with connect_peer(port) as peer:
        for byte in Frame(TEXT, "zäh".encode()).encode():
            peer.writer.write(bytes([byte]))
            await peer.writer.drain()
        assert (await peer.receive_frame()).data == "zäh".encode()


@given(st.text(max_size=300), st.lists(st.integers(0, 400), max_size=6), st.booleans())
@settings(max_examples=scale_examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_websocket_fragments_become_one_message(text: str, split_positions: Sequence[int], has_pings: bool) -> None:  # noqa: FBT001
    """A text in fragments, with pings between them, arrives as one text (section 5.4)."""
    data = text.encode()
    places = [0, *sorted(min(cut, len(data)) for cut in split_positions), len(data)]
    parts = [data[start:end] for start, end in itertools.pairwise(places)]
    frames = []
    for index, part in enumerate(parts):
        frames.append(Frame(CONTINUATION if index else TEXT, part, fin=index == len(parts) - 1))
        if has_pings:
            frames.append(Frame(PING, b"p%d" % index))

    async def run() -> None:
        async with serve_echo() as port, connect_peer(port) as peer:
            await peer.send_frames(*frames)
            received = [await peer.receive_frame() for _ in range(1 + has_pings * len(parts))]
            assert [frame.data for frame in received if frame.opcode == TEXT] == [data]
            pongs = [frame.data for frame in received if frame.opcode == PONG]
            assert pongs == [b"p%d" % index for index in range(len(parts))] * has_pings

    asyncio.run(run())


async def test_a_client_that_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection of a client that answers no ping ends, also while data waits that the client does not read."""
    monkeypatch.setattr("local.http_server.server.PING_SECONDS", 0.01)
    monkeypatch.setattr("emulators.web_pubsub.sockets._END_SECONDS", 0)
    ended = asyncio.Event()

    async def send_much(scope: Message, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        scope["extensions"][EXTENSION].write(bytes(32 * 1024 * 1024))
        assert (await receive())["type"] == "websocket.disconnect"
        ended.set()

    async with run_server(Server(send_much, 1, web_sockets=True)) as port, connect_peer(port), asyncio.timeout(10):
        await ended.wait()


async def test_a_client_that_closes_and_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection of a client that sends a close frame ends, also while data waits that the client does not read."""
    monkeypatch.setattr("emulators.web_pubsub.sockets._END_SECONDS", 0)
    ended = asyncio.Event()

    connection_lost = FrameSocket.connection_lost

    def record_end(socket: FrameSocket, error: Exception | None) -> None:
        connection_lost(socket, error)
        ended.set()

    monkeypatch.setattr(FrameSocket, "connection_lost", record_end)

    async def send_much(scope: Message, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        scope["extensions"][EXTENSION].write(bytes(32 * 1024 * 1024))
        assert (await receive())["type"] == "websocket.disconnect"

    async with run_server(Server(send_much, 1, web_sockets=True)) as port, connect_peer(port) as peer:
        await peer.send_frames(Frame(CLOSE, (1000).to_bytes(2)))
        async with asyncio.timeout(10):
            await ended.wait()


async def test_a_client_that_answers_no_ping_receives_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection of a client that answers no ping is closed with code 1011 and a sentence as the reason."""
    monkeypatch.setattr("local.http_server.server.PING_SECONDS", 0.01)
    async with serve_echo() as port, connect_peer(port) as peer:
        assert (await peer.receive_frame()).opcode == PING
        reason = b"The client answered no ping for 60 seconds."
        assert await peer.receive_frame() == Frame(CLOSE, (1011).to_bytes(2) + reason, masked=False)


async def test_websocket_pings_get_pongs(port: int) -> None:
    """A ping gets a pong with the same data; an unsolicited pong is ignored (sections 5.5.2, 5.5.3)."""
    async with connect_peer(port) as peer:
        await peer.send_frames(Frame(PONG, b"unasked"), Frame(PING, b"x" * 125), Frame(PING))
        assert await peer.receive_frame() == Frame(PONG, b"x" * 125, masked=False)
        assert await peer.receive_frame() == Frame(PONG, masked=False)


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([Frame(TEXT, b"x", masked=False)], 1002),
        ([Frame(TEXT, b"x", reserved=1)], 1002),
        ([Frame(TEXT, b"x", reserved=2)], 1002),
        ([Frame(TEXT, b"x", reserved=4)], 1002),
        ([Frame(3, b"x")], 1002),
        ([Frame(7)], 1002),
        ([Frame(11)], 1002),
        ([Frame(15, b"x")], 1002),
        ([Frame(PING, b"x" * 126)], 1002),
        ([Frame(CLOSE, b"\x03\xe8" + b"x" * 124)], 1002),
        ([Frame(PING, b"x", fin=False)], 1002),
        ([Frame(CLOSE, b"\x03\xe8", fin=False)], 1002),
        ([Frame(CONTINUATION, b"x")], 1002),
        ([Frame(CONTINUATION, b"x", fin=False)], 1002),
        ([Frame(TEXT, b"x", fin=False), Frame(TEXT, b"y")], 1002),
        ([Frame(BINARY, b"x", fin=False), Frame(BINARY, b"y", fin=False)], 1002),
        ([Frame(CLOSE, b"\x03")], 1002),
        ([Frame(CLOSE, struct.pack("!H", 999))], 1002),
        ([Frame(CLOSE, struct.pack("!H", 1005))], 1002),
        ([Frame(CLOSE, struct.pack("!H", 1006))], 1002),
        ([Frame(CLOSE, struct.pack("!H", 1016))], 1002),
        ([Frame(CLOSE, struct.pack("!H", 2999))], 1002),
        ([Frame(CLOSE, struct.pack("!H", 5000))], 1002),
        ([Frame(CLOSE, b"\x03\xe8\xff")], 1007),
        ([Frame(TEXT, b"\xff")], 1007),
        ([Frame(TEXT, b"\xed\xa0\x80")], 1007),
        ([Frame(TEXT, b"\xc3")], 1007),
        ([Frame(TEXT, b"\xf4\x90\x80\x80")], 1007),
        ([Frame(TEXT, b"\xce", fin=False), Frame(CONTINUATION, b"\xce")], 1007),
        ([Frame(TEXT, b"x" * (MAX_MESSAGE_BYTES + 1))], 1009),
        ([Frame(BINARY, b"x" * MAX_MESSAGE_BYTES, fin=False), Frame(CONTINUATION, b"x")], 1009),
    ],
)
async def test_a_protocol_violation_closes_the_connection(port: int, frames: list[Frame], code: int) -> None:
    """A protocol violation closes the connection with the matching code (section 7.4.1)."""
    async with connect_peer(port) as peer:
        await peer.send_frames(*frames)
        assert await peer.read_close_code() == code


async def test_the_close_code_arrives_during_a_long_message(port: int) -> None:
    """A client that sends a message over the size limit gets the close code 1009 before the connection ends."""
    async with connect_peer(port) as peer:
        head = Frame(BINARY, b"x" * (8 * MAX_MESSAGE_BYTES)).encode()
        peer.writer.write(head)
        assert await peer.read_close_code() == 1009


@pytest.mark.parametrize("data", [b"", b"\x03\xe8", b"\x03\xe8bye", b"\x0b\xb8", b"\x13\x87"])
async def test_a_close_reply_has_the_same_code(port: int, data: bytes) -> None:
    """The server replies to a close frame with the code of the client, if the client sent a code (section 5.5.1)."""
    async with connect_peer(port) as peer:
        await peer.send_frames(Frame(CLOSE, data))
        answer = await peer.receive_frame()
        assert (answer.opcode, answer.data[:2]) == (CLOSE, data[:2])


async def test_data_after_a_close_frame_are_ignored(port: int) -> None:
    """Data after a close frame are ignored (section 1.4)."""
    async with connect_peer(port) as peer:
        await peer.send_frames(Frame(CLOSE, b"\x03\xe8"), Frame(TEXT, b"late"), Frame(PING, b"late"))
        assert await peer.read_close_code() == 1000


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Sec-WebSocket-Version": "12"}, 426),
        ({"Sec-WebSocket-Key": "short"}, 400),
        ({"Sec-WebSocket-Key": None}, 400),
        ({"Sec-WebSocket-Version": None}, 400),
        ({"Content-Length": "3"}, 400),
        ({"X-Long": "x" * 9_000}, 431),
        ({}, 405),
    ],
)
async def test_malformed_handshakes_are_rejected(port: int, changes: dict[str, str | None], status: int) -> None:
    """A handshake without a key, or with an unsupported WebSocket version, is rejected (section 4.2.1)."""
    headers: dict[str, str | None] = {
        "Host": f"127.0.0.1:{port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
    }
    headers |= changes
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    writer.write("\r\n".join([f"{'POST' if status == 405 else 'GET'} / HTTP/1.1", *lines, "", ""]).encode())
    reply = await asyncio.wait_for(reader.read(), 20)
    assert reply.startswith(f"HTTP/1.1 {status} ".encode())
    assert (b"sec-websocket-version: 13" in reply.lower()) is (status == 426)
    assert (b"upgrade: websocket" in reply.lower()) is (status == 426)
    head, _, body = reply.partition(b"\r\n\r\n")
    problem = json.loads(body)
    assert problem["status"] == status
    assert f"x-request-id: {problem['traceId']}".encode() in head
    assert b"x-content-type-options: nosniff" in head.lower()
    writer.close()


async def test_a_flood_of_pings_does_not_fill_the_memory(port: int) -> None:
    """If a client sends pings without reading the pongs, the server stops reading from it."""
    async with connect_peer(port) as peer:
        flood = b"".join(Frame(PING, b"x" * 125).encode() for _ in range(1000))

        async def send() -> None:
            while True:
                peer.writer.write(flood)
                await peer.writer.drain()

        peer._reader._limit = 1  # type: ignore[attr-defined]  # so that nothing is read in advance
        sending = asyncio.create_task(send())
        seen = [0] * 20
        # It ends once the client's own buffer has not changed for a second: the server reads no more.
        async with asyncio.timeout(20):
            while len(set(seen[-20:])) > 1 or not seen[-1]:
                await asyncio.sleep(0.05)
                seen.append(peer.writer.transport.get_write_buffer_size())
        sending.cancel()
        peer.writer.transport.abort()
