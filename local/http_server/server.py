"""HTTP server of the local host: uvicorn without signal handlers, and its listening socket.

The server runs any ASGI application, so that tests of the emulators and benchmarks can use it without the host.

This module is separate from the life cycle of the host, which does not depend on uvicorn.
"""

import asyncio
import contextlib
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator

import uvicorn

from emulators.web_pubsub.sockets import MAX_MESSAGE_BYTES, PING_SECONDS, FrameSocket
from local.errors import StartError
from local.host.shutdown import ShutdownSignal
from local.http_server.application import Message, Receive, Send
from local.http_server.connections import ConnectionLimits, HttpConnection, LimitedConfig

_KEEP_ALIVE_SECONDS = 120
_BACKLOG = 2048

type Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Server(uvicorn.Server):
    """uvicorn server that installs no signal handlers, and signals when it accepts connections."""

    def __init__(
        self, app: Application, drain_seconds: int, limits: ConnectionLimits | None = None, *, web_sockets: bool = False
    ) -> None:
        """Create a server.

        Args:
            app: ASGI application that handles the requests.
            drain_seconds: seconds for which running requests may continue after the host stops.
            limits: limits on connections; None for the defaults.
            web_sockets: whether the application supports WebSockets.
        """
        super().__init__(_build_config(app, drain_seconds, limits or ConnectionLimits(), web_sockets=web_sockets))
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections, and set the signal for the tasks that wait for it."""
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield

    async def exit_on(self, closing: ShutdownSignal, seconds_left: Callable[[], float]) -> None:
        """Stop the server as soon as the host begins to stop; running requests get the remaining drain time."""
        await closing.wait()
        self.config.timeout_graceful_shutdown = int(seconds_left())
        self.should_exit = True


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; clients that connect before the server runs wait in its queue.

    Raises:
        StartError: the address is not available, for instance because another process uses it.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise StartError(f"cannot listen on {host}: {error.strerror}") from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise StartError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listener


def build_server_url(host: str, listener: socket.socket) -> str:
    """Build the base URL of a listening socket."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def _build_config(
    app: Application, drain_seconds: int, limits: ConnectionLimits, *, web_sockets: bool
) -> LimitedConfig:
    config = LimitedConfig(
        app,
        http=HttpConnection,
        ws=FrameSocket if web_sockets else "none",
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_per_message_deflate=False,
        lifespan="off",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=drain_seconds,
    )
    config.limits = limits
    config.idle_order = OrderedDict()
    return config
