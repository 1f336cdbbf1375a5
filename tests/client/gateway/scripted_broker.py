"""MQTT 3.1.1 broker whose packets a test decides one by one, for losses that a real broker does not produce."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

CONNECT, PUBACK, SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT = 0x10, 0x40, 0x80, 0xA0, 0xC0, 0xE0
PING_REPLY = b"\xd0\x00"


class ClientConnection:
    """Connection of one client to the broker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def accept(self, *, is_session_present: bool) -> None:
        """Accept the connection and the subscription of the client to one filter."""
        await self.read_packet(CONNECT)
        self._writer.write(bytes([0x20, 2, is_session_present, 0]))
        body = await self.read_packet(SUBSCRIBE)
        self._writer.write(bytes([0x90, 3]) + body[:2] + b"\x01")

    async def end_subscription(self) -> str:
        """Confirm that the client ends the subscription to one filter, and return this filter."""
        body = await self.read_packet(UNSUBSCRIBE)
        self._writer.write(bytes([0xB0, 2]) + body[:2])
        return body[4:].decode()

    def publish(self, packet_id: int, topic: str, payload: bytes, *, is_repeated: bool = False) -> None:
        """Send a message of less than 128 bytes at quality of service 1."""
        name = topic.encode()
        body = len(name).to_bytes(2, "big") + name + packet_id.to_bytes(2, "big") + payload
        self._writer.write(bytes([0x3A if is_repeated else 0x32, len(body)]) + body)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes that need not be an MQTT packet."""
        self._writer.write(data)

    async def read_packet(self, kind: int) -> bytes:
        """Read the next packet, which must be of this kind, and return the part after its fixed header.

        Pings are ignored, unless one is expected: a slow disk delays an acknowledgement until after a ping.
        """
        while True:
            first, size = await self._reader.readexactly(2)
            assert size < 0x80, "long packet"
            body = await self._reader.readexactly(size)
            if kind == PINGREQ or first != PINGREQ:
                break
        assert first & 0xF0 == kind, f"packet of kind {first:#x}"
        return body

    async def answer_ping(self) -> None:
        """Wait for a ping, and reply to it."""
        await self.read_packet(PINGREQ)
        self._writer.write(PING_REPLY)


type Script = Callable[[ClientConnection], Awaitable[None]]


@asynccontextmanager
async def serve_scripts(*scripts: Script) -> AsyncIterator[int]:
    """Serve MQTT for the duration of the block; yield the port.

    Args:
        scripts: functions for the first connection, the second, and so on; a connection is closed after its function.
    """
    remaining = iter(scripts)

    async def serve_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = next(remaining, None)
        try:
            if script is not None:
                await script(ClientConnection(reader, writer))
                await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve_client, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
