"""What a client is told whose handshake is none (RFC 6455 section 4.2.1)."""

from typing import Final

from websockets.exceptions import HeaderLineTooLong, InvalidMethod, RequestLineTooLong, TooManyHeaders
from websockets.http11 import Request
from websockets.server import ServerProtocol

from local.http_server.error_replies import error_reply, request_id
from shared.errors import Kind, WorkspaceError, invalid
from shared.http.messages import Reply
from shared.observability.logs import fields, get_logger

_LOGGER = get_logger("http")
_VERSION: Final = "13"
_SWITCHING: Final = 101


def find_handshake_error(handshake: Request, protocol: ServerProtocol) -> WorkspaceError | None:
    """Return what is wrong with a handshake, None where it can be accepted."""
    if handshake.headers.get_all("Sec-WebSocket-Version") not in ([], [_VERSION]):
        detail = f"Another version of WebSocket is spoken here, {_VERSION}."
        return WorkspaceError(Kind.UPGRADE_REQUIRED, "UPGRADE_REQUIRED", detail)
    if protocol.accept(handshake).status_code == _SWITCHING:
        return None
    if isinstance(protocol.handshake_exc, InvalidMethod):
        detail = f"{handshake.method} does not upgrade."
        return WorkspaceError(Kind.METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail, allow=["GET"])
    return invalid("handshake", str(protocol.handshake_exc))


def unreadable_handshake_error(protocol: ServerProtocol) -> WorkspaceError:
    """Return what is wrong with a request that could not be read as a handshake."""
    match protocol.handshake_exc:
        case RequestLineTooLong():
            return WorkspaceError(Kind.TARGET_TOO_LONG, "URI_TOO_LONG", "The handshake's address is too long.")
        case HeaderLineTooLong() | TooManyHeaders():
            detail = "A header of the handshake is too long, or they are too many."
            return WorkspaceError(Kind.HEADERS_TOO_LARGE, "HEADERS_TOO_LARGE", detail)
        case _:
            return invalid("handshake", "a request without a body is expected")


def told(error: WorkspaceError, handshake: Request | None) -> Reply:
    """Return the refusal, and note it as every request is noted.

    Args:
        error: what is wrong.
        handshake: None where it could not be read.
    """
    raw = [] if handshake is None else handshake.headers.raw_items()
    given = request_id((name.lower().encode(), value.encode("utf-8", "surrogateescape")) for name, value in raw)
    reply = error_reply(error, given, close=True)
    if error.kind is Kind.UPGRADE_REQUIRED:
        reply.headers["Sec-WebSocket-Version"] = _VERSION
    method = "GET" if handshake is None else handshake.method
    _LOGGER.info("request", extra=fields(requestId=given, method=method, route="-", status=reply.status))
    return reply
