"""uvicorn's WebSocket protocol, extended so that the emulator can write serialised frames directly to the socket.

To use this protocol, serve with ``uvicorn.Config(..., ws=FrameSocket, ws_per_message_deflate=False)``.
"""

import socket
from collections.abc import Callable, Sequence
from typing import ClassVar, cast

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request
from websockets.protocol import State

from emulators.web_pubsub.asgi import Message
from emulators.web_pubsub.error_replies import (
    build_handshake_error_reply,
    build_unreadable_handshake_error,
    find_handshake_error,
    serialize_reply,
)
from shared.errors import WorkspaceError

EXTENSION = "local.frames"
"""Key of the client's socket in the ``extensions`` of an ASGI scope."""

MAX_MESSAGE_BYTES = 1024 * 1024
"""Maximum size in bytes of a client's message; a larger message closes the connection with code 1009."""

PING_SECONDS = 60.0
"""Interval of pings and timeout of pongs; long, because a slow client reads the ping after all queued data."""

_LINGER_SECONDS = 2.0
_END_SECONDS = 10.0
_STOP_SECONDS = 1.0
_KERNEL_BYTES = 256 * 1024
"""Size of the kernel's send buffer; it is small, so that the data of a slow client waits in the outbox instead."""


class FrameSocket(WebSocketsSansIOProtocol):
    """WebSocket of one client (RFC 6455) to which serialised frames can be written directly."""

    rejection_headers: ClassVar[Sequence[tuple[bytes, bytes]]] = ()
    """Headers that a subclass adds to the replies to invalid handshakes."""

    _on_writable: Callable[[], None] | None = None

    def handle_connect(self, event: Request) -> None:
        """Reject an invalid handshake; else call the application, with this socket in the ASGI scope."""
        error = find_handshake_error(event, self.conn)
        if error is not None:
            self._reject_handshake(error, event)
            return
        super().handle_connect(event)
        cast("Message", self.scope)["extensions"][EXTENSION] = self
        raw: socket.socket | None = self.transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)

    def can_accept_data(self) -> bool:
        """Return whether the socket accepts more data now: its buffer is not full, and it is not closed."""
        return self.writable.is_set() and not self.close_sent and not self.disconnected

    def write(self, data: bytes) -> None:
        """Write complete frames; ignore frames after the closing handshake has begun (RFC 6455 section 5.5.1)."""
        if self.conn.state is State.OPEN and not self.transport.is_closing():
            self.transport.write(data)

    def count_buffered_bytes(self) -> int:
        """Return the number of bytes that were written to the socket but not sent yet."""
        return self.transport.get_write_buffer_size()

    def call_when_writable(self, callback: Callable[[], None]) -> None:
        """Register a function that is called each time the socket accepts data again, and when the socket is lost."""
        self._on_writable = callback

    def close_with_code(self, code: int, reason: str) -> None:
        """Start the closing handshake immediately; abort the connection if the client does not reply.

        Args:
            code: close code (RFC 6455 section 7.4).
            reason: reason that the client receives, up to 123 bytes of UTF-8.
        """
        if self.close_sent or self.disconnected or self.conn.state is not State.OPEN:
            return
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.conn.send_close(code, reason)
        self._write_pending_frames()
        self.close_sent = True
        self._resume_reading()
        self.close_timer = self.loop.call_later(_END_SECONDS, self.transport.abort)

    def keepalive_timeout(self) -> None:
        """Close the connection of a client that has not answered a ping; abort it if the client does not read."""
        self.stop_keepalive()
        self.close_with_code(CloseCode.INTERNAL_ERROR, f"The client answered no ping for {PING_SECONDS:g} seconds.")

    def handle_close(self, event: Frame) -> None:
        """Complete the closing handshake; abort the connection if the client does not read all data that was sent."""
        super().handle_close(event)
        if self.close_timer is None:
            self.close_timer = self.loop.call_later(_END_SECONDS, self.transport.abort)

    async def send(self, message: ASGISendEvent) -> None:
        """Send an ASGI message of the application.

        The handshake is complete after the last body part of an HTTP response that rejects the client.
        """
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the application and all waiting senders that the connection is lost."""
        super().connection_lost(exc)
        self._call_writable_callback()

    def resume_writing(self) -> None:
        """Resume writing (and reading, if paused), because the transport has sent most of its buffered data."""
        super().resume_writing()
        if self.queue.empty():
            self._resume_reading()
        self._call_writable_callback()

    def shutdown(self) -> None:
        """Close the connection with code 1001, because the server stops; abort if the client does not read."""
        if self.handshake_complete and not self.close_sent:
            self.close_with_code(CloseCode.GOING_AWAY, "The host stops.")
        super().shutdown()
        self.loop.call_later(_STOP_SECONDS, self.transport.abort)

    def handle_ping(self) -> None:
        """Reply to a ping; pause reading if the client does not read the pongs."""
        super().handle_ping()
        if not self.writable.is_set() and not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def send_receive_event_to_app(self) -> None:
        """Pass a client's message to the application; invalid UTF-8 closes the connection (RFC 6455 section 8.1)."""
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                self.conn.fail(CloseCode.INVALID_DATA, "a text message is not UTF-8")
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; ignore them after the client has violated the protocol (RFC 6455 section 7.1.7)."""
        if self.conn.eof_sent:
            return
        super().data_received(data)
        if not self.handshake_initiated and self.conn.handshake_exc is not None:
            self._reject_handshake(build_unreadable_handshake_error(self.conn), None)

    def handle_parser_exception(self) -> None:
        """Send a close frame after the client has violated the protocol.

        The TCP connection is closed later, because a reset could prevent the client from reading the close code.
        """
        sent = self.conn.close_sent
        if sent is not None and not self.close_sent:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": sent.code, "reason": sent.reason})
        self.close_sent = True
        self._write_pending_frames()
        self.stop_keepalive()
        if not self.transport.is_closing():
            self.transport.write_eof()
            self._resume_reading()
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _reject_handshake(self, error: WorkspaceError, handshake: Request | None) -> None:
        """Reply to an invalid handshake with an HTTP error and close the connection."""
        self.handshake_initiated = self.handshake_complete = self.close_sent = True
        reply = build_handshake_error_reply(error, handshake)
        self.transport.write(serialize_reply(reply, [*self.default_headers, *self.rejection_headers]))
        self.transport.close()

    def _write_pending_frames(self) -> None:
        self.transport.write(b"".join(self.conn.data_to_send()))

    def _resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    def _call_writable_callback(self) -> None:
        if self._on_writable is not None:
            self._on_writable()
