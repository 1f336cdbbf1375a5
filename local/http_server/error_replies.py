"""Error replies of the local host as problem documents (RFC 9457), like those of the app."""

import re
import sys
import uuid
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import httptools

from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.http.messages import Reply
from shared.http.problems import build_problem_reply
from shared.http.security_headers import add_security_headers
from shared.http.versions import add_version_header

type RawHeaders = Iterable[tuple[bytes, bytes]]

_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ (?P<target>[^ ]+) HTTP/(?P<major>[0-9])(?:\.[0-9])?")
_REST_TARGET = re.compile(
    rb"(?:(?i:https?)://[^/?#]*+)?"
    rb"/(?:oi-api/(?!explorer)|workspace/api/|api/workspaces/|\.well-known/|oauth2/|healthz|readyz)"
)
_MAJOR: Final = b"1"
_CODING: Final = b"transfer-encoding"


class UnsupportedHttpError(WorkspaceError):
    """Error for a valid HTTP request that uses a protocol feature which the local host does not support.

    Args:
        status: HTTP status, 501 or 505.
        code: error code for programs, in upper case with underscores; never changed.
        detail: one sentence for the caller, in plain English.
    """

    def __init__(self, status: HTTPStatus, code: str, detail: str) -> None:
        super().__init__(Kind.INVALID, code, detail)
        self.status = status


def read_or_create_request_id(headers: RawHeaders) -> str:
    """Return the client's ``x-request-id`` if it is valid (1 to 128 visible ASCII characters), else a new id.

    Args:
        headers: request headers, with names in lower case.
    """
    given = [value for name, value in headers if name == b"x-request-id"]
    if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]):
        return given[0].decode("ascii")
    return uuid.uuid4().hex


def build_error_reply(
    error: WorkspaceError, client_request_id: str, *, close_connection: bool = False, status: HTTPStatus | None = None
) -> Reply:
    """Build the problem document for an error of the local host.

    Args:
        error: error with its kind, code and detail.
        client_request_id: id of the request, from :func:`read_or_create_request_id`.
        close_connection: whether the connection closes after the reply, because the rest of the request is not read.
        status: HTTP status to use instead of the status of the error's kind.
    """
    if isinstance(error, UnsupportedHttpError):
        status = error.status
    reply = build_problem_reply(error, client_request_id, status)
    reply.headers["x-request-id"] = client_request_id
    add_security_headers(reply.headers)
    if close_connection:
        reply.headers["Connection"] = "close"
    return reply


def add_version_header_if_rest(reply: Reply, request_target: bytes) -> None:
    """Add the header with the API version to an error reply if the request was sent to an address of the REST API.

    Args:
        reply: error reply of the local host; the app itself adds the header to its replies.
        request_target: target of the request (RFC 9112 section 3.2); empty if it is unknown.
    """
    if _REST_TARGET.match(request_target):
        add_version_header(reply)


def serialize_reply(reply: Reply, default_headers: RawHeaders) -> bytes:
    """Serialise a reply as HTTP/1.1 bytes (RFC 9112 section 4), for a request that does not reach the ASGI application.

    Args:
        reply: status, headers and body of the reply.
        default_headers: headers that the server adds to all replies.
    """
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}".encode()]
    lines += [name + b": " + value for name, value in default_headers]
    lines += [f"{name}: {value}".encode("latin-1") for name, value in reply.headers.items()]
    lines += [b"content-length: %d" % len(reply.body), b"", reply.body]
    return b"\r\n".join(lines)


def build_timeout_reply(detail: str, client_request_id: str) -> Reply:
    """Build the 408 reply to a request that did not arrive completely in time."""
    error = WorkspaceError(Kind.TIMEOUT, "REQUEST_TIMEOUT", detail)
    return build_error_reply(error, client_request_id, close_connection=True, status=HTTPStatus.REQUEST_TIMEOUT)


def check_http_version_and_transfer_coding(version: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Check that the HTTP version and transfer coding of a request are supported.

    Args:
        version: HTTP version of the request, such as ``1.1``.
        headers: request headers, with names in lower case.

    Raises:
        UnsupportedHttpError: 505 for another major version (RFC 9110 section 15.6.6), 501 for a transfer coding
            other than ``chunked`` (RFC 9112 section 6.1).
    """
    if not version.startswith(f"{_MAJOR.decode()}."):
        raise _build_unsupported_version_error()
    codings = {part.strip(b" \t").lower() for name, value in headers if name == _CODING for part in value.split(b",")}
    if codings - {b"", b"chunked"}:
        raise UnsupportedHttpError(
            HTTPStatus.NOT_IMPLEMENTED,
            "TRANSFER_CODING_NOT_IMPLEMENTED",
            "The transfer coding of the body is not supported; use chunked.",
        )


def find_request_target(received_bytes: bytes) -> bytes:
    """Return the request target in the first line of a request; return no bytes if this line is invalid.

    Args:
        received_bytes: bytes of the request that were received last.
    """
    line = _LINE.match(received_bytes)
    return b"" if line is None else line["target"]


def build_parse_error(received_bytes: bytes, parser_message: str) -> WorkspaceError:
    """Return the error for a request that the HTTP parser cannot parse; call this only in an ``except`` block.

    Args:
        received_bytes: bytes of the request that were received last.
        parser_message: error message of the parser.
    """
    line = _LINE.match(received_bytes)
    if line is not None and line["major"] != _MAJOR:
        return _build_unsupported_version_error()
    if line is not None and isinstance(sys.exception(), httptools.HttpParserInvalidMethodError):
        detail = "The method of the request is unknown."
        return UnsupportedHttpError(HTTPStatus.NOT_IMPLEMENTED, "METHOD_NOT_IMPLEMENTED", detail)
    return build_invalid_field_error("request", parser_message)


def _build_unsupported_version_error() -> UnsupportedHttpError:
    return UnsupportedHttpError(
        HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP_VERSION_NOT_SUPPORTED", "Unsupported HTTP version; use HTTP/1.1."
    )
