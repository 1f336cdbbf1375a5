"""Ports of the live stream: message service (Azure Web PubSub or its emulator), its events, and access checks."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.auth.principals import Principal

ALL_STREAMS = "_streams"
"""Name of the group of all streams; no connection has this name, because ids cannot start with an underscore."""


@dataclass(frozen=True, slots=True)
class OpenStream:
    """Live stream that a listener has open.

    Attributes:
        connection_id: id of the stream in Web PubSub.
        user: user id of the listener.
    """

    connection_id: str
    user: str


class MessageSender(Protocol):
    """Sender of messages to groups of live streams."""

    async def publish(self, group: str, text: bytes) -> None:
        """Send one text message to every stream in a group.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE`` for failures that can be retried; INVALID
                ``LIVE_MESSAGE_REFUSED`` if the service will always reject this message.
        """
        ...

    async def has_streams(self, group: str) -> bool:
        """Return whether a group contains at least one stream.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``.
        """
        ...


class MessageService(MessageSender, Protocol):
    """Service that delivers messages to groups of live streams: Azure Web PubSub or its emulator."""

    def iterate_streams(self, group: str) -> AsyncIterator[OpenStream]:
        """Yield the streams in a group.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``.
        """
        ...

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Close a stream and send its listener the reason; do nothing if the stream is already closed.

        Raises:
            WorkspaceError: the same errors as :meth:`publish`.
        """
        ...

    async def create_stream_url(self, user_id: str, expires_at: datetime) -> str:
        """Return a WebSocket URL with which a client can open a stream for ``user_id`` until ``expires_at``.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``.
        """
        ...

    async def close(self) -> None:
        """Close the connections to Web PubSub."""
        ...


class StreamSender(Protocol):
    """Sender of messages to single streams, identified by their connection id in Web PubSub."""

    async def send(self, connection_id: str, text: bytes) -> None:
        """Send one text message to a stream; do nothing if the stream is closed.

        Raises:
            WorkspaceError: the same errors as ``MessageService.publish``.
        """
        ...

    async def is_open(self, connection_id: str) -> bool:
        """Return whether a stream is open.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``.
        """
        ...

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Close a stream; see ``MessageService.disconnect``."""
        ...


class EventSource(Protocol):
    """Authenticator of the HTTP calls that Web PubSub sends to this app."""

    async def require_call_from_web_pubsub(self, headers: Mapping[str, str]) -> None:
        """Verify that Web PubSub sent a call, from the call's headers (lower-case names).

        Raises:
            WorkspaceError: UNAUTHENTICATED.
        """
        ...

    def get_webhook_allowed_origin(self) -> str:
        """Return the host name from which Web PubSub sends calls, or an asterisk for any host name."""
        ...


class ResumePrincipal(Protocol):
    """Function that checks whether a team member who was authenticated earlier still has access."""

    async def __call__(self, member_id: str, token_id: str, expires_at: datetime, key_id: str) -> Principal:
        """Return the principal with all rights of the member.

        Raise WorkspaceError UNAUTHENTICATED if the access has ended.
        """
        ...
