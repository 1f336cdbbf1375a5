"""Local live stream: gateway and Web PubSub emulator in the process of the host, and replays for new clients.

Only an app without a configured Web PubSub needs it; the life cycle of the host works without it.
"""

import asyncio
import os
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final

from emulators.web_pubsub.asgi import Application
from emulators.web_pubsub.clients import reject_handshake
from emulators.web_pubsub.connection import ClientConnection
from emulators.web_pubsub.payloads import DataType, Payload
from emulators.web_pubsub.service import WebPubSubEmulator
from emulators.web_pubsub.settings import HubSettings, Prelude, ServiceSettings
from emulators.web_pubsub.upstream import AsgiUpstream
from local.host.hub_access import HubAccess
from local.host.shutdown import ShutdownSignal
from local.http_server.application import Message, Receive, Send
from local.http_server.error_replies import request_id
from local.http_server.request_head import check_host
from shared.backends.embedded.hub import HubReader
from shared.errors import WorkspaceError
from shared.live_stream.credentials import MOVED_HEADER
from shared.live_stream.filters import StreamFilters
from shared.live_stream.history import History
from shared.live_stream.replay import IngestionProgress, Replay
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import change
from shared.telemetry.models import IMPULSES_HUB
from shared.timestamps import now

_TABLE_GROUP, _LIVE_GROUP = "adx", "live"
_POLL_SECONDS = 0.02
_WAIT_SECONDS = 30.0
_LOGGER = get_logger("local.live_replay")
HUB = "live"
ROUTE = "/oi-api/live-stream"
HANDSHAKES: Final = 2
"""Most concurrent handshakes; others wait, so that requests are not delayed."""

REFUSAL_SECONDS: Final = 1.0
"""Delay of a 429 reply, so that a client that retries immediately cannot overload the host."""

_EVENTS = f"{ROUTE}/events"
_CLIENTS, _API = "/client/hubs/", "/api/hubs/"
_LIMITS = frozenset({"ratelimit", "ratelimit-policy"})
_REPLACED = frozenset({b"authorization", MOVED_HEADER.encode(), b"x-request-id"})


class ReplayPrelude:
    """Prelude of a stream: replays impulses for the parameters ``since`` and ``windowSec``.

    Args:
        progress: progress of the readers of the hub.
    """

    def __init__(self, progress: IngestionProgress) -> None:
        self._progress = progress

    def __call__(
        self, connection: ClientConnection, query: Mapping[str, Sequence[str]]
    ) -> Coroutine[None, None, None] | None:
        """Hold back live impulses and return the replay, None if the client requests no replay."""
        # The app validated these parameters when it accepted the client.
        filters = StreamFilters.model_validate({name: values[0] for name, values in query.items()})
        since = filters.find_replay_start(now())
        if since is None:
            return None
        connection.hold()
        return self._replay(connection, filters, since)

    async def _replay(self, connection: ClientConnection, filters: StreamFilters, since: datetime) -> None:
        from shared.wiring import services  # noqa: PLC0415  the settings are complete only now

        wired = services()
        connections = filters.select_connections(await wired.catalog.current())
        await Replay(History(wired.queries.engine), self._progress).run(_ClientStream(connection), connections, since)


class _ClientStream:
    """Stream port over a client of the emulator."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.hold: Callable[[], None] = connection.hold
        self.has_overflowed: Callable[[], bool] = connection.has_overflowed

    async def send(self, texts: Sequence[bytes]) -> bool:
        """Send impulses at the client's pace."""
        return await self._connection.send_all_when_drained([Payload(text, DataType.TEXT) for text in texts])

    async def release(self, repeated: Callable[[bytes], bool]) -> None:
        """Continue with live impulses."""
        await self._connection.release(repeated)


class HubProgress:
    """The IngestionProgress port over the offsets of the hub's consumer groups."""

    def __init__(self, hub: HubAccess, stopping: ShutdownSignal) -> None:
        self._hub = hub
        self._stopping = stopping

    async def wait_for_table(self) -> None:
        """Wait until the query table has read all current events."""
        await self._wait_for_group(_TABLE_GROUP)

    async def wait_for_live(self) -> None:
        """Wait until the live stream has read all current events."""
        await self._wait_for_group(_LIVE_GROUP)

    async def _wait_for_group(self, group: str) -> None:
        """Wait for a consumer group, at most half a minute; log a warning if it is slower."""
        ends = await self._hub.run(_last_numbers)
        for _ in range(int(_WAIT_SECONDS / _POLL_SECONDS)):
            read = await self._hub.run(lambda reader: _committed_numbers(reader, group))
            if all(read[partition] >= end for partition, end in ends.items()):
                return
            if await self._stopping.wait_for(_POLL_SECONDS):
                return
        _LOGGER.warning(
            "a replay may have a gap or a duplicate, because a consumer group is slow", extra=fields(group=group)
        )


def _last_numbers(reader: HubReader) -> dict[str, int]:
    return {
        partition: reader.last_sequence_number(IMPULSES_HUB, partition) for partition in reader.partitions(IMPULSES_HUB)
    }


def _committed_numbers(reader: HubReader, group: str) -> dict[str, int]:
    return {
        partition: reader.read_offset(IMPULSES_HUB, group, partition) for partition in reader.partitions(IMPULSES_HUB)
    }


def access_key(path: Path) -> str:
    """Return the access key in a file that only its owner can read; a missing file is created."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(os.urandom(32).hex())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    return path.read_text()


class LiveStreamGateway:
    """ASGI application of the host: routes requests to the app and streams to the Web PubSub emulator.

    Args:
        app: application of the function app.
        key: access key of the emulator.
        prelude: work that runs for a client before live messages.
    """

    def __init__(self, app: Application, key: str, prelude: Prelude) -> None:
        self._app = app
        events = AsgiUpstream(app, _EVENTS)
        hub = HubSettings(
            events, frozenset({"connect", "disconnected"}), anonymous=True, prelude=prelude, forwarded_headers=_LIMITS
        )
        self._service = WebPubSubEmulator(ServiceSettings(key, {HUB: hub}, count_clients=_count_clients))
        # A client that opens streams in a loop must not block the event loop for others.
        self._handshakes = asyncio.Semaphore(HANDSHAKES)

    async def close(self) -> None:
        """Close the emulator."""
        await self._service.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request or client (ASGI 3)."""
        path = scope["raw_path"].decode("latin-1")
        if scope["type"] == "http":
            serve = self._service if path.startswith(_API) else self._app
            await serve(scope, receive, send)
        elif path.startswith(_CLIENTS):
            await self._service(scope, receive, send)
        elif path.rstrip("/").lower() == ROUTE:
            await self._upgrade(scope, receive, send)
        else:
            await self._app(*_without_upgrade(scope, receive, send))

    async def _upgrade(self, scope: Message, receive: Receive, send: Send) -> None:
        """Forward a client to the emulator with the path and credential header that the gateway uses."""
        given_id = request_id(scope["headers"])
        try:
            check_host(scope["headers"], scope["http_version"])
        except WorkspaceError as error:
            await receive()
            await reject_handshake(scope, send, error)
            return
        headers = [(name, value) for name, value in scope["headers"] if name not in _REPLACED]
        moved = [(MOVED_HEADER.encode(), value) for name, value in scope["headers"] if name == b"authorization"]
        target = f"{_CLIENTS}{HUB}"
        led = {
            "path": target,
            "raw_path": target.encode(),
            "headers": [*headers, *moved, (b"x-request-id", given_id.encode())],
        }

        async with AsyncExitStack() as turn:
            await turn.enter_async_context(self._handshakes)

            async def answer(message: Message) -> None:
                if message["type"] == "websocket.accept":
                    message["headers"] = [*message.get("headers", ()), (b"x-request-id", given_id.encode())]
                await turn.aclose()
                if message.get("status") == HTTPStatus.TOO_MANY_REQUESTS:
                    await asyncio.sleep(REFUSAL_SECONDS)
                await send(message)

            await self._service({**scope, **led}, receive, answer)


def _count_clients(change_of_count: int) -> None:
    change("workspace.live.clients", change_of_count)


def _without_upgrade(scope: Message, receive: Receive, send: Send) -> tuple[Message, Receive, Send]:
    """Return a handshake as a plain request, for a route without WebSockets (RFC 9110 section 7.8)."""
    request = {**scope, "type": "http", "method": "GET", "scheme": "http"}

    async def body() -> Message:
        await receive()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def answer(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return request, body, answer
