"""What the host itself refuses, as the problem documents that the app's own errors are (RFC 9457)."""

import re
import uuid
from collections.abc import Iterable
from http import HTTPStatus

import orjson

from shared.errors import Kind, WorkspaceError
from shared.http.guarding import guard
from shared.http.messages import Reply, json_bytes
from shared.http.problems import problem_reply

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


def refusal(error: WorkspaceError, given_id: str, *, close: bool = False) -> Reply:
    """Return the reply that tells a caller of an error of the host.

    Args:
        error: what went wrong.
        given_id: the request's id.
        close: whether the connection ends with the reply, because the rest of the request is not read.
    """
    reply = problem_reply(error, given_id)
    reply.headers["x-request-id"] = given_id
    guard(reply.headers)
    if close:
        reply.headers["Connection"] = "close"
    return reply


def timed_out(detail: str, given_id: str) -> Reply:
    """Return the 408 for a request that does not arrive; the app's own time-outs are the engine's, so 504."""
    return _with_status(WorkspaceError(Kind.TIMEOUT, "REQUEST_TIMEOUT", detail), given_id, HTTPStatus.REQUEST_TIMEOUT)


def not_implemented(given_id: str) -> Reply:
    """Return the 501 for a method that HTTP does not know (RFC 9110 section 9.1)."""
    error = WorkspaceError(Kind.INVALID, "METHOD_NOT_IMPLEMENTED", "The method of the request is not known.")
    return _with_status(error, given_id, HTTPStatus.NOT_IMPLEMENTED)


def _with_status(error: WorkspaceError, given_id: str, status: HTTPStatus) -> Reply:
    reply = refusal(error, given_id, close=True)
    document = orjson.loads(reply.body) | {"title": status.phrase, "status": int(status)}
    return Reply(int(status), json_bytes(document), reply.headers)
