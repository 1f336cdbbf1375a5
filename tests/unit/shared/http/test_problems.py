"""Tests of problem documents (RFC 9457)."""

import json
from http import HTTPStatus
from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from shared.http.problems import STATUS, build_error_headers, build_problem_reply


def test_each_kind_of_error_has_a_status() -> None:
    """An HTTP status is defined for each kind of error."""
    assert set(STATUS) == set(Kind)


def test_a_problem_document_has_the_error_and_the_trace() -> None:
    """Additional properties of an error are in the problem document, but do not replace standard properties."""
    error = WorkspaceError(Kind.CONFLICT, "JOB_ENDED", "The job has ended.", currentStatus="failed", status="x")
    reply = build_problem_reply(error, "trace-1")
    assert (reply.status, reply.error_code) == (409, "JOB_ENDED")
    assert json.loads(reply.body) == {
        "currentStatus": "failed",
        "type": "urn:oi:problem:job-ended",
        "title": "Conflict",
        "status": 409,
        "detail": "The job has ended.",
        "code": "JOB_ENDED",
        "traceId": "trace-1",
    }


def test_an_interface_may_choose_another_status() -> None:
    """An interface may choose another status for an error; the title matches this status."""
    error = WorkspaceError(Kind.INVALID, "X", "x")
    document = json.loads(build_problem_reply(error, "t", HTTPStatus.IM_A_TEAPOT).body)
    assert (document["status"], document["title"]) == (418, HTTPStatus.IM_A_TEAPOT.phrase)


@pytest.mark.parametrize(
    ("kind", "members", "headers"),
    [
        (Kind.INVALID, {}, {}),
        (Kind.UNAVAILABLE, {}, {"Retry-After": "5"}),
        (Kind.UNAVAILABLE, {"retryAfter": None}, {}),
        (Kind.THROTTLED, {"retryAfter": 30}, {"Retry-After": "30"}),
        (Kind.TIMEOUT, {"retryAfter": 2}, {"Retry-After": "2"}),
        (Kind.UPGRADE_REQUIRED, {}, {"Upgrade": "websocket"}),
        (Kind.UNKNOWN_ENCODING, {"supported": ["gzip"]}, {"Accept-Encoding": "gzip, identity"}),
        (Kind.UNKNOWN_ENCODING, {}, {"Accept-Encoding": "identity"}),
        (Kind.METHOD_NOT_ALLOWED, {"allow": ["GET", "PUT"]}, {"Allow": "GET, PUT"}),
    ],
)
def test_an_error_reply_has_the_headers_of_its_status(
    kind: Kind, members: dict[str, Any], headers: dict[str, str]
) -> None:
    """An error reply has the headers that RFC 9110 requires for its status."""
    assert build_error_headers(WorkspaceError(kind, "X", "x", **members)) == headers


def test_a_missing_retry_delay_is_not_in_the_problem_document() -> None:
    """If ``retryAfter`` is None, the problem document does not contain it."""
    error = WorkspaceError(Kind.UNAVAILABLE, "X", "x", retryAfter=None)
    assert "retryAfter" not in json.loads(build_problem_reply(error, "t").body)
