"""Error replies with problem documents (RFC 9457), also for invalid WebSocket handshakes (RFC 6455 section 4.2.1)."""

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import orjson
from websockets.exceptions import HeaderLineTooLong, InvalidMethod, RequestLineTooLong, TooManyHeaders
from websockets.http11 import Request
from websockets.server import ServerProtocol

from emulators.web_pubsub.asgi import RawHeaders
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.observability.logs import fields, get_logger

_STATUSES: Final = {
    Kind.INVALID: HTTPStatus.BAD_REQUEST,
    Kind.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    Kind.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Kind.METHOD_NOT_ALLOWED: HTTPStatus.METHOD_NOT_ALLOWED,
    Kind.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Kind.TARGET_TOO_LONG: HTTPStatus.REQUEST_URI_TOO_LONG,
    Kind.HEADERS_TOO_LARGE: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    Kind.UPGRADE_REQUIRED: HTTPStatus.UPGRADE_REQUIRED,
    Kind.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
_SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Strict-Transport-Security": "max-age=31536000",
}
_TYPE_BASE: Final = "urn:oi:problem:"
_RETRY_AFTER_SECONDS: Final = 5
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_LOGGER = get_logger("http")
_VERSION: Final = "13"
_SWITCHING: Final = 101


@dataclass(slots=True)
class EmulatorReply:
    """HTTP reply of the emulator: status, headers and body."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def build_json_reply(document: object) -> EmulatorReply:
    """Build a reply with status 200 and a JSON document."""
    return EmulatorReply(200, orjson.dumps(document), {"Content-Type": "application/json"})


def read_or_create_request_id(headers: RawHeaders) -> str:
    """Return the request id in the header ``x-request-id``, or a new id if the header is missing or invalid.

    A valid id has 1 to 128 visible ASCII characters.

    Args:
        headers: pairs of name (in lower case) and value.
    """
    given = [value for name, value in headers if name == b"x-request-id"]
    if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]):
        return given[0].decode("ascii")
    return uuid.uuid4().hex


def build_error_reply(error: WorkspaceError, request_id: str, *, close_connection: bool = False) -> EmulatorReply:
    """Build the HTTP reply with the problem document of an error.

    Args:
        error: the error to report.
        request_id: id of the request, for the header ``x-request-id`` and the property ``traceId``.
        close_connection: True to add the header ``Connection: close``.
    """
    status = _STATUSES.get(error.kind, HTTPStatus.INTERNAL_SERVER_ERROR)
    document: dict[str, Any] = {
        **error.members,
        "type": _TYPE_BASE + error.code.lower().replace("_", "-"),
        "title": status.phrase,
        "status": int(status),
        "detail": error.detail,
        "code": error.code,
        "traceId": request_id,
    }
    headers = {"Content-Type": "application/problem+json", **_build_error_headers(error), "x-request-id": request_id}
    headers |= _SECURITY_HEADERS
    if close_connection:
        headers["Connection"] = "close"
    return EmulatorReply(int(status), orjson.dumps(document), headers)


def serialize_reply(reply: EmulatorReply, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the HTTP/1.1 bytes of a reply (RFC 9112 section 4), for handshakes that do not reach the application."""
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}".encode()]
    lines += [name + b": " + value for name, value in default_headers]
    lines += [f"{name}: {value}".encode("latin-1") for name, value in reply.headers.items()]
    lines += [b"content-length: %d" % len(reply.body), b"", reply.body]
    return b"\r\n".join(lines)


def _build_error_headers(error: WorkspaceError) -> dict[str, str]:
    match error.kind:
        case Kind.UNAUTHENTICATED:
            return {"WWW-Authenticate": "Bearer"}
        case Kind.UPGRADE_REQUIRED:
            return {"Upgrade": "websocket"}
        case Kind.METHOD_NOT_ALLOWED:
            allow = error.members.get("allow")
            return {"Allow": ", ".join(allow) if isinstance(allow, list) else ""}
        case Kind.UNAVAILABLE:
            return {"Retry-After": str(_RETRY_AFTER_SECONDS)}
        case _:
            return {}


def find_handshake_error(handshake: Request, protocol: ServerProtocol) -> WorkspaceError | None:
    """Return the error of an invalid WebSocket handshake; None if the handshake is valid."""
    if handshake.headers.get_all("Sec-WebSocket-Version") not in ([], [_VERSION]):
        detail = f"Unsupported WebSocket version; use {_VERSION}."
        return WorkspaceError(Kind.UPGRADE_REQUIRED, "UPGRADE_REQUIRED", detail)
    if protocol.accept(handshake).status_code == _SWITCHING:
        return None
    if isinstance(protocol.handshake_exc, InvalidMethod):
        detail = f"A WebSocket handshake requires GET, not {handshake.method}."
        return WorkspaceError(Kind.METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail, allow=["GET"])
    return build_invalid_field_error("handshake", str(protocol.handshake_exc))


def build_unreadable_handshake_error(protocol: ServerProtocol) -> WorkspaceError:
    """Return the error for a request that the Python library ``websockets`` cannot parse as a handshake."""
    match protocol.handshake_exc:
        case RequestLineTooLong():
            return WorkspaceError(Kind.TARGET_TOO_LONG, "URI_TOO_LONG", "The URL of the handshake is too long.")
        case HeaderLineTooLong() | TooManyHeaders():
            detail = "The handshake has too many headers, or one of them is too long."
            return WorkspaceError(Kind.HEADERS_TOO_LARGE, "HEADERS_TOO_LARGE", detail)
        case _:
            return build_invalid_field_error("handshake", "must be a request without a body")


def build_handshake_error_reply(error: WorkspaceError, handshake: Request | None) -> EmulatorReply:
    """Build the error reply to an invalid WebSocket handshake, and write the request to the log.

    Args:
        error: the error to report.
        handshake: the request; None if the request could not be parsed.
    """
    raw = [] if handshake is None else handshake.headers.raw_items()
    given_id = read_or_create_request_id(
        (name.lower().encode(), value.encode("utf-8", "surrogateescape")) for name, value in raw
    )
    reply = build_error_reply(error, given_id, close_connection=True)
    if error.kind is Kind.UPGRADE_REQUIRED:
        reply.headers["Sec-WebSocket-Version"] = _VERSION
    method = "GET" if handshake is None else handshake.method
    _LOGGER.info("request", extra=fields(requestId=given_id, method=method, route="-", status=reply.status))
    return reply
