"""HTTP server of the local host: its listening socket, its client connections and their limits.

The server runs any ASGI application, so that tests of the emulators and benchmarks can use it without the host. It is
separate from the life cycle of the host, which does not depend on uvicorn. Only this module depends on the internals of
uvicorn's HTTP protocol. It limits the number of connections, the time for a request, and the time in which a client
may read nothing of a reply.
"""

import asyncio
import contextlib
import resource
import socket
import sys
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, ClassVar, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from emulators.web_pubsub.sockets import MAX_MESSAGE_BYTES, PING_SECONDS, FrameSocket
from local.errors import StartError
from local.host.shutdown import ShutdownSignal
from local.http_server.application import Message, Receive, Send
from local.http_server.error_replies import (
    RawHeaders,
    add_version_header_if_rest,
    build_error_reply,
    build_parse_error,
    build_timeout_reply,
    check_http_version_and_transfer_coding,
    find_request_target,
    read_or_create_request_id,
    serialize_reply,
)
from local.http_server.request_head import HeadSizeCounter, split_target_into_host_and_path
from shared.errors import Kind, WorkspaceError
from shared.http import versions
from shared.http.messages import Reply
from shared.observability.logs import fields, get_logger

_LOGGER = get_logger("local.connections")
_MAX_CONNECTIONS = 1000
_STREAMS_SHARE = 0.8
"""Maximum share of all connections that may be live streams; the others are reserved for requests."""
_LINGER_SECONDS = 1.0
"""Delay in seconds of the close after an error reply; an immediate close would reset the connection.

If the application replies before it has received the whole body, the delay starts again while parts of it arrive.
"""
_MIN_BODY_BYTES = 64 * 1024
"""Bytes of a body that a client must send in each period, so that no new connection replaces its own."""


def _compute_connection_limit() -> int:
    """Return the maximum number of connections: 1000, but at most half of the files that the process may open."""
    return min(_MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on the number of connections, and on the time in which clients must send requests and read replies.

    Attributes:
        connections: maximum number of open connections.
        seconds: maximum time in seconds for each of these: until the first request of a connection; for all headers of
            a request; between two parts of its body; and while the client reads nothing of a reply.
        stalled_seconds: time in seconds after which the connection of a client that sends nothing of a body, or reads
            nothing of a reply, may be closed to make room for a new connection. It is also the minimum length of the
            periods for which the received bytes of a body are counted.
    """

    connections: int = field(default_factory=_compute_connection_limit)
    seconds: float = 30.0
    stalled_seconds: float = 5.0

    @property
    def max_streams(self) -> int:
        """Maximum number of open WebSockets."""
        return int(self.connections * _STREAMS_SHARE)


class LimitedConfig(uvicorn.Config):
    """Options of the uvicorn server, with connection limits."""

    limits: ConnectionLimits
    idle_order: "OrderedDict[HttpConnection, None]"
    """Connections without WebSockets, longest idle first."""


class _StreamSocket(FrameSocket):
    """WebSocket whose rejections state the API version, because the only public route with a WebSocket is versioned."""

    rejection_headers: ClassVar[Sequence[tuple[bytes, bytes]]] = (
        (versions.HEADER.encode(), versions.CURRENT.encode()),
    )


class _ExpectedPart(Enum):
    """Part of an HTTP request that a connection expects next: headers, body, or nothing between two requests."""

    NOTHING = auto()
    HEADERS = auto()
    BODY = auto()


class _ReplyTransport(asyncio.Transport):
    """Transport to which uvicorn writes the reply of the application; the connection decides when it is closed."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        super().__init__()
        self._transport = transport
        self._close = close

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write a part of the reply."""
        self._transport.write(data)

    def is_closing(self) -> bool:
        """Return whether the connection is closing or closed."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Close the connection after the reply."""
        self._close()


class HttpConnection(HttpToolsProtocol):
    """uvicorn connection that closes when a request does not arrive in time, or the client does not read a reply."""

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
        self._expected_part = _ExpectedPart.NOTHING
        self._begun = self._heard = self._read_at = self.loop.time()
        self._unread_bytes = 0
        self._period_begun = self._begun
        self._period_bytes = 0
        self._last_period_bytes: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unfinished: deque[RequestResponseCycle] = deque()
        self._is_rejected = False
        self._is_stopping = False
        self._linger_end = 0.0
        self._upgraded = False
        self._is_upgrade_ignored = False
        self._end_of_ignored_upgrade = 0
        self._sizes = HeadSizeCounter()
        self._data = b""
        self._fault: WorkspaceError | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # the type in uvicorn
        """Accept a new connection.

        At the limit of connections, first close another connection that is idle, already has its reply, or whose client
        does not read its reply or sends its body slowly. If there is no such connection, reject the new one.
        """
        full = len(self.connections) >= self._limits.connections
        super().connection_made(transport)
        if full and not self._try_close_other_connection():
            self._reject_connection()
            return
        self._idle_order[self] = None
        self._start_timer(self._limits.seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer of a closed connection, no longer count the connection, and notify the application."""
        self._idle_order.pop(self, None)
        # uvicorn notifies only the last of several pipelined requests.
        for cycle in self._unfinished:
            cycle.disconnected = True
            cycle.message_event.set()
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection, after the reply if a request is running (callback of uvicorn when the server stops)."""
        self._is_stopping = True
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; reject a request whose head is invalid or too large."""
        self._heard = self.loop.time()
        if self._is_rejected:
            return
        self._idle_order.move_to_end(self)
        self._data = data
        self._parse(data)
        self._count_body_bytes(len(data))
        if not self._sizes.try_count_parser_input(len(data)):
            self._reject_oversized_head()
        if self._timer is None and not self._upgraded and not self.transport.is_closing():
            self._start_timer(self._limits.seconds)

    def _parse(self, data: bytes) -> None:
        """Pass received bytes to the parser; parse each request whose upgrade is ignored again as a plain request.

        The parser skips the body of every request with an upgrade, and would parse it as the next request.
        """
        super().data_received(data)
        rest = memoryview(data)
        while self._is_upgrade_ignored and self._is_reading():
            rest = rest[self._end_of_ignored_upgrade :]
            self._parse_head_without_upgrade()
            if rest and self._is_reading():
                super().data_received(rest)  # type: ignore[arg-type]  # a view avoids copies, and the parser accepts it

    def _count_body_bytes(self, byte_count: int) -> None:
        """Count received bytes; a period ends with the first bytes after its minimum length."""
        if self._heard - self._period_begun >= self._limits.stalled_seconds:
            self._begin_period(self._period_bytes)
        self._period_bytes += byte_count
        if self.flow.read_paused:
            # The server, not the client, is slow in this period.
            self._period_bytes += _MIN_BODY_BYTES

    def _begin_period(self, last_period_bytes: int | None) -> None:
        self._last_period_bytes = last_period_bytes
        self._period_begun, self._period_bytes = self._heard, 0

    def _is_reading(self) -> bool:
        return not self._is_rejected and not self.transport.is_closing()

    def _parse_head_without_upgrade(self) -> None:
        """Parse the head of the current request with a new parser, which then expects the body of this request."""
        headers = self.headers
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        lines += [b"%b: %b" % each for each in headers if each[0] != b"upgrade"]
        self._is_upgrade_ignored = False
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        super().data_received(b"\r\n".join([*lines, b"", b""]))
        # The app receives all headers; it replies to a handshake of the live stream that it cannot accept itself.
        self.headers[:] = headers

    def _unsupported_upgrade_warning(self) -> None:
        """Store where the head of a request with an ignored upgrade ends (callback of uvicorn)."""
        upgrade = cast("httptools.HttpParserUpgrade", sys.exception())
        self._end_of_ignored_upgrade = upgrade.args[0]

    def on_message_begin(self) -> None:
        """Record that a request has begun (callback of the parser)."""
        self._expected_part = _ExpectedPart.HEADERS
        self._begun = self._heard
        self._sizes.begin_request()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Store a part of the request target, and count its bytes (callback of the parser)."""
        # The reply to a target that is too long depends on the start of the target.
        super().on_url(url)
        self._sizes.count_target(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header or trailer, and pass a header to the app (callback of the parser).

        The app must not receive a trailer as a header (RFC 9110 section 6.5.1).
        """
        self._sizes.count_header(name, value)
        if self._expected_part is not _ExpectedPart.BODY:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Pass a part of the request body to the app (callback of the parser)."""
        self._sizes.mark_parser_buffer_empty()
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """Check the headers; a host in the request target replaces the Host header (RFC 9112 section 3.2.2)."""
        try:
            check_http_version_and_transfer_coding(self.parser.get_http_version(), self.headers)
            host, self.url = split_target_into_host_and_path(self.url)
        except WorkspaceError as error:
            # The parser replaces this error by one of its own.
            self._fault = error
            raise
        if host is not None:
            self.headers[:] = [(name, host if name == b"host" else value) for name, value in self.headers]
        # An upgrade to another protocol than WebSocket is ignored (RFC 9110 section 7.8).
        self._is_upgrade_ignored = (
            self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT" and not self._should_upgrade()
        )
        if self._is_upgrade_ignored:
            return
        previous = self.cycle
        super().on_headers_complete()
        if self.cycle is not previous:
            self._unfinished.append(self.cycle)
            self.cycle.transport = _ReplyTransport(self.transport, self._close_after_reply)
        self._expected_part = _ExpectedPart.BODY
        self._begin_period(None)

    def on_message_complete(self) -> None:
        """Record that a request is complete (callback of the parser)."""
        if self._is_upgrade_ignored:
            return
        self._sizes.mark_parser_buffer_empty()
        self._expected_part = _ExpectedPart.NOTHING
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Record that a reply was written (callback of uvicorn)."""
        self._unread_bytes = 0
        self._unfinished.popleft()
        super().on_response_complete()

    def resume_writing(self) -> None:
        """Record that the client has read a part of the replies (callback of the transport)."""
        self._unread_bytes = 0
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        """Switch to the WebSocket protocol, unless the limit of open WebSockets is reached."""
        if sum(not isinstance(each, HttpConnection) for each in self.connections) >= self._limits.max_streams:
            self._reject_websocket()
            return
        self._idle_order.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._upgraded = True
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Reject an invalid request; if an earlier request still waits for its response, just close the connection."""
        begun = b"" if self._expected_part is _ExpectedPart.BODY else self._data
        error = self._fault or self._sizes.error or build_parse_error(begun, msg.rstrip("."))
        if self._can_reply():
            self._reply_then_close_after_delay(
                build_error_reply(error, self._read_or_create_request_id(), close_connection=True)
            )
        else:
            self._close()

    def _reject_oversized_head(self) -> None:
        if not self._is_rejected:
            self.send_400_response("")

    def _start_timer(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._close_if_client_too_slow)

    def _close_if_client_too_slow(self) -> None:
        """Close the connection if the client is too slow to send a request, or reads nothing of a reply.

        Time in which the client waits for a response does not count.
        """
        self._timer = None
        now = self.loop.time()
        if self._has_stopped_reading(now, self._limits.seconds):
            _LOGGER.info("a client does not read its reply; its connection is closed")
            self.transport.abort()
            return
        if self.transport.is_closing():
            # A closing connection stays open until the client has read the reply.
            self._start_timer(self._limits.seconds)
            return
        if self._is_waiting_for_server():
            self._begun = self._heard = now
        remaining = (
            (self._begun if self._expected_part is _ExpectedPart.HEADERS else self._heard) + self._limits.seconds - now
        )
        if remaining > 0:
            self._start_timer(remaining)
        elif self._expected_part is _ExpectedPart.NOTHING:
            self._close()
        else:
            part = self._expected_part.name.lower()
            _LOGGER.info("a request is incomplete; its connection is closed", extra=fields(part=part))
            self._reply_if_possible_then_close(
                build_timeout_reply(
                    f"The {part} of the request did not arrive in time.", self._read_or_create_request_id()
                )
            )

    def _has_stopped_reading(self, now: float, idle_seconds: float) -> bool:
        """Return whether the client has read nothing of its replies for ``idle_seconds``.

        Progress is observed only at calls of this method. The time starts at the first call that finds unread bytes,
        and starts again at each call that finds fewer unread bytes than before.
        """
        unread = self.transport.get_write_buffer_size()
        if not self._unread_bytes or unread < self._unread_bytes:
            self._unread_bytes, self._read_at = unread, now
        return unread > 0 and now - self._read_at >= idle_seconds

    def _close(self) -> None:
        """Close the connection when the client has read all sent bytes, or has read nothing within the time limit."""
        self.transport.close()
        if self._timer is None:
            self._start_timer(self._limits.seconds)

    def _is_waiting_for_server(self) -> bool:
        """Return whether the client waits for a response, or the connection is idle between two requests."""
        if self._expected_part is _ExpectedPart.BODY:
            return bool(self.pipeline) or self.flow.read_paused
        return self._has_unfinished_response() or self.timeout_keep_alive_task is not None

    def _has_unfinished_response(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is not None and not cycle.response_complete

    def _reply_if_possible_then_close(self, reply: Reply) -> None:
        """Send a reply and close the connection; if another response has already begun, only close the connection."""
        if self._can_reply():
            self._write_reply(reply)
        self._close()

    def _can_reply(self) -> bool:
        if self._expected_part is _ExpectedPart.BODY:
            return not self.pipeline and not self.cycle.response_started
        return not self._has_unfinished_response()

    def _try_close_other_connection(self) -> bool:
        """Close one connection that does not need its place; return whether there was one.

        The order is: the one that has been idle longest, one that waits to close after its reply, one whose client does
        not read its reply, and the one whose client has sent the fewest bytes of a body.

        Without this, clients that send no requests, send them slowly, or read no replies could block all other clients.
        """
        others = self._idle_order
        return (
            any(each.try_close_unless_busy() for each in others)
            or any(each.try_abort_after_reply() for each in others)
            or any(each.try_abort_if_unread() for each in others)
            or self._try_close_slowest_sender()
        )

    def _try_close_slowest_sender(self) -> bool:
        byte_counts = {each: each.count_bytes_if_body_is_slow() for each in self._idle_order}
        slow = {each: byte_count for each, byte_count in byte_counts.items() if byte_count is not None}
        if not slow:
            return False
        min(slow, key=slow.__getitem__).close_for_new_connection()
        return True

    def count_bytes_if_body_is_slow(self) -> int | None:
        """Return how many bytes of a body the client sent in the last period; None if it does not send one slowly."""
        is_sending = self._expected_part is _ExpectedPart.BODY and not self._is_waiting_for_server()
        byte_count = self._last_period_bytes
        if not is_sending or not self._can_close_at_once() or byte_count is None or byte_count >= _MIN_BODY_BYTES:
            return None
        return byte_count

    def try_abort_after_reply(self) -> bool:
        """Close this connection at once if it only waits for its client after a reply; return whether it was closed."""
        has_reply = self._is_rejected and not self.transport.get_write_buffer_size()
        if self not in self.connections or not has_reply:
            return False
        self.connections.discard(self)
        self.transport.abort()
        return True

    def try_abort_if_unread(self) -> bool:
        """Close this connection at once if its client does not read its replies; return whether it was closed."""
        stopped = self._has_stopped_reading(self.loop.time(), self._limits.stalled_seconds)
        if self not in self.connections or not stopped:
            return False
        self.connections.discard(self)
        self.transport.abort()
        return True

    def try_close_unless_busy(self) -> bool:
        """Close this connection unless it receives a body, processes a request or sends a reply.

        Return whether it was closed.
        """
        if self._expected_part is _ExpectedPart.BODY:
            is_stalled = self.loop.time() - self._heard >= self._limits.stalled_seconds
            busy = self._is_waiting_for_server() or not is_stalled
        else:
            busy = self._has_unfinished_response()
        if busy or not self._can_close_at_once():
            return False
        self.close_for_new_connection()
        return True

    def _can_close_at_once(self) -> bool:
        # A normal close would leave the socket open until the client has read its reply.
        has_unread = self.transport.get_write_buffer_size() > 0
        return not (has_unread or self._is_rejected or self.transport.is_closing())

    def close_for_new_connection(self) -> None:
        """Close this connection, with an error reply if a request has begun; no longer count it."""
        self.connections.discard(self)
        if self._expected_part is _ExpectedPart.NOTHING:
            self._close()
        else:
            self._reply_if_possible_then_close(
                build_error_reply(
                    _build_connection_limit_error(), self._read_or_create_request_id(), close_connection=True
                )
            )

    def _reject_websocket(self) -> None:
        _LOGGER.warning(
            "the limit of live streams is reached; one is rejected", extra=fields(limit=self._limits.max_streams)
        )
        detail = f"The host has reached its limit of {self._limits.max_streams} live streams; try again later."
        error = WorkspaceError(Kind.UNAVAILABLE, "TOO_MANY_CONNECTIONS", detail)
        # The handshake is complete, so the stage no longer shows that its headers and target are known.
        reply = build_error_reply(error, read_or_create_request_id(self.headers), close_connection=True)
        add_version_header_if_rest(reply, self.url)
        self._reply_then_close_after_delay(reply)

    def _reject_connection(self) -> None:
        _LOGGER.warning(
            "the limit of connections is reached; one is rejected", extra=fields(limit=self._limits.connections)
        )
        self.connections.discard(self)
        self._reply_then_close_after_delay(
            build_error_reply(_build_connection_limit_error(), read_or_create_request_id(()), close_connection=True)
        )

    def _reply_then_close_after_delay(self, reply: Reply) -> None:
        """Send a reply and close the connection after a delay; ignore the data that arrives until then."""
        if self._has_unfinished_response():
            # The application waits for the rest of the body and must not send after this reply.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._write_reply(reply)
        self._start_to_linger(_LINGER_SECONDS)

    def _close_after_reply(self) -> None:
        """Close the connection after a reply of the application.

        If the body is incomplete, wait while the client sends the rest of it, but at most 30 seconds, or a second while
        the server stops. Many clients read the reply only then, and a reset of the connection would destroy it.
        """
        if self.pipeline or not self.cycle.more_body:
            self.transport.close()
        elif self._is_reading():
            # A stop must not wait for clients that already have their reply.
            self._start_to_linger(_LINGER_SECONDS if self._is_stopping else self._limits.seconds)
            self.flow.resume_reading()

    def _start_to_linger(self, seconds: float) -> None:
        """Ignore received data from now on; close the connection when none arrives, at the latest after ``seconds``."""
        self._is_rejected = True
        if self._timer is not None:
            self._timer.cancel()
        self.transport.write_eof()
        self._linger_end = self.loop.time() + seconds
        self._timer = self.loop.call_later(_LINGER_SECONDS, self._close_after_delay)

    def _close_after_delay(self) -> None:
        if self.loop.time() < min(self._linger_end, self._heard + _LINGER_SECONDS):
            self._timer = self.loop.call_later(_LINGER_SECONDS, self._close_after_delay)
            return
        self._timer = None
        self._close()

    def _read_or_create_request_id(self) -> str:
        known: RawHeaders = self.headers or ()
        return read_or_create_request_id(() if self._expected_part is _ExpectedPart.NOTHING else known)

    def _find_request_target(self) -> bytes:
        """Return the target of the current request, as far as it was received; no bytes if it is unknown.

        The parser passes the target on only after a valid method. Until then, this method searches the received bytes.
        """
        known = b"" if self._expected_part is _ExpectedPart.NOTHING else self.url
        return known or find_request_target(self._data)

    def _write_reply(self, reply: Reply) -> None:
        add_version_header_if_rest(reply, self._find_request_target())
        self.transport.write(serialize_reply(reply, self.server_state.default_headers))


def _build_connection_limit_error() -> WorkspaceError:
    return WorkspaceError(
        Kind.UNAVAILABLE, "TOO_MANY_CONNECTIONS", "The host has reached its limit of connections; try again."
    )


_KEEP_ALIVE_SECONDS = 120
_BACKLOG = 2048
_MAX_UNSENT_BYTES = 131_072
"""Maximum number of unsent bytes of a reply that a connection passes to the operating system.

The system accepts further bytes only after the client has read half of these. Until then, the server does not notice
that the client reads.
"""

type Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Server(uvicorn.Server):
    """uvicorn server that installs no signal handlers, and signals when it accepts connections."""

    def __init__(
        self, app: Application, drain_seconds: int, limits: ConnectionLimits | None = None, *, web_sockets: bool = False
    ) -> None:
        """Create a server.

        Args:
            app: ASGI application that handles the requests.
            drain_seconds: seconds for which running requests may continue after the host stops.
            limits: limits on connections; None for the defaults.
            web_sockets: whether the application supports WebSockets.
        """
        super().__init__(
            _build_uvicorn_config(app, drain_seconds, limits or ConnectionLimits(), web_sockets=web_sockets)
        )
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections, then set the event ``listening`` for the tasks that wait for the start."""
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield

    async def exit_on_shutdown(self, closing: ShutdownSignal, get_seconds_left: Callable[[], float]) -> None:
        """Stop the server as soon as a signal is set; running requests may then continue for a limited time.

        Args:
            closing: signal to stop the server.
            get_seconds_left: returns the seconds for which running requests may continue.
        """
        await closing.wait()
        self.config.timeout_graceful_shutdown = int(get_seconds_left())
        self.should_exit = True


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; clients that connect before the server runs wait in its queue.

    Raises:
        StartError: the address is invalid or not available, for instance because another process uses it.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise StartError(f"cannot listen on {host}: {error.strerror}") from None
    except UnicodeError:
        raise StartError(f"cannot listen on {host}: the name is not a valid host name") from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Otherwise the system takes megabytes of a reply at a time, and the reads of a slow client are not noticed.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MAX_UNSENT_BYTES)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise StartError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listener


def build_server_url(host: str, listener: socket.socket) -> str:
    """Build the base URL of a listening socket."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def _build_uvicorn_config(
    app: Application, drain_seconds: int, limits: ConnectionLimits, *, web_sockets: bool
) -> LimitedConfig:
    config = LimitedConfig(
        app,
        http=HttpConnection,
        ws=_StreamSocket if web_sockets else "none",
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_per_message_deflate=False,
        lifespan="off",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=drain_seconds,
    )
    config.limits = limits
    config.idle_order = OrderedDict()
    return config
