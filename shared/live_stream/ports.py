"""Ports of the live stream."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.auth.principals import Principal

ALL_STREAMS = "_streams"
"""The group of all streams; the underscore cannot start a connection's lookup."""


@dataclass(frozen=True, slots=True)
class OpenStream:
    """An open stream.

    Attributes:
        connection_id: id of the stream at the message service.
        user: user id of the listener.
    """

    connection_id: str
    user: str


class MessageService(Protocol):
    """Service that delivers messages to groups of streams."""

    async def publish(self, group: str, text: bytes) -> None:
        """Send one text message to every stream in a group.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE`` for failures that can be retried; INVALID
                ``LIVE_MESSAGE_REFUSED`` if the service will always reject this message.
        """
        ...

    async def has_streams(self, group: str) -> bool:
        """Return whether a stream is in a group.

        Raises:
            WorkspaceError: as ``publish``.
        """
        ...

    def list_streams(self, group: str) -> AsyncIterator[OpenStream]:
        """Yield the streams in a group.

        Raises:
            WorkspaceError: as ``publish``.
        """
        ...

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Close a stream; a closed stream is ignored.

        Raises:
            WorkspaceError: as ``publish``.
        """
        ...

    async def link(self, user: str, expires_at: datetime) -> str:
        """Return a WebSocket URL that opens a stream as a user, valid until an instant.

        Raises:
            WorkspaceError: as ``publish``.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class StreamSender(Protocol):
    """Operations on one stream, identified by its connection id at the message service."""

    async def send(self, connection_id: str, text: bytes) -> None:
        """Send one text message to a stream; a closed stream is ignored.

        Raises:
            WorkspaceError: as ``MessageService.publish``.
        """
        ...

    async def is_open(self, connection_id: str) -> bool:
        """Return whether a stream is open.

        Raises:
            WorkspaceError: as ``MessageService.publish``.
        """
        ...

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Close a stream, as ``MessageService.disconnect``."""
        ...


class EventSource(Protocol):
    """Distinguishes calls of the message service from other calls."""

    async def verify(self, headers: Mapping[str, str]) -> None:
        """Verify by its headers (lower-case names) that the message service sent a call.

        Raises:
            WorkspaceError: UNAUTHENTICATED.
        """
        ...

    def origin(self) -> str:
        """Return the host name that the service announces, or an asterisk for any."""
        ...


class ResumePrincipal(Protocol):
    """Checks whether a previously authenticated member still has access."""

    async def __call__(self, member_id: str, token_id: str, expires_at: datetime) -> Principal:
        """Return the principal with all rights of the member; raise WorkspaceError UNAUTHENTICATED otherwise."""
        ...


type Clock = Callable[[], float]
type Sleep = Callable[[float], Awaitable[None]]
