"""Live stream of telemetry; after a lost connection, it reconnects and continues with the missed messages."""

import json
from collections.abc import Generator, Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode
from urllib.request import getproxies

from websockets.sync.client import reconnect as connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidProxy, InvalidStatus, InvalidURI
from websockets.frames import CloseCode
from websockets.http11 import Response
from websockets.uri import parse_uri

from oi._sync.transport import Transport
from oi._sync.waiting import sleep
from oi.addresses import can_use_proxy, find_proxy_url, format_url_without_secrets
from oi.errors import (
    ApiError,
    ServerError,
    SignInError,
    TooManyRequestsError,
    UnreachableError,
    build_api_error,
)
from oi.instants import format_instant, parse_date_header_as_unix_seconds, parse_retry_after_seconds
from oi.requests import (
    build_proxy_error,
    build_redirect_error,
    has_invalid_certificate,
    is_redirect,
    is_service_unreachable,
)
from oi.stream_position import StreamPosition

_ROUTE = "/oi-api/live-stream"
_MIN_PAUSE, _MAX_PAUSE = 1.0, 30.0
"""Seconds between two attempts to open the stream."""
_MAX_REQUESTED_PAUSE = 300.0
"""Longest pause in seconds that a ``Retry-After`` can cause; a wrong one of a proxy must not stop the stream longer."""


def stream_messages(
    transport: Transport,
    *,
    connection: str | None = None,
    surface: str | None = None,
    since: datetime | str | None = None,
    on_failure: Callable[[str], None] | None = None,
) -> Generator[dict[str, Any]]:
    """Yield new telemetry messages; after a lost network connection, continue with the messages that were missed.

    After a lost connection, the stream continues one minute before the time of the newest received message, but not
    before its start (see ``since``; for new messages only, a minute before the first connection). A missed message with
    an earlier timestamp is lost, unless the service was still sending stored messages.

    If all timestamps are before the start of the stream, it continues a minute before the newest one, at most 24 hours
    before the first connection. It can then also yield messages that were stored before its start.

    If the host of the service cannot open a WebSocket, the client requests another address for the stream.

    Args:
        transport: sends the requests.
        connection: short name of the only data connection to read; None for all connections.
        surface: short name of the only surface (group of connections) to read; None for all surfaces.
        since: start time; stored messages since this time are yielded first. None for new messages only. A time in the
            future counts as None.
        on_failure: called with the reason each time the service closes the stream because it failed, for instance
            because too many replays run. The pause until the next attempt grows until a new message arrives.

    Raises:
        ApiError: the service rejects the request for the stream, cannot be reached for half a minute or more, or has
            an invalid TLS certificate; or the proxy in the environment variables cannot be used.
    """
    position = StreamPosition(format_instant(since))
    failures = _StreamFailures(on_failure)
    pause = _MIN_PAUSE
    # Further attempts within each attempt, after the `Retry-After` of a proxy, would hide an outage for minutes.
    handshakes = _Handshakes(transport.copy_for_single_attempts())
    while True:
        requested_pause: float | None = None
        parameters = {"connection": connection, "surface": surface, "since": position.find_start_time()}
        try:
            address = handshakes.find_address(parameters)
            with ConnectWithoutRedirects(
                address.url, additional_headers=address.headers, proxy=address.proxy
            ) as socket:
                pause = _MIN_PAUSE
                handshakes.record_success()
                position.record_connection_opened(_get_service_time(socket.response))
                for text in socket:
                    message = json.loads(text)
                    if position.record_if_new(message):
                        failures.record_new_message()
                        yield message
        except InvalidStatus as refused:
            if handshakes.switch_to_negotiation_if_redirected(refused):
                continue
            requested_pause = handshakes.record_refusal_and_find_pause(refused, pause)
        except (InvalidProxy, ImportError) as failure:
            raise build_proxy_error(failure) from None
        except ConnectionClosed as closed:
            # The service accepted the handshake, so this is no outage, which `pause` measures.
            sleep(failures.record_close_and_get_pause(closed))
            continue
        except ApiError as failure:
            _raise_unless_temporary(failure, pause)
            requested_pause = _find_requested_pause(failure)
        except (OSError, InvalidHandshake, InvalidURI) as failure:
            error = UnreachableError(f"{handshakes.describe_address()} does not respond: {failure}")
            error.__cause__ = failure
            _raise_unless_temporary(error, pause)
        sleep(max(pause, min(requested_pause or 0.0, _MAX_REQUESTED_PAUSE)))
        pause = min(_MAX_PAUSE, pause * 2)


class _Address(NamedTuple):
    """Address of a WebSocket.

    Attributes:
        url: address; its query can be secret.
        headers: HTTP headers of the handshake.
        proxy: argument ``proxy`` of the WebSocket library.
    """

    url: str
    headers: Mapping[str, str]
    proxy: str | Literal[True] | None


class ConnectWithoutRedirects(connect):
    """WebSocket connection that follows no redirects; the other requests of the client follow none, either."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Return the error of a redirected handshake unchanged, so that the library raises it and does not redirect."""
        return exc


class _Handshakes:
    """Addresses and tokens for the WebSocket handshakes that open the stream.

    If the host of the service cannot open a WebSocket, it redirects the handshake. The client then requests another
    address from the service, for instance one of Azure Web PubSub. It ignores the address in the redirect, because the
    redirect can come from a proxy.

    Args:
        transport: sends the requests for tokens and for other addresses.

    Raises:
        UnreachableError: the address of the service does not begin with http:// or https://.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._stream_url = self._last_url = _build_stream_url(transport.url)
        self._must_negotiate = False
        self._token = self._rejected_token = ""

    def find_address(self, parameters: Mapping[str, str | None]) -> _Address:
        """Return the address for the next handshake.

        Args:
            parameters: query parameters of the stream; parameters with the value None are left out.

        Raises:
            ApiError: the service issues no token, cannot be reached, or names no valid address.
        """
        # A rejected token may have been revoked, or the service has new signing keys.
        self._token = self._transport.get_token(rejected_token=self._rejected_token)
        if self._must_negotiate:
            address = _negotiate_address(self._transport, parameters)
        else:
            query = urlencode({name: value for name, value in parameters.items() if value is not None})
            headers = {"Authorization": f"Bearer {self._token}"}
            proxy = _choose_proxy_argument(self._transport.url)
            address = _Address(f"{self._stream_url}?{query}", headers, proxy)
        self._last_url = address.url
        return address

    def describe_address(self) -> str:
        """Return the address of the service, or the last negotiated address without its query, which is secret."""
        return format_url_without_secrets(self._last_url) if self._must_negotiate else self._transport.url

    def record_success(self) -> None:
        """Record that a handshake succeeded: the service has accepted the token, which need not be renewed."""
        self._rejected_token = ""

    def switch_to_negotiation_if_redirected(self, refused: InvalidStatus) -> bool:
        """After a redirect 307, request the addresses of all further handshakes from the service.

        The host of the service replies 307 to a handshake if it cannot open a WebSocket.

        Args:
            refused: error of the handshake.

        Returns:
            True after this change. False if the reply had another status, or if the addresses are requested already.
        """
        if self._must_negotiate or refused.response.status_code != HTTPStatus.TEMPORARY_REDIRECT:
            return False
        self._must_negotiate = True
        return True

    def record_refusal_and_find_pause(self, refused: InvalidStatus, next_pause_seconds: float) -> float | None:
        """Record a rejected handshake; raise its error unless another handshake can succeed.

        Return the seconds that the service requests to wait; None if it requests no pause.

        Args:
            refused: error of the handshake.
            next_pause_seconds: as for :func:`_raise_unless_temporary`.

        Raises:
            ApiError: as for :func:`_raise_unless_temporary`.
        """
        error = _build_handshake_error(refused, self._last_url)
        can_renew = isinstance(error, SignInError) and self._transport.can_renew_token and not self._rejected_token
        self._rejected_token = self._token if can_renew else ""
        if not can_renew:
            _raise_unless_temporary(error, next_pause_seconds)
        return _find_requested_pause(error)


def _negotiate_address(transport: Transport, parameters: Mapping[str, str | None]) -> _Address:
    """Request an address of the live stream that needs no token.

    Raises:
        ApiError: the service rejects the request or cannot be reached. Also if its reply contains no WebSocket address,
            or an unencrypted one (ws) although the address of the service is encrypted (https).
    """
    reply = transport.get_json(f"{_ROUTE}/negotiate", parameters)
    url = str(reply.get("url")) if isinstance(reply, dict) else ""
    if not _is_stream_url_as_secure(url, transport.url):
        target = format_url_without_secrets(url)
        raise ApiError(0, "", f"{transport.url} names {target} for the live stream, which is no wss address.")
    return _Address(url, {}, _choose_proxy_argument(f"http{url[len('ws') :]}"))


def _get_service_time(handshake_response: Response | None) -> datetime:
    """Return the time in a handshake's header ``Date``, or the time of this computer if the header is missing."""
    date = _get_header(handshake_response, "Date") if handshake_response else ""
    return datetime.fromtimestamp(parse_date_header_as_unix_seconds(date), UTC)


class _StreamFailures:
    """Record of the internal errors for which the service closes the stream, to report them and to compute pauses.

    Each pause before the next attempt is twice as long as the last one, up to 30 seconds, until a new message arrives.

    Args:
        report: called with the reason of each failure; None to report nothing.
    """

    def __init__(self, report: Callable[[str], None] | None) -> None:
        self._report = report
        self._pause = _MIN_PAUSE

    def record_new_message(self) -> None:
        """Record that a message has arrived, so that the pause after the next failure is short again."""
        self._pause = _MIN_PAUSE

    def record_close_and_get_pause(self, closed: ConnectionClosed) -> float:
        """Return the seconds to wait after the service closed the stream; report the reason of an internal error.

        Other close codes are no failures: for example, the service restarts or the token has expired. They are not
        reported, and the pause does not grow.
        """
        if closed.rcvd is None or closed.rcvd.code != CloseCode.INTERNAL_ERROR:
            return _MIN_PAUSE
        if self._report is not None:
            self._report(closed.rcvd.reason or "it stated no reason")
        pause, self._pause = self._pause, min(_MAX_PAUSE, self._pause * 2)
        return pause


def _build_stream_url(service_url: str) -> str:
    """Return the WebSocket address of the live stream.

    Raises:
        UnreachableError: the address of the service does not begin with http:// or https://.
    """
    scheme, _, rest = service_url.partition("://")
    if scheme.lower() not in {"http", "https"}:
        raise UnreachableError(f"{service_url} is not an address such as https://plant.example")
    return f"{scheme.lower().replace('http', 'ws')}://{rest}{_ROUTE}"


def _is_stream_url_as_secure(stream_url: str, service_url: str) -> bool:
    """Return whether ``stream_url`` is a WebSocket address: wss, or ws only if the service address is http."""
    try:
        is_encrypted = parse_uri(stream_url).secure
    except (InvalidURI, ValueError):
        return False
    return is_encrypted or service_url.lower().startswith("http:")


def _choose_proxy_argument(url: str) -> str | Literal[True] | None:
    """Return the argument ``proxy`` of the WebSocket library for a connection to the host of ``url``.

    The argument is the URL of a proxy, None for no proxy, or True to let the library choose a proxy. The library also
    reads the variable ``WSS_PROXY``.
    """
    if not can_use_proxy(url):
        return None
    return True if {"ws", "wss"} & getproxies().keys() else find_proxy_url(url) or True


def _raise_unless_temporary(error: ApiError, next_pause_seconds: float) -> None:
    """Raise ``error`` unless it is temporary: if the service restarts, fails or is overloaded, the stream can continue.

    Args:
        error: error of a handshake or of the request for a token.
        next_pause_seconds: seconds until the next attempt; during an outage, this pause grows to half a minute.

    Raises:
        UnreachableError: the service was unreachable for half a minute or more, or its TLS certificate is invalid.
        ApiError: ``error`` itself, because it is not temporary.
    """
    if is_service_unreachable(error):
        if next_pause_seconds >= _MAX_PAUSE or has_invalid_certificate(error):
            raise UnreachableError(str(error)) from None
    elif not isinstance(error, (ServerError, TooManyRequestsError)):
        raise error from None


def _find_requested_pause(error: ApiError) -> float | None:
    """Return the seconds that the service requests to wait after an error; None if it requests no pause.

    The ``Retry-After`` of a proxy that does not reach the service is ignored: the stream ends after half a minute then.
    """
    return None if is_service_unreachable(error) else error.retry_after


def _build_handshake_error(refused: InvalidStatus, url: str) -> ApiError:
    response = refused.response
    if is_redirect(response.status_code):
        return build_redirect_error(response.status_code, url, response.headers.get("Location", ""))
    retry_after = parse_retry_after_seconds(_get_header(response, "Retry-After"), _get_header(response, "Date"))
    problem = _parse_problem_document_or_empty(response.body)
    return build_api_error(response.status_code, problem, retry_after=retry_after)


def _get_header(response: Response, name: str) -> str:
    """Return the first value of a header; empty if the header is missing."""
    return "".join(response.headers.get_all(name)[:1])


def _parse_problem_document_or_empty(body: bytes | bytearray) -> dict[str, Any]:
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
