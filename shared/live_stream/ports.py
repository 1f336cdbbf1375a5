"""What the live stream needs from the outside."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.auth.principals import Principal

ALL_STREAMS = "_streams"
"""The group that every stream is in; begins with an underscore, as no connection's lookup does."""


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A stream that is open.

    Attributes:
        connection_id: the message service's own.
        user: the listener's name.
    """

    connection_id: str
    user: str


class MessageService(Protocol):
    """Hands messages to those who listen."""

    async def publish(self, group: str, text: bytes) -> None:
        """Send one text message to every stream in a group.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``: worth another try; INVALID
                ``LIVE_MESSAGE_REFUSED``: the service will never take this one.
        """
        ...

    async def has_streams(self, group: str) -> bool:
        """Return whether a stream is in a group.

        Raises:
            WorkspaceError: as ``publish``.
        """
        ...

    def list_streams(self, group: str) -> AsyncIterator[OpenStream]:
        """Give the streams in a group.

        Raises:
            WorkspaceError: as ``publish``.
        """
        ...

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Close a stream; one that is gone already is fine.

        Raises:
            WorkspaceError: as ``publish``.
        """
        ...

    async def link(self, user: str, expires_at: datetime) -> str:
        """Return a WebSocket URL that opens a stream as a user, until an instant.

        Raises:
            WorkspaceError: as ``publish``.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class StreamSender(Protocol):
    """Handles streams one by one, by the connection ids of the message service."""

    async def send(self, connection_id: str, text: bytes) -> None:
        """Send one text message to one stream; one that is gone already is fine.

        Raises:
            WorkspaceError: as ``MessageService.publish``.
        """
        ...

    async def is_open(self, connection_id: str) -> bool:
        """Return whether a stream is there.

        Raises:
            WorkspaceError: as ``MessageService.publish``.
        """
        ...

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Close a stream, as ``MessageService.disconnect``."""
        ...


class EventSource(Protocol):
    """Tells the message service's own calls from anybody else's."""

    async def verify(self, headers: Mapping[str, str]) -> None:
        """Return when the headers, by lower-case name, are those of a call of the message service.

        Raises:
            WorkspaceError: UNAUTHENTICATED.
        """
        ...

    def origin(self) -> str:
        """Return the host name that the service announces itself with, or an asterisk for any."""
        ...


class ResumePrincipal(Protocol):
    """Judges whether somebody who proved who they are before still may."""

    async def __call__(self, member_id: str, token_id: str, expires_at: datetime) -> Principal:
        """Return the principal with all rights of the member; raise WorkspaceError UNAUTHENTICATED otherwise."""
        ...


type Clock = Callable[[], float]
type Sleep = Callable[[float], Awaitable[None]]
