"""Web PubSub of a simulated world: groups of live streams, over an unreliable network."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shared.errors import Kind, WorkspaceError
from shared.live_stream.ports import OpenStream
from shared.telemetry.json_text import parse_lossless_json

if TYPE_CHECKING:
    from tests.simulation.world import World


@dataclass
class SimulatedStream:
    """Open live stream of a simulated client.

    Attributes:
        user: user id of the listener.
        groups: groups that it has joined.
        opened_at: time at which it joined them, in microseconds of the world.
        received: messages that have arrived.
        is_open: False after the service has closed it.
    """

    user: str
    groups: Sequence[str]
    opened_at: int
    received: list[Any] = field(default_factory=list)
    is_open: bool = True


class SimulatedWebPubSub:
    """MessageService and StreamSender implementation that all processes of a world share.

    An error can also mean that only the reply was lost.

    Args:
        world: world of the service.

    Attributes:
        streams: all streams by their ids.
        published: times at which messages were sent to their group, by connection and id, in microseconds.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self.streams: dict[str, SimulatedStream] = {}
        self.published: dict[tuple[str, str], int] = {}

    async def publish(self, group: str, text: bytes) -> None:
        """Send a message to all streams of a group; an injected error can hide that it was sent."""
        await self._receive()
        message = parse_lossless_json(text)
        self.published[group, message["ID"]] = self._world.scheduler.now
        for stream in self._select_streams(group):
            stream.received.append(message)
        self._reply_or_fail()

    async def has_streams(self, group: str) -> bool:
        """Return whether a group has an open stream."""
        await self._receive()
        return bool(self._select_streams(group))

    async def iterate_streams(self, group: str) -> AsyncIterator[OpenStream]:
        """Yield the open streams of a group."""
        await self._receive()
        for name, stream in list(self.streams.items()):
            if stream.is_open and group in stream.groups:
                yield OpenStream(name, stream.user)

    async def send(self, connection_id: str, text: bytes) -> None:
        """Send a message to one stream."""
        await self._receive()
        stream = self.streams[connection_id]
        if stream.is_open:
            stream.received.append(parse_lossless_json(text))
        self._reply_or_fail()

    async def is_open(self, connection_id: str) -> bool:
        """Return whether a stream is open."""
        await self._receive()
        return self.streams[connection_id].is_open

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Close a stream."""
        await self._receive()
        self._world.trace(f"stream {connection_id} is closed: {reason}")
        self.streams[connection_id].is_open = False
        self._reply_or_fail()

    async def create_stream_url(self, user_id: str, expires_at: datetime) -> str:
        """Return a constant address, because the simulation opens streams without it."""
        return f"wss://pubsub.example/{user_id}?{expires_at:%H%M}"

    async def close(self) -> None:
        """Do nothing: this fake service holds no resources."""

    def _select_streams(self, group: str) -> list[SimulatedStream]:
        return [stream for stream in self.streams.values() if stream.is_open and group in stream.groups]

    async def _receive(self) -> None:
        faults, draw = self._world.faults, self._world.random.random
        await asyncio.sleep(draw() * (5 if draw() < faults.slow else 0.02))
        if draw() < max(faults.request_lost, faults.busy):
            raise _build_error()

    def _reply_or_fail(self) -> None:
        if self._world.random.random() < self._world.faults.reply_lost:
            raise _build_error()


def _build_error() -> WorkspaceError:
    return WorkspaceError(Kind.UNAVAILABLE, "LIVE_STREAM_UNAVAILABLE", "Web PubSub does not respond.")
