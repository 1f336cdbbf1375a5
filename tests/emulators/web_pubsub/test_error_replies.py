"""Tests of the error replies of the Web PubSub emulator."""

import json

import pytest

from emulators.web_pubsub.error_replies import (
    EmulatorReply,
    build_error_reply,
    build_json_reply,
    read_or_create_request_id,
    serialize_reply,
)
from shared.errors import Kind, WorkspaceError


@pytest.mark.parametrize(
    ("values", "is_kept"),
    [([b"abc"], True), ([], False), ([b"a", b"b"], False), ([b""], False), ([b"a b"], False), ([b"x" * 129], False)],
)
def test_the_reply_has_the_callers_request_id_if_it_is_valid(values: list[bytes], *, is_kept: bool) -> None:
    """The reply has the request id of the caller if this id is valid.

    Otherwise the reply has a new id, so that callers cannot forge log lines.
    """
    chosen = read_or_create_request_id([(b"x-request-id", value) for value in values])
    assert (chosen.encode() in values) is is_kept
    assert chosen


@pytest.mark.parametrize(
    ("kind", "status", "header"),
    [
        (Kind.UNAUTHENTICATED, 401, ("WWW-Authenticate", "Bearer")),
        (Kind.UPGRADE_REQUIRED, 426, ("Upgrade", "websocket")),
        (Kind.METHOD_NOT_ALLOWED, 405, ("Allow", "GET, PUT")),
        (Kind.UNAVAILABLE, 503, ("Retry-After", "5")),
        (Kind.CONFLICT, 500, ("Connection", "close")),
    ],
)
def test_each_kind_of_error_has_its_own_problem_document(kind: Kind, status: int, header: tuple[str, str]) -> None:
    """Each kind of error has its own status and headers; any other exception is reported as an internal error."""
    error = WorkspaceError(kind, "SOME_ERROR", "Some detail.", allow=["GET", "PUT"])
    reply = build_error_reply(error, "id-1", close_connection=True)
    document = json.loads(reply.body)
    assert (reply.status, document["status"], document["type"]) == (status, status, "urn:oi:problem:some-error")
    assert (reply.headers[header[0]], reply.headers["x-request-id"], document["traceId"]) == (header[1], "id-1", "id-1")


def test_a_failed_handshake_gets_a_complete_http_reply() -> None:
    """A handshake that fails before the application runs gets a complete HTTP reply."""
    reply = EmulatorReply(404, b"{}", {"X": "1"})
    assert serialize_reply(reply, [(b"server", b"e")]) == (
        b"HTTP/1.1 404 Not Found\r\nserver: e\r\nX: 1\r\ncontent-length: 2\r\n\r\n{}"
    )
    assert build_json_reply({"a": 1}).body == b'{"a":1}'
