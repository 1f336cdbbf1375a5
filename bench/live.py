"""Benchmark: messages per second from the Web PubSub emulator to its clients, compared with the library websockets."""

import asyncio
import base64
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import cast

import uvloop

from bench.fan_out_server import MESSAGE
from bench.figures import Figure
from bench.running import ROOT

_CLIENTS = 200
_MESSAGES = 1000
_ROUNDS = 3
_FRAME_BYTES = len(MESSAGE) + 4
"""A frame of 126 to 65535 bytes has four bytes before its data (RFC 6455 section 5.2)."""


def measure_live_fan_out() -> Iterator[Figure]:
    """Compare the median message rate of the emulator with that of the library websockets, in alternating runs."""
    rates: dict[str, list[float]] = {"emulator": [], "websockets": []}
    for _ in range(_ROUNDS):
        for server, measured in rates.items():
            measured.append(_measure_deliveries_per_second(server))
    ours, bare = (statistics.median(measured) for measured in rates.values())
    detail = {
        "clients": _CLIENTS,
        "messages": _MESSAGES,
        "messageBytes": len(MESSAGE),
        "deliveriesPerSecond": round(ours),
        "bareDeliveriesPerSecond": round(bare),
    }
    yield Figure("live_fan_out", ours / bare, "ratio", at_least=0.5, detail=detail)
    yield Figure("live_deliveries", ours, "deliveries/s", at_least=20_000, detail=detail)


def _measure_deliveries_per_second(server_name: str) -> float:
    command = [sys.executable, "-m", "bench.fan_out_server", server_name, str(_CLIENTS), str(_MESSAGES)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101  it is a pipe
            port = int(process.stdout.readline())
            seconds = asyncio.run(_measure_delivery_seconds(port), loop_factory=uvloop.new_event_loop)
        finally:
            process.terminate()
    return _CLIENTS * _MESSAGES / seconds


async def _measure_delivery_seconds(port: int) -> float:
    """Connect all clients; return the seconds between the first and the last byte that the clients receive."""
    loop = asyncio.get_running_loop()
    clients = [_ByteCountingClient(port, loop.create_future()) for _ in range(_CLIENTS)]
    for client in clients:
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)  # type: ignore[misc]
    async with asyncio.timeout(60):
        await asyncio.gather(*(client.done for client in clients))
    ended = time.perf_counter()
    for client in clients:
        client.close()
    return ended - min(client.began for client in clients)


class _ByteCountingClient(asyncio.Protocol):
    """WebSocket client that only counts the received bytes, so that its cost does not affect the measurement."""

    def __init__(self, port: int, received_all: asyncio.Future[None]) -> None:
        self.began = 0.0
        self.done = received_all
        self._port = port
        self._left = _MESSAGES * _FRAME_BYTES
        self._head: bytes | None = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = stream = cast("asyncio.Transport", transport)
        key = base64.b64encode(os.urandom(16)).decode()
        stream.write(
            f"GET /client/hubs/live HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            head, end, data = (self._head + data).partition(b"\r\n\r\n")
            if not end:
                self._head = head
                return
            self._head = None
        if data and not self.began:
            self.began = time.perf_counter()
        self._left -= len(data)
        if self._left <= 0 and not self.done.done():
            self.done.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
