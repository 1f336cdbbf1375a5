"""Connections of callers, with limits on their number and on the time for a request.

It is the only module that depends on the internals of uvicorn's HTTP protocol.
"""

import asyncio
import resource
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from local.http_server.error_replies import (
    RawHeaders,
    check_protocol,
    error_reply,
    parse_failure,
    request_id,
    serialize_reply,
    timeout_reply,
)
from local.http_server.request_head import HeadSizeCounter, split_target
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply
from shared.observability.logs import fields, get_logger

_LOGGER = get_logger("local.connections")
_MAX_CONNECTIONS = 1000
_STREAMS_SHARE = 0.8
"""Largest share of live streams; other connections are reserved for requests."""
_LINGER_SECONDS = 1.0
"""Delay of a close after an error reply; an immediate close would reset the connection and lose the reply."""


def _connections() -> int:
    """Return the connection limit: at most half of the open files of the process."""
    return min(_MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of connections.

    Attributes:
        connections: most open connections.
        seconds: most seconds for all headers of a request, between bytes of its body, and before the first request of
            a connection.
    """

    connections: int = field(default_factory=_connections)
    seconds: float = 30.0

    @property
    def streams(self) -> int:
        """Most concurrent WebSockets."""
        return int(self.connections * _STREAMS_SHARE)


class LimitedConfig(uvicorn.Config):
    """Options of the server, with connection limits."""

    limits: ConnectionLimits
    idle_order: "OrderedDict[HttpConnection, None]"
    """Connections without WebSockets, longest idle first."""


class _Stage(Enum):
    """Part of a request that is expected next."""

    NOTHING = auto()
    HEADERS = auto()
    BODY = auto()


class HttpConnection(HttpToolsProtocol):
    """uvicorn connection with timeouts for incomplete requests."""

    def __init__(
        self,
        config: LimitedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._idle_order = config.idle_order
        self._stage = _Stage.NOTHING
        self._begun = self._heard = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._is_rejected = False
        self._upgraded = False
        self._sizes = HeadSizeCounter()
        self._data = b""
        self._fault: WorkspaceError | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # the type in uvicorn
        """Accept a connection; at the limit, close an idle one, or reject the new one if all are busy."""
        full = len(self.connections) >= self._limits.connections
        super().connection_made(transport)
        if full and not self._make_room():
            self._reject_connection()
            return
        self._idle_order[self] = None
        self._start_timer(self._limits.seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection."""
        self._idle_order.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle received data."""
        if self._is_rejected:
            return
        self._heard = self.loop.time()
        self._idle_order.move_to_end(self)
        self._data = data
        super().data_received(data)
        if not self._sizes.add_data(len(data)):
            self._reject_head()
        if self._timer is None and not self._upgraded and not self.transport.is_closing():
            self._start_timer(self._limits.seconds)

    def on_message_begin(self) -> None:
        """Handle the start of a request."""
        self._stage = _Stage.HEADERS
        self._begun = self._heard
        self._sizes.begin()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Handle a part of the request target."""
        self._sizes.add_target(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle a header; count and drop trailers, which must not become headers (RFC 9110 section 6.5.1)."""
        self._sizes.add_header(name, value)
        if self._stage is not _Stage.BODY:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Handle a part of the body."""
        self._sizes.note_output()
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """Handle the end of the headers; a host in the request target overrides the header (RFC 9112 section 3.2.2)."""
        try:
            check_protocol(self.parser.get_http_version(), self.headers)
            host, self.url = split_target(self.url)
        except WorkspaceError as error:
            # The parser replaces this error by one of its own.
            self._fault = error
            raise
        if host is not None:
            self.headers[:] = [(name, host if name == b"host" else value) for name, value in self.headers]
        super().on_headers_complete()
        self._stage = _Stage.BODY

    def on_message_complete(self) -> None:
        """Handle the end of a request."""
        self._sizes.note_output()
        self._stage = _Stage.NOTHING
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Switch to the WebSocket protocol, unless the limit of WebSockets is reached."""
        if sum(not isinstance(each, HttpConnection) for each in self.connections) >= self._limits.streams:
            self._reject_stream()
            return
        self._idle_order.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._upgraded = True
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Reply with an error, unless an earlier request still waits for its response."""
        begun = b"" if self._stage is _Stage.BODY else self._data
        error = self._fault or self._sizes.error or parse_failure(begun, msg.rstrip("."))
        if self._may_reply():
            self._reply_and_close(error_reply(error, self._request_id(), close=True))
        else:
            self.transport.close()

    def _reject_head(self) -> None:
        if not self._is_rejected:
            self.send_400_response("")

    def _start_timer(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._check_deadline)

    def _check_deadline(self) -> None:
        """Close the connection if the caller exceeded its time; time spent waiting for a response does not count."""
        self._timer = None
        if self.transport.is_closing():
            return
        now = self.loop.time()
        if self._is_waiting_for_us():
            self._begun = self._heard = now
        remaining = (self._begun if self._stage is _Stage.HEADERS else self._heard) + self._limits.seconds - now
        if remaining > 0:
            self._start_timer(remaining)
        elif self._stage is _Stage.NOTHING:
            self.transport.close()
        else:
            part = self._stage.name.lower()
            _LOGGER.info("a request is incomplete; its connection is closed", extra=fields(part=part))
            self._reply_and_end(timeout_reply(f"The {part} of the request did not arrive in time.", self._request_id()))

    def _is_waiting_for_us(self) -> bool:
        """Return whether the caller waits for the server, or the connection is idle between requests."""
        if self._stage is _Stage.BODY:
            return bool(self.pipeline) or self.flow.read_paused
        return self._is_answering() or self.timeout_keep_alive_task is not None

    def _is_answering(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is not None and not cycle.response_complete

    def _reply_and_end(self, reply: Reply) -> None:
        """Reply and close; only close if the reply would mix with another one."""
        if self._may_reply():
            self._write(reply)
        self.transport.close()

    def _may_reply(self) -> bool:
        if self._stage is _Stage.BODY:
            return not self.pipeline and not self.cycle.response_started
        return not self._is_answering()

    def _make_room(self) -> bool:
        """Close the longest idle connection that waits for data of its caller; return whether there is one.

        Otherwise, sockets without a complete request could block all new callers.
        """
        return any(each.make_way() for each in self._idle_order)

    def make_way(self) -> bool:
        """Close this connection for a new one, unless it is busy; return whether it is closed."""
        busy = bool(self.pipeline) if self._stage is _Stage.BODY else self._is_answering()
        if busy or self._is_rejected or self.transport.is_closing():
            return False
        self.connections.discard(self)
        if self._stage is _Stage.NOTHING:
            self.transport.close()
        else:
            self._reply_and_end(error_reply(_connection_limit_error(), self._request_id(), close=True))
        return True

    def _reject_stream(self) -> None:
        _LOGGER.warning(
            "the limit of live streams is reached; one is rejected", extra=fields(limit=self._limits.streams)
        )
        detail = f"The host has reached its limit of {self._limits.streams} live streams; try again later."
        error = WorkspaceError(Kind.UNAVAILABLE, "TOO_MANY_CONNECTIONS", detail)
        self._reply_and_close(error_reply(error, self._request_id(), close=True))

    def _reject_connection(self) -> None:
        _LOGGER.warning(
            "the limit of connections is reached; one is rejected", extra=fields(limit=self._limits.connections)
        )
        self.connections.discard(self)
        self._reply_and_close(error_reply(_connection_limit_error(), request_id(()), close=True))

    def _reply_and_close(self, reply: Reply) -> None:
        """Reply, and close after a delay; drop data received until then."""
        self._is_rejected = True
        if self._timer is not None:
            self._timer.cancel()
        if self._is_answering():
            # The application waits for the rest of the body and must not send after this reply.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._write(reply)
        self.transport.write_eof()
        self._timer = self.loop.call_later(_LINGER_SECONDS, self.transport.close)

    def _request_id(self) -> str:
        known: RawHeaders = self.headers or ()
        return request_id(() if self._stage is _Stage.NOTHING else known)

    def _write(self, reply: Reply) -> None:
        self.transport.write(serialize_reply(reply, self.server_state.default_headers))


def _connection_limit_error() -> WorkspaceError:
    return WorkspaceError(
        Kind.UNAVAILABLE, "TOO_MANY_CONNECTIONS", "The host has reached its limit of connections; try again."
    )
