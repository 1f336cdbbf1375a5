"""Command that runs the Azure Web PubSub emulator alone: ``python -m emulators.web_pubsub --access-key KEY``."""

import argparse
import asyncio
import os
import signal
import socket
import sys

import uvicorn
import uvloop

from emulators.web_pubsub.asgi import Application
from emulators.web_pubsub.service import WebPubSubEmulator
from emulators.web_pubsub.settings import SYSTEM_EVENTS, AnyEvent, HubSettings, ServiceSettings
from emulators.web_pubsub.sockets import MAX_MESSAGE_BYTES, PING_SECONDS, FrameSocket
from emulators.web_pubsub.upstream import HttpUpstream
from shared.observability.logs import configure_json_logs, parse_log_level

type ExitCode = int

_MIN_KEY_BYTES = 32
_GRACE_SECONDS = 3


def main() -> ExitCode:
    """Parse the command line and serve the emulator until it is stopped; return 0, or 1 if it cannot start."""
    arguments = _build_parser().parse_args()
    try:
        configure_json_logs(parse_log_level(os.environ.get("LOG_LEVEL") or "INFO"))
    except ValueError as error:
        print(f"the emulator does not start: LOG_LEVEL {error}", file=sys.stderr)
        return 1
    hubs = HubSettings(anonymous=arguments.anonymous)
    if arguments.upstream:
        hubs = HubSettings(
            upstream=HttpUpstream(arguments.upstream),
            system_events=frozenset(arguments.events),
            user_events=AnyEvent() if arguments.user_events else frozenset(),
            anonymous=arguments.anonymous,
        )
    try:
        serve(ServiceSettings(arguments.access_key, other_hubs=hubs), arguments.port)
    except OSError as error:
        print(f"the emulator does not start: {error}", file=sys.stderr)
        return 1
    return 0


def serve(settings: ServiceSettings, port: int) -> None:
    """Serve the emulator on 127.0.0.1 until SIGTERM or SIGINT; print ``ready URL`` when clients can connect.

    Raises:
        OSError: the port is in use.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        asyncio.run(_run_server(settings, listener), loop_factory=uvloop.new_event_loop)


async def _run_server(settings: ServiceSettings, listener: socket.socket) -> None:
    service = WebPubSubEmulator(settings)
    # After its shutdown, uvicorn raises the handled signal again, when nothing remains to be stopped.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    server = EmulatorServer(service, listener)
    try:
        await server.serve(sockets=[listener])
    finally:
        await service.close()


class EmulatorServer(uvicorn.Server):
    """uvicorn server that prints ``ready URL`` when it accepts connections, so that a parent process can wait."""

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
        """Start to accept connections and print ``ready URL``."""
        await super().startup(sockets)
        print(f"ready http://127.0.0.1:{self._listener.getsockname()[1]}", flush=True)


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m emulators.web_pubsub", description="Run the Azure Web PubSub emulator."
    )
    parser.add_argument("--port", type=int, default=8089, help="port on 127.0.0.1; 0 selects a free one")
    parser.add_argument(
        "--access-key",
        type=_parse_access_key,
        default=os.environ.get("WEB_PUBSUB_ACCESS_KEY"),
        required="WEB_PUBSUB_ACCESS_KEY" not in os.environ,
        help="signs access tokens and events, at least 32 bytes (WEB_PUBSUB_ACCESS_KEY)",
    )
    parser.add_argument("--upstream", help="URL of the event handler; {event} is replaced by the event name")
    parser.add_argument(
        "--events",
        nargs="*",
        default=sorted(SYSTEM_EVENTS),
        choices=sorted(SYSTEM_EVENTS),
        help="system events that are sent to the event handler (all)",
    )
    parser.add_argument("--user-events", action="store_true", help="also send user events to the event handler")
    parser.add_argument("--anonymous", action="store_true", help="accept clients without an access token")
    return parser


def _parse_access_key(text: str) -> str:
    if len(text.encode()) < _MIN_KEY_BYTES:
        raise argparse.ArgumentTypeError(f"the access key must have at least {_MIN_KEY_BYTES} bytes")
    return text


if __name__ == "__main__":
    sys.exit(main())
