"""Checks of a request's head (request line and headers): host, target (RFC 9112 sections 3.2 and 3.3), and size."""

import ipaddress
import re
from collections.abc import Iterable

from shared.errors import WorkspaceError, build_invalid_field_error
from shared.http.size_limits import (
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    MAX_TARGET,
    build_headers_too_large_error,
    build_target_too_long_error,
    count_header_bytes,
)

_ABSOLUTE = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]*+)://([^/?#]*+)(.*+)", re.DOTALL)
_SCHEMES = frozenset({b"http", b"https"})
# RFC 3986 section 3.2: an IP literal or a non-empty registered name, and a port.
_AUTHORITY = re.compile(
    r"(?:\[(?P<literal>[0-9A-Fa-f:.]+)\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+)(?::(?P<port>[0-9]{0,5}))?", re.ASCII
)
_HIGHEST_PORT = 65_535


def check_host_header(headers: Iterable[tuple[bytes, bytes]], http_version: str) -> None:
    """Check that a request has one valid Host header, which is optional in HTTP/1.0.

    The app receives URLs that contain the host, so the host must not contain ``/``, ``?`` or ``#``.

    Args:
        headers: request headers, with names in lower case.
        http_version: HTTP version of the request, such as ``1.1``.

    Raises:
        WorkspaceError: INVALID_REQUEST if the header is missing, repeated or invalid.
    """
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if not hosts and http_version == "1.0":
        return
    if len(hosts) != 1:
        raise build_invalid_field_error("Host", f"must be sent exactly once, not {len(hosts)} times")
    if not _is_valid_host_and_port(hosts[0]):
        raise build_invalid_field_error("Host", "must be host or host:port (RFC 9110 section 7.2)")


def check_single_idempotency_key(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Check that a request has at most one header ``Idempotency-Key``.

    The server joins the values of repeated headers; the result would be a key that the client did not send.

    Args:
        headers: request headers, with names in lower case.

    Raises:
        WorkspaceError: INVALID_REQUEST.
    """
    keys = sum(name == b"idempotency-key" for name, _ in headers)
    if keys > 1:
        raise build_invalid_field_error("Idempotency-Key", f"must be sent once, not {keys} times")


def _is_valid_host_and_port(host: str) -> bool:
    parts = _AUTHORITY.fullmatch(host)
    if parts is None or int(parts["port"] or 0) > _HIGHEST_PORT:
        return False
    try:
        return parts["literal"] is None or bool(ipaddress.IPv6Address(parts["literal"]))
    except ValueError:
        return False


def is_loopback_host(host: bytes) -> bool:
    """Return whether a ``Host`` header is a loopback address or ``localhost``; DNS names are not resolved."""
    text = host.decode("latin-1").lower()
    name = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_request_target(raw_path: str) -> None:
    """Check that the target of a request is a path; ``OPTIONS *`` is not supported.

    Raises:
        WorkspaceError: INVALID_REQUEST.
    """
    if not raw_path.startswith("/"):
        raise build_invalid_field_error("request target", "must be a path or an absolute URL")


def split_target_into_host_and_path(target: bytes) -> tuple[bytes | None, bytes]:
    """Return the host and the path of a request target; the host is None if the target is not an absolute URL.

    Raises:
        WorkspaceError: INVALID_REQUEST if the target is a URL whose scheme is not http or https.
    """
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        return None, target
    if absolute[1].lower() not in _SCHEMES:
        raise build_invalid_field_error("request target", "must be a path or an http or https URL")
    rest = absolute[3]
    return absolute[2], rest if rest.startswith(b"/") else b"/" + rest


class HeadTooLarge(Exception):  # noqa: N818  stops the parser; ``HeadSizeCounter.error`` has the reply
    """Exception that stops the HTTP parser, because the request target or the headers are too large."""


class HeadSizeCounter:
    """Counter of the bytes of a request's target and headers, and of the bytes that the HTTP parser currently buffers.

    Attributes:
        error: error for the reply if a limit is exceeded; None while no limit is exceeded.
    """

    def __init__(self) -> None:
        self.error: WorkspaceError | None = None
        self._target = self._headers = self._header_bytes = 0
        self._held_bytes = 0
        self._has_output = False

    def begin_request(self) -> None:
        """Reset the counters for a new request."""
        self._target = self._headers = self._header_bytes = 0
        self.mark_parser_buffer_empty()

    def mark_parser_buffer_empty(self) -> None:
        """Record that the HTTP parser has returned data, which means that its buffer is empty."""
        self._has_output = True

    def count_target(self, target_part: bytes) -> None:
        """Count a part of the request target.

        Raises:
            HeadTooLarge: the target is too long.
        """
        self.mark_parser_buffer_empty()
        self._target += len(target_part)
        if self._target > MAX_TARGET:
            raise self._store_error_and_build_head_too_large(build_target_too_long_error())

    def count_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer after the body.

        Raises:
            HeadTooLarge: there are too many headers, or they are too large.
        """
        self.mark_parser_buffer_empty()
        self._headers += 1
        self._header_bytes += count_header_bytes(name, value)
        if self._headers > MAX_HEADERS or self._header_bytes > MAX_HEADER_BYTES:
            raise self._store_error_and_build_head_too_large(build_headers_too_large_error())

    def try_count_parser_input(self, byte_count: int) -> bool:
        """Count bytes that were passed to the HTTP parser; return False if the parser now buffers too many bytes.

        The parser buffers headers, trailers and chunk extensions of any size until they are complete.
        """
        self._held_bytes = 0 if self._has_output else self._held_bytes + byte_count
        self._has_output = False
        if self._held_bytes > MAX_HEADER_BYTES:
            self.error = self.error or build_headers_too_large_error()
        return self._held_bytes <= MAX_HEADER_BYTES

    def _store_error_and_build_head_too_large(self, error: WorkspaceError) -> HeadTooLarge:
        self.error = error
        return HeadTooLarge(error.detail)
