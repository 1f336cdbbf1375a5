"""HTTP server of the test server, in a thread with its own event loop."""

import asyncio
import base64
import socket
import threading
import time
from types import TracebackType
from typing import Self

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from emulators.cosmos.account import AccountOptions
from emulators.cosmos.app import CosmosApp
from emulators.cosmos.faults import FaultInjector
from emulators.cosmos.request_log import RequestLog

DEFAULT_KEY = base64.b64encode(b"the Cosmos test server's own key").decode()
"""Default master key, valid only for test servers."""

_START_SECONDS = 10.0


class _Protocol(HttpToolsProtocol):
    """HTTP protocol of uvicorn that adds the connection to the scope, so that faults can drop it."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["connection"] = self.transport  # type: ignore[typeddict-unknown-key]  # the app's own key


class _CosmosHttpServer(uvicorn.Server):
    """Server of uvicorn that stops immediately instead of at its next timer tick."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        """Serve until ``end`` is called."""
        self._loop = asyncio.get_running_loop()
        await self.on_tick(0)
        if not self.should_exit:
            await self._ending.wait()

    def end(self) -> None:
        """Stop the server from any thread."""
        self.should_exit = True
        # Without a loop the main loop has not started; it checks ``should_exit`` before it waits.
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ending.set)


class CosmosServer:
    """Cosmos DB test server on the loopback interface; a context manager, `async with` or `with`.

    Args:
        key: The master key, base64.
        options: The options of the account.
        physical_partitions: The number of physical partitions of each container.
        latency: The delay before each request is executed, in seconds.
        port: The port; 0 for a free one.
        certificate: Paths of a certificate and its key in PEM, to serve TLS.
    """

    def __init__(
        self,
        *,
        key: str = DEFAULT_KEY,
        options: AccountOptions | None = None,
        physical_partitions: int = 1,
        latency: float = 0.0,
        port: int = 0,
        certificate: tuple[str, str] | None = None,
    ) -> None:
        self.key = key
        self.app = CosmosApp(key, options or AccountOptions(), physical_partitions, latency)
        self._port = port
        self._certificate = certificate
        self._thread: threading.Thread | None = None
        self._server: _CosmosHttpServer | None = None

    @property
    def endpoint(self) -> str:
        """URL for clients, after the start."""
        return self.app.endpoint

    @property
    def faults(self) -> FaultInjector:
        """Injected faults."""
        return self.app.faults

    @property
    def requests(self) -> RequestLog:
        """Log of requests and replies."""
        return self.app.requests

    def start(self) -> None:
        """Bind the socket and serve in a thread; return when clients can connect.

        Raises:
            RuntimeError: the server did not start.
        """
        listener = socket.create_server(("127.0.0.1", self._port), backlog=512)
        # A restarted server has the same port and data.
        self._port = listener.getsockname()[1]
        scheme = "https" if self._certificate else "http"
        self.app.endpoint = f"{scheme}://127.0.0.1:{self._port}/"
        server = _CosmosHttpServer(self._config())
        self._server = server
        self._thread = threading.Thread(target=server.run, args=([listener],), name="cosmos-server", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the Cosmos test server did not start")
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop the server and wait for its thread."""
        if self._server is not None and self._thread is not None:
            self._server.end()
            self._thread.join()
            self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _config(self) -> uvicorn.Config:
        certificate, private_key = self._certificate or (None, None)
        return uvicorn.Config(
            self.app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=3600,
            timeout_graceful_shutdown=1,
            ssl_certfile=certificate,
            ssl_keyfile=private_key,
        )
