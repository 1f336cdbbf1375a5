"""WebSocket server that sends messages to all its clients, once all of them have connected.

``python -m bench.fan_out_server (emulator|websockets) CLIENTS MESSAGES`` serves the Web PubSub emulator or, for
comparison, the library websockets, and prints the port.
"""

import asyncio
import socket
import sys
from collections.abc import Callable

import uvloop
from websockets.asyncio.server import ServerConnection, broadcast, serve

from emulators.web_pubsub.service import WebPubSubEmulator
from emulators.web_pubsub.settings import HubSettings, ServiceSettings
from local.http_server.server import Server

MESSAGE = b'{"ID":"0123456789abcdef","Payload":{"value":"' + b"x" * 250 + b'"}}'
_KEY = "a key of the benchmark, never checked"
_HUB = "live"


async def run_web_pubsub_emulator(client_count: int, message_count: int) -> None:
    """Start the Web PubSub emulator, wait for all clients, and send each message to all of them."""
    service = WebPubSubEmulator(ServiceSettings(_KEY, hubs={_HUB: HubSettings(anonymous=True)}))
    hub = service.get_or_create_hub(_HUB)
    with _open_listener_and_print_port() as listener:
        server = Server(service, 1, web_sockets=True)
        task = asyncio.create_task(server.serve([listener]))
        await _wait_until(lambda: len(hub.connections) == client_count)
        for connection in hub.connections.values():
            hub.join_group(connection, "all")
        for _ in range(message_count):
            await hub.publish("all", MESSAGE)
        await _wait_until(lambda: not hub.connections)
        server.should_exit = True
        await task


async def run_websockets_server(client_count: int, message_count: int) -> None:
    """Start a server with only the library websockets, wait for all clients, and send each message to all of them."""
    connected: set[ServerConnection] = set()

    async def wait_until_closed(connection: ServerConnection) -> None:
        connected.add(connection)
        await connection.wait_closed()
        connected.discard(connection)

    with _open_listener_and_print_port() as listener:
        async with serve(wait_until_closed, sock=listener, compression=None):
            await _wait_until(lambda: len(connected) == client_count)
            text = MESSAGE.decode()
            for _ in range(message_count):
                broadcast(connected, text)
                await asyncio.sleep(0)
            await _wait_until(lambda: not connected)


def _open_listener_and_print_port() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    print(listener.getsockname()[1], flush=True)
    return listener


async def _wait_until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  conditions of two libraries
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(
        {"emulator": run_web_pubsub_emulator, "websockets": run_websockets_server}[sys.argv[1]](
            int(sys.argv[2]), int(sys.argv[3])
        ),
        loop_factory=uvloop.new_event_loop,
    )
