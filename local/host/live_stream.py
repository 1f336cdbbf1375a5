"""Live streams of the local host: a Web PubSub emulator in its process, its gateway, and replays for new clients.

This module is separate because an app with a configured Web PubSub service does not need it.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

from emulators.web_pubsub.asgi import Application
from emulators.web_pubsub.clients import reject_handshake
from emulators.web_pubsub.connection import BROKEN, TOKEN_EXPIRED, ClientConnection
from emulators.web_pubsub.hub import Hub
from emulators.web_pubsub.payloads import DataType, Payload
from emulators.web_pubsub.service import WebPubSubEmulator
from emulators.web_pubsub.settings import HubSettings, Prelude, ServiceSettings
from emulators.web_pubsub.upstream import AsgiUpstream
from local.host.hub_access import HubAccess
from local.host.shutdown import ShutdownSignal
from local.host.triggers import TABLE_GROUP
from local.http_server.application import Message, Receive, Send
from local.http_server.error_replies import read_or_create_request_id
from local.http_server.request_head import check_host_header
from shared.backends.embedded import durable_files
from shared.backends.embedded.hub import HubReader
from shared.errors import WorkspaceError
from shared.fair_use.acting_member import use_acting_member
from shared.http import versions
from shared.live_stream.filters import StreamFilters
from shared.live_stream.history import History
from shared.live_stream.replay import (
    IngestionProgress,
    Replay,
    ReplayError,
    ReplayMemory,
    ReplayPlaces,
    TakeTurn,
    create_replay_scheduler,
)
from shared.live_stream.service import MOVED_HEADER, Listener
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import add_to_level_metric
from shared.telemetry.models import IMPULSES_HUB
from shared.timestamps import now

_LIVE_GROUP = "live"
_POLL_SECONDS = 0.02
_WAIT_SECONDS = 30.0
_KEY_BYTES = 32
_LOGGER = get_logger("local.live_replay")
HUB = "live"
ROUTE = "/oi-api/live-stream"
HANDSHAKES: Final = 2
"""Maximum number of concurrent WebSocket handshakes; others wait, so that other requests are not delayed."""

REFUSAL_SECONDS: Final = 1.0
"""Delay in seconds of a 429 reply, so that a client that retries immediately cannot overload the host."""

_EVENTS = f"{ROUTE}/events"
_VERSION_HEADER: Final = versions.HEADER.lower().encode()
_CLIENTS, _API = "/client/hubs/", "/api/hubs/"
_LIMITS = frozenset({"ratelimit", "ratelimit-policy"})
_REPLACED = frozenset({b"authorization", MOVED_HEADER.encode(), b"x-request-id"})


class ReplayPrelude:
    """Callable that starts the replay of earlier telemetry events (impulses) if a new client requests a replay.

    The replays of this host take turns, and their number is limited. Replays of one member can occupy neither all turns
    nor the whole limit, so that replays of other members can run, too.

    Args:
        progress: waits until the readers of the event hub have read all current events.
    """

    def __init__(self, progress: IngestionProgress) -> None:
        self._progress = progress
        self._scheduler = create_replay_scheduler()
        self._places = ReplayPlaces()
        self._memory = ReplayMemory()

    def __call__(
        self, connection: ClientConnection, query: Mapping[str, Sequence[str]]
    ) -> Coroutine[None, None, None] | None:
        """Start to buffer live events for a client, and return the coroutine that sends the earlier events.

        Return None, without buffering, if the client requests no replay.
        """
        # The app validated these parameters when it accepted the client.
        filters = StreamFilters.model_validate({name: values[0] for name, values in query.items()})
        since = filters.compute_replay_start(now())
        if since is None:
            return None
        connection.start_buffering()
        return self._replay_or_close_connection(connection, filters, since)

    async def _replay_or_close_connection(
        self, connection: ClientConnection, filters: StreamFilters, since: datetime
    ) -> None:
        """Replay events whenever it is the member's turn; close the connection with a reason if this fails."""
        member_id = Listener.from_user_id(connection.user_id or "").member_id
        try:
            with self._places.occupy_place(member_id), use_acting_member(member_id):
                await self._replay_events(connection, filters, since, partial(self._scheduler.occupy_slot, member_id))
        except ReplayError as error:
            connection.close(BROKEN, str(error))

    async def _replay_events(
        self, connection: ClientConnection, filters: StreamFilters, since: datetime, take_turn: TakeTurn
    ) -> None:
        from shared.wiring import services  # noqa: PLC0415  the settings are complete only now

        wired = services()
        connections = filters.select_connection_lookups(await wired.catalog.get_current_catalog())
        history = History(wired.queries.engine, runtime=wired.runtime)
        replay = Replay(history, self._progress, take_turn, memory=self._memory, runtime=wired.runtime)
        await replay.replay_to_stream(_ClientStream(connection), connections, since)


class _ClientStream:
    """Adapter through which a replay sends telemetry events to a client of the Web PubSub emulator."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.start_buffering: Callable[[], None] = connection.start_buffering
        self.has_overflowed: Callable[[], bool] = connection.has_overflowed

    async def try_send(self, texts: Sequence[bytes]) -> bool:
        """Send replayed events as fast as the client accepts them; return whether the client is still connected."""
        # A payload stores its frame, so payloads are created only when the client accepts them, to save memory.
        return await self._connection.try_send_all_when_drained(Payload(text, DataType.TEXT) for text in texts)

    async def send_buffered(self, is_repeated: Callable[[bytes], bool]) -> None:
        """Send the buffered live events that the replay did not contain.

        Afterwards, live events are sent immediately.
        """
        await self._connection.send_buffered_messages(is_repeated)


class HubProgress:
    """Implementation of IngestionProgress: waits until consumer groups have read all current events of the hub.

    It compares the groups' offsets with the sequence numbers of the newest events.

    Args:
        hub: access to the hub.
        stopping: signal that the host stops.
        runs_engine: whether this host runs the query engine, which reads the hub.
    """

    def __init__(self, hub: HubAccess, stopping: ShutdownSignal, *, runs_engine: bool) -> None:
        self._hub = hub
        self._stopping = stopping
        self._runs_engine = runs_engine

    async def is_hub_read_by_engine(self) -> bool:
        """Return whether a query engine reads the hub: this host's engine, or another one that has read the hub before.

        Raises:
            sqlite3.Error: the file of the hub cannot be read.
        """
        if self._runs_engine:
            return True
        return await self._hub.run_with_reader(lambda reader: reader.has_offset(IMPULSES_HUB, TABLE_GROUP))

    async def wait_for_query_table(self) -> None:
        """Wait, at most 30 seconds, until the table that queries read contains all current events of the hub.

        Return immediately if the query engine does not read the hub.
        """
        if await self.is_hub_read_by_engine():
            await self._wait_until_group_has_read_events(TABLE_GROUP)

    async def wait_for_live_stream(self) -> None:
        """Wait, at most 30 seconds, until the live stream has read all current events of the hub."""
        await self._wait_until_group_has_read_events(_LIVE_GROUP)

    async def _wait_until_group_has_read_events(self, group: str) -> None:
        """Wait until a consumer group has read all current events; after 30 seconds, log a warning and return."""
        ends = await self._hub.run_with_reader(_read_last_sequence_number_by_partition)
        for _ in range(int(_WAIT_SECONDS / _POLL_SECONDS)):
            read = await self._hub.run_with_reader(lambda reader: _read_committed_offset_by_partition(reader, group))
            if all(read[partition] >= end for partition, end in ends.items()):
                return
            if await self._stopping.wait_until_set(_POLL_SECONDS):
                return
        _LOGGER.warning(
            "a replay may have a gap or a duplicate, because a consumer group is slow", extra=fields(group=group)
        )


def _read_last_sequence_number_by_partition(reader: HubReader) -> dict[str, int]:
    return {
        partition: reader.read_last_assigned_sequence_number(IMPULSES_HUB, partition)
        for partition in reader.list_partition_ids(IMPULSES_HUB)
    }


def _read_committed_offset_by_partition(reader: HubReader, group: str) -> dict[str, int]:
    return {
        partition: reader.read_offset(IMPULSES_HUB, group, partition)
        for partition in reader.list_partition_ids(IMPULSES_HUB)
    }


def load_or_create_access_key(path: Path) -> str:
    """Read the emulator's access key from a file that only its owner can read; create the file if it is missing.

    Raises:
        OSError: the file cannot be read or created, or has less than 64 characters, so that the key could be guessed.
    """
    if not path.exists():
        durable_files.write_temporary_file(path, os.urandom(_KEY_BYTES).hex().encode(), 0o600).replace(path)
    key = path.read_text()
    if len(key) < 2 * _KEY_BYTES:
        raise OSError(f"the access key in {path} must have {2 * _KEY_BYTES} characters; restore or delete the file")
    return key


class DirectSender:
    """Implementation of MessageSender: sends messages to clients of the emulator in this process.

    Args:
        hub: hub of the emulator.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def publish(self, group: str, text: bytes) -> None:
        """Send one text message to every stream in a group."""
        await self._hub.publish(group, text, DataType.TEXT)

    async def has_streams(self, group: str) -> bool:
        """Return whether a group contains at least one stream."""
        return bool(self._hub.get_group_connections(group))


class LiveStreamGateway:
    """ASGI application of the local host: passes requests to the app, and live streams to the Web PubSub emulator.

    Args:
        app: ASGI application that calls the app's functions.
        key: access key of the emulator.
        prelude: prepares the replay that a new client receives before its live messages.

    Attributes:
        direct_sender: sender of messages to the emulator's clients without HTTP.
    """

    def __init__(self, app: Application, key: str, prelude: Prelude) -> None:
        self._app = app
        events = AsgiUpstream(app, _EVENTS)
        hub = HubSettings(
            events,
            frozenset({"connect", "disconnected"}),
            anonymous=True,
            prelude=prelude,
            forwarded_headers=_LIMITS,
            # The app closes only streams whose authorisation has ended; they get the code of an expired token.
            close_code=TOKEN_EXPIRED,
        )
        self._service = WebPubSubEmulator(
            ServiceSettings(key, {HUB: hub}, count_clients=_record_change_of_client_count)
        )
        self.direct_sender = DirectSender(self._service.get_or_create_hub(HUB))
        # A client that opens streams in a loop must not block the event loop for others.
        self._handshakes = asyncio.Semaphore(HANDSHAKES)

    async def close(self) -> None:
        """Close the emulator and its connections."""
        await self._service.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one HTTP request or WebSocket client (ASGI 3)."""
        path = scope["raw_path"].decode("latin-1")
        if scope["type"] == "http":
            serve = self._service if path.startswith(_API) else self._app
            await serve(scope, receive, send)
        elif path.startswith(_CLIENTS):
            await self._service(scope, receive, send)
        elif path == ROUTE:
            await self._forward_client_to_emulator(scope, receive, send)
        else:
            await self._app(*_handshake_to_plain_request(scope, receive, send))

    async def _forward_client_to_emulator(self, scope: Message, receive: Receive, send: Send) -> None:
        """Forward a WebSocket handshake to the emulator, with the path and headers that a gateway sends on Azure."""
        given_id = read_or_create_request_id(scope["headers"])

        async def send_with_version(message: Message) -> None:
            _add_version_header(message)
            await send(message)

        try:
            check_host_header(scope["headers"], scope["http_version"])
        except WorkspaceError as error:
            await receive()
            await reject_handshake(scope, send_with_version, error)
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

            async def send_reply(message: Message) -> None:
                if message["type"] == "websocket.accept":
                    message["headers"] = [*message.get("headers", ()), (b"x-request-id", given_id.encode())]
                await turn.aclose()
                if message.get("status") == HTTPStatus.TOO_MANY_REQUESTS:
                    await asyncio.sleep(REFUSAL_SECONDS)
                await send_with_version(message)

            await self._service({**scope, **led}, receive, send_reply)


def _record_change_of_client_count(change: int) -> None:
    add_to_level_metric("workspace.live.clients", change)


def _add_version_header(message: Message) -> None:
    """Add the header with the API version to an ASGI message that begins the reply to a handshake, if it is missing."""
    if message["type"] in ("websocket.accept", "websocket.http.response.start"):
        headers = list(message.get("headers", ()))
        if all(name != _VERSION_HEADER for name, _ in headers):
            headers.append((_VERSION_HEADER, versions.CURRENT.encode()))
        message["headers"] = headers


def _handshake_to_plain_request(scope: Message, receive: Receive, send: Send) -> tuple[Message, Receive, Send]:
    """Convert a WebSocket handshake to a plain HTTP request for a route without WebSocket (RFC 9110 section 7.8)."""
    request = {**scope, "type": "http", "method": "GET", "scheme": "http"}

    async def receive_body() -> Message:
        if (await receive())["type"] == "websocket.disconnect":
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send_reply(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return request, receive_body, send_reply
