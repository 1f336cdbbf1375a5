"""Tests of the local host's error replies."""

import json

import pytest

from functions import GROUPS
from local.http_server.error_replies import (
    add_version_header_if_rest,
    build_error_reply,
    build_timeout_reply,
    read_or_create_request_id,
)
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply
from shared.http.versions import HEADER


def states_version(request_target: str) -> bool:
    """Return whether an error reply to a request with this target has the header with the API version."""
    reply = Reply(400)
    add_version_header_if_rest(reply, request_target.encode())
    return HEADER in reply.headers


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


def test_error_replies_state_the_version_at_the_addresses_of_versioned_operations() -> None:
    """The host's error replies state the API version exactly at the addresses at which the app's replies state it."""
    endpoints = [endpoint for group in GROUPS for endpoint in group.endpoints]
    for origin in ("", "http://a:1", "HTTPS://[::1]"):
        for query in ("", "?a=1"):
            wrong = [
                f"{origin}/{each.route}{query}"
                for each in endpoints
                if states_version(f"{origin}/{each.route}{query}") is not each.is_versioned
            ]
            assert wrong == []


@pytest.mark.parametrize(
    "target",
    [
        *("", "*", "a:80", "/", "ftp://a/oi-api/team", "/a/oi-api/team", "/files/a", "/admin/functions/a"),
        *("/local/sign-in", "/runtime/webhooks/durabletask/a", "/client/hubs/live", "/api/hubs/live"),
    ],
)
def test_error_replies_of_other_addresses_state_no_version(target: str) -> None:
    """The host's error replies state no API version if the address is unknown or does not belong to the REST API."""
    assert not states_version(target)
