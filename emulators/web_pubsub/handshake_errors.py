"""Error replies to invalid WebSocket handshakes (RFC 6455 section 4.2.1)."""

from typing import Final

from websockets.exceptions import HeaderLineTooLong, InvalidMethod, RequestLineTooLong, TooManyHeaders
from websockets.http11 import Request
from websockets.server import ServerProtocol

from emulators.web_pubsub.error_replies import EmulatorReply, error_reply, request_id
from shared.errors import Kind, WorkspaceError, invalid
from shared.observability.logs import fields, get_logger

_LOGGER = get_logger("http")
_VERSION: Final = "13"
_SWITCHING: Final = 101


def find_handshake_error(handshake: Request, protocol: ServerProtocol) -> WorkspaceError | None:
    """Return the error of a handshake, None if it is valid."""
    if handshake.headers.get_all("Sec-WebSocket-Version") not in ([], [_VERSION]):
        detail = f"Unsupported WebSocket version; use {_VERSION}."
        return WorkspaceError(Kind.UPGRADE_REQUIRED, "UPGRADE_REQUIRED", detail)
    if protocol.accept(handshake).status_code == _SWITCHING:
        return None
    if isinstance(protocol.handshake_exc, InvalidMethod):
        detail = f"A WebSocket handshake requires GET, not {handshake.method}."
        return WorkspaceError(Kind.METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail, allow=["GET"])
    return invalid("handshake", str(protocol.handshake_exc))


def unreadable_handshake_error(protocol: ServerProtocol) -> WorkspaceError:
    """Return the error of a request that cannot be parsed as a handshake."""
    match protocol.handshake_exc:
        case RequestLineTooLong():
            return WorkspaceError(Kind.TARGET_TOO_LONG, "URI_TOO_LONG", "The URL of the handshake is too long.")
        case HeaderLineTooLong() | TooManyHeaders():
            detail = "The handshake has too many headers, or one of them is too long."
            return WorkspaceError(Kind.HEADERS_TOO_LARGE, "HEADERS_TOO_LARGE", detail)
        case _:
            return invalid("handshake", "must be a request without a body")


def build_handshake_reply(error: WorkspaceError, handshake: Request | None) -> EmulatorReply:
    """Return the error reply, and log it like every request.

    Args:
        error: the error of the handshake.
        handshake: None if it could not be parsed.
    """
    raw = [] if handshake is None else handshake.headers.raw_items()
    given_id = request_id((name.lower().encode(), value.encode("utf-8", "surrogateescape")) for name, value in raw)
    reply = error_reply(error, given_id, close=True)
    if error.kind is Kind.UPGRADE_REQUIRED:
        reply.headers["Sec-WebSocket-Version"] = _VERSION
    method = "GET" if handshake is None else handshake.method
    _LOGGER.info("request", extra=fields(requestId=given_id, method=method, route="-", status=reply.status))
    return reply
