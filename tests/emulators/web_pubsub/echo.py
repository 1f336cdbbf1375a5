"""WebSocket echo server that uses the emulator's implementation of the protocol.

``python -m tests.emulators.web_pubsub.echo PORT`` is the target of the Autobahn test suite.
"""

import asyncio
import socket
import sys

import uvloop

from emulators.web_pubsub.asgi import Message, Receive, Send
from local.http_server.server import Server


async def echo_messages(scope: Message, receive: Receive, send: Send) -> None:
    """Accept a client and send each of its messages back to it (ASGI 3)."""
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        await send({"type": "websocket.send", "text": message.get("text"), "bytes": message.get("bytes")})


def main() -> None:
    """Run the server until it is interrupted."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", int(sys.argv[1])))
        listener.listen()
        server = Server(echo_messages, 1, web_sockets=True)
        server.config.ws_max_size = 32 * 1024 * 1024  # the suite's longest messages have 16 MiB
        asyncio.run(server.serve([listener]), loop_factory=uvloop.new_event_loop)


if __name__ == "__main__":
    main()
