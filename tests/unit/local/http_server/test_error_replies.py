"""Tests of the local host's error replies."""

import json

import pytest

from local.http_server.error_replies import build_error_reply, build_timeout_reply, read_or_create_request_id
from shared.errors import Kind, WorkspaceError


@pytest.mark.parametrize("given", [b"a", b"~" * 128, b'!"{}'])
def test_a_valid_request_id_of_the_caller_is_returned(given: bytes) -> None:
    """An error reply has the request's id if it has 1 to 128 visible ASCII characters."""
    assert read_or_create_request_id([(b"host", b"a"), (b"x-request-id", given)]) == given.decode()


@pytest.mark.parametrize("given", [[], [b""], [b"a" * 129], [b"a b"], [b"\xe9"], [b"a\n"], [b"a", b"b"]])
def test_missing_and_invalid_request_ids_are_replaced(given: list[bytes]) -> None:
    """If the request id is missing, repeated or invalid, the error reply has a new id."""
    made = read_or_create_request_id([(b"x-request-id", value) for value in given])
    assert len(made) == 32
    assert made.encode() not in given


def test_incomplete_request_returns_408() -> None:
    """An incomplete request gets 408 instead of 504, because its caller has caused the timeout."""
    reply = build_timeout_reply("late", "id")
    document = json.loads(reply.body)
    assert (reply.status, document["status"], document["title"]) == (408, 408, "Request Timeout")
    assert (document["code"], document["traceId"], reply.headers["Connection"]) == ("REQUEST_TIMEOUT", "id", "close")


def test_an_error_reply_has_the_headers_of_the_error() -> None:
    """An error reply has the headers that the error defines."""
    reply = build_error_reply(WorkspaceError(Kind.UNAVAILABLE, "X_Y", "no", retryAfter=7), "id")
    assert (reply.headers["Retry-After"], reply.headers["x-request-id"]) == ("7", "id")
    assert "Connection" not in reply.headers
