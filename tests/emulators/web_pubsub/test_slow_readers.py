"""Tests of Web PubSub clients that read slowly."""

import asyncio
import base64
import functools
import os
import socket

import pytest
from azure.messaging.webpubsubservice.aio import WebPubSubServiceClient
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from emulators.web_pubsub.outbox import MAX_BYTES, MAX_MESSAGES
from emulators.web_pubsub.payloads import DataType
from tests.emulators.web_pubsub.serving import Connect, Running, wait_until

_TEXT = DataType.TEXT


class RawClient:
    """WebSocket client with a small receive buffer that reads only on request."""

    def __init__(self, running_emulator: Running, token: str) -> None:
        port = int(running_emulator.url.rpartition(":")[2])
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /client/hubs/plain?access_token={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def read_until(self, end: bytes) -> bytes:
        """Read until the given end of the data arrives, and close the connection."""
        received = bytearray()
        while not received.endswith(end):
            part = self.socket.recv(65536)
            assert part, "the connection ended before"
            received += part
        self.socket.close()
        return bytes(received)


async def connect_slow_client(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, *groups: str
) -> RawClient:
    """Connect a client that does not read, and return it."""
    token = await plain_hub_client.get_client_access_token(groups=list(groups), user_id="slow")
    client = await asyncio.to_thread(RawClient, running_emulator, token["token"])
    await wait_until(lambda: bool(running_emulator.service.get_or_create_hub("plain").get_user_connections("slow")))
    return client


async def test_a_large_batch_closes_no_client_that_reads(
    running_emulator: Running, connect_to_plain_hub: Connect
) -> None:
    """A batch of three times the size of a queue reaches a client that reads all the time."""
    reader = await connect_to_plain_hub("g")
    hub = running_emulator.service.get_or_create_hub("plain")
    count = 3 * MAX_BYTES // 200_000
    counts = [0]
    reading = asyncio.create_task(_receive_numbered_messages(reader, counts, 0))
    for number in range(count):
        await hub.publish("g", b"%08d" % number + b"x" * 200_000, _TEXT)
    await wait_until(lambda: counts[0] == count)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


async def test_a_slow_client_is_closed_and_others_are_served(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """A client that stops reading is closed with code 1013; twenty others get all messages in order."""
    readers = [await connect_to_plain_hub("g") for _ in range(20)]
    slow = await connect_slow_client(running_emulator, plain_hub_client, "g")
    hub = running_emulator.service.get_or_create_hub("plain")
    sent = 0
    counts = [0] * len(readers)
    received = [
        asyncio.create_task(_receive_numbered_messages(reader, counts, index)) for index, reader in enumerate(readers)
    ]
    while hub.get_user_connections("slow"):
        await hub.publish("g", b"%08d" % sent + b"x" * 4000, _TEXT)
        sent += 1
        assert sent * 4000 < 4 * MAX_BYTES, "the slow client was not given up"
        # The readers share this process: they catch up before more is sent.
        await wait_until(functools.partial(_have_received_at_least, counts, sent - 50))
    await hub.publish("g", b"end", _TEXT)
    for task in received:
        assert await asyncio.wait_for(task, 60) == list(range(sent))
    await asyncio.to_thread(slow.read_until, b"\x88\x19\x03\xf5The client is too slow.")


def _have_received_at_least(counts: list[int], minimum: int) -> bool:
    return min(counts) >= minimum


async def _receive_numbered_messages(client: ClientConnection, counts: list[int], index: int) -> list[int]:
    numbers = []
    while (message := await client.recv()) != "end":
        numbers.append(int(message[:8]))
        counts[index] += 1
    return numbers


async def test_too_many_small_messages_close_a_client(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient
) -> None:
    """A client with over ten thousand queued messages is closed."""
    slow = await connect_slow_client(running_emulator, plain_hub_client, "g")
    hub = running_emulator.service.get_or_create_hub("plain")
    # Large ones first, so that the network has no room left for the small ones.
    for _ in range(20):
        await hub.publish("g", b"x" * 100_000, _TEXT)
    (connection,) = hub.get_user_connections("slow")
    for _ in range(MAX_MESSAGES - 100):
        await hub.publish("g", b"y", _TEXT)
    assert hub.get_user_connections("slow")
    for _ in range(200):
        await hub.publish("g", b"y", _TEXT)
    await wait_until(lambda: not hub.get_user_connections("slow"))
    assert connection.close_reason == "The client is too slow."
    slow.socket.close()


async def test_paced_messages_wait_for_the_reading_client(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient
) -> None:
    """While the client reads, paced messages of four times the limit arrive completely."""
    slow = await connect_slow_client(running_emulator, plain_hub_client)
    (connection,) = running_emulator.service.get_or_create_hub("plain").get_user_connections("slow")
    part, count = b"z" * 500_000, 4 * MAX_BYTES // 500_000

    async def send() -> None:
        for _ in range(count):
            await plain_hub_client.send_to_connection(connection.id, part.decode(), content_type="text/plain")
        await plain_hub_client.close_connection(connection.id, reason="done")

    sending = asyncio.create_task(send())
    done, _ = await asyncio.wait((sending,), timeout=0.5)
    assert not done, "nothing held the sender back"
    received = await asyncio.to_thread(slow.read_until, b"\x88\x06\x03\xe8done")
    await sending
    _, _, frames = received.partition(b"\r\n\r\n")
    assert frames.count(b"z") == count * len(part)


async def test_a_paced_sender_stops_after_a_disconnect(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient
) -> None:
    """If the client disconnects, a sender with pacing stops waiting for the client."""
    slow = await connect_slow_client(running_emulator, plain_hub_client)
    (connection,) = running_emulator.service.get_or_create_hub("plain").get_user_connections("slow")

    async def send() -> None:
        while True:
            await plain_hub_client.send_to_connection(connection.id, "z" * 500_000, content_type="text/plain")

    sending = asyncio.create_task(send())
    await asyncio.wait((sending,), timeout=0.3)
    slow.socket.close()
    with pytest.raises(Exception, match="CLIENT_NOT_FOUND"):
        await asyncio.wait_for(sending, 20)


async def test_a_slow_client_does_not_delay_the_shutdown(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """A slow client does not delay the shutdown, and other clients get code 1001."""
    reader = await connect_to_plain_hub("h")
    slow = await connect_slow_client(running_emulator, plain_hub_client, "g")
    for _ in range(20):
        await running_emulator.service.get_or_create_hub("plain").publish("g", b"x" * 100_000, _TEXT)
    running_emulator.server.should_exit = True
    with pytest.raises(ConnectionClosed) as closed:
        await reader.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1001
    slow.socket.close()
