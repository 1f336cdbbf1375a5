"""Tests of conditional requests."""

import pytest

from functions import GROUPS
from functions.conditions import parse_conditional_headers, parse_if_none_match
from shared.errors import WorkspaceError
from shared.http.messages import Request
from shared.http.operation_docs import NOT_MODIFIED


def build_request(**headers: str) -> Request:
    """Return a request with conditional headers."""
    return Request("GET", "/", "", {name.replace("_", "-"): value for name, value in headers.items()}, b"")


def test_a_request_without_conditional_headers_is_always_executed() -> None:
    """A request without conditional headers is executed whatever version is stored."""
    assert parse_conditional_headers(build_request()).is_empty


def test_a_read_request_ignores_if_match() -> None:
    """A read ignores If-Match, because a list has no stored version."""
    request = build_request(if_match='"1"', if_none_match='"2"')
    assert not parse_conditional_headers(request).is_satisfied_by('"3"')
    assert parse_if_none_match(request).is_satisfied_by('"3"')


@pytest.mark.parametrize("header", ["if_match", "if_none_match"])
def test_a_malformed_conditional_header_is_named(header: str) -> None:
    """The error about a malformed conditional header contains the header's name."""
    with pytest.raises(WorkspaceError) as raised:
        parse_conditional_headers(build_request(**{header: "1"}))
    assert header.replace("_", "-") in raised.value.detail.lower()


def test_only_operations_that_create_describe_a_condition_to_create() -> None:
    """Only an operation that can reply 201 says of the header `If-None-Match: *` that the operation then creates."""
    conditional = [each for group in GROUPS for each in group.operations if "If-None-Match" in each.docs.headers]
    create = {each.name for each in conditional if any(reply.status == 201 for reply in each.docs.replies)}
    assert "put_warm_query" in create
    assert create == {
        each.name for each in conditional if "only creates" in each.docs.headers["If-None-Match"]["description"]
    }


def test_each_operation_that_replies_304_declares_the_condition() -> None:
    """Each operation with a documented 304 reply documents the header If-None-Match, so that clients can send it."""
    operations = [each for group in GROUPS for each in group.operations if NOT_MODIFIED in each.docs.replies]
    assert {"execute_warm_query", "openapi_document", "issue_receipt"} <= {each.name for each in operations}
    assert [each.name for each in operations if "If-None-Match" not in each.docs.headers] == []
