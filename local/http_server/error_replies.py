"""What the host itself refuses, as the problem documents that the app's own errors are (RFC 9457)."""

import re
import uuid
from collections.abc import Iterable
from http import HTTPStatus

from local.http_server.spoken import UnsupportedHttpError
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply
from shared.http.problems import problem_reply
from shared.http.security_headers import add_security_headers

type RawHeaders = Iterable[tuple[bytes, bytes]]

_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


def request_id(headers: RawHeaders) -> str:
    """Return the id of a request: the caller's ``x-request-id`` when it is 1 to 128 visible ASCII characters, else new.

    Args:
        headers: with names in lower case.
    """
    given = [value for name, value in headers if name == b"x-request-id"]
    if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]):
        return given[0].decode("ascii")
    return uuid.uuid4().hex


def error_reply(
    error: WorkspaceError, given_id: str, *, close: bool = False, status: HTTPStatus | None = None
) -> Reply:
    """Return the reply that tells a caller of an error of the host.

    Args:
        error: what went wrong.
        given_id: the request's id.
        close: whether the connection ends with the reply, because the rest of the request is not read.
        status: where it is not that of the error.
    """
    if isinstance(error, UnsupportedHttpError):
        status = error.status
    reply = problem_reply(error, given_id, status)
    reply.headers["x-request-id"] = given_id
    add_security_headers(reply.headers)
    if close:
        reply.headers["Connection"] = "close"
    return reply


def serialize_reply(reply: Reply, further: RawHeaders) -> bytes:
    """Return a reply as it goes out where no application answers (RFC 9112 section 4).

    Args:
        reply: the reply.
        further: headers that every reply of the server has.
    """
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}".encode()]
    lines += [name + b": " + value for name, value in further]
    lines += [f"{name}: {value}".encode("latin-1") for name, value in reply.headers.items()]
    lines += [b"content-length: %d" % len(reply.body), b"", reply.body]
    return b"\r\n".join(lines)


def timeout_reply(detail: str, given_id: str) -> Reply:
    """Return the 408 for a request that does not arrive; the app's own time-outs are the engine's, so 504."""
    error = WorkspaceError(Kind.TIMEOUT, "REQUEST_TIMEOUT", detail)
    return error_reply(error, given_id, close=True, status=HTTPStatus.REQUEST_TIMEOUT)
