"""The stand-in in a process of its own."""

import asyncio
import signal
import socket

import uvicorn
import uvloop

from emulators.web_pubsub.asgi import Application
from emulators.web_pubsub.service import WebPubSubEmulator
from emulators.web_pubsub.settings import ServiceSettings
from emulators.web_pubsub.sockets import MAX_MESSAGE_BYTES, PING_SECONDS, FrameSocket

_GRACE_SECONDS = 3


def serve(settings: ServiceSettings, port: int) -> None:
    """Serve on 127.0.0.1 until SIGTERM or SIGINT, and print one line ``ready http://127.0.0.1:PORT`` before.

    Raises:
        OSError: the port is taken.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        asyncio.run(_serve(settings, listener), loop_factory=uvloop.new_event_loop)


async def _serve(settings: ServiceSettings, listener: socket.socket) -> None:
    service = WebPubSubEmulator(settings)
    # uvicorn raises a signal that it handled once more when it is done; by then there is nothing left to end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    server = EmulatorServer(service, listener)
    try:
        await server.serve(sockets=[listener])
    finally:
        await service.close()


class EmulatorServer(uvicorn.Server):
    """uvicorn as the stand-in needs it; it prints where it serves once it does."""

    def __init__(self, app: Application, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                ws=FrameSocket,
                ws_max_size=MAX_MESSAGE_BYTES,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PING_SECONDS,
                ws_per_message_deflate=False,
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        self._listener = listener

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets)
        print(f"ready http://127.0.0.1:{self._listener.getsockname()[1]}", flush=True)
