"""Tests of the error codes of GraphQL replies."""

import pytest

from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.graphql_api.error_codes import to_graphql_code, to_graphql_error_object, to_graphql_extensions


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (Kind.INVALID, "VALIDATION_ERROR"),
        (Kind.UNAUTHENTICATED, "UNAUTHORIZED"),
        (Kind.FORBIDDEN, "FORBIDDEN"),
        (Kind.NOT_FOUND, "RESOURCE_NOT_FOUND"),
        (Kind.THROTTLED, "RATE_LIMITED"),
        (Kind.LENGTH_REQUIRED, "VALIDATION_ERROR"),
        (Kind.TOO_LARGE, "VALIDATION_ERROR"),
        (Kind.UNKNOWN_ENCODING, "VALIDATION_ERROR"),
        (Kind.TARGET_TOO_LONG, "VALIDATION_ERROR"),
        (Kind.HEADERS_TOO_LARGE, "VALIDATION_ERROR"),
        (Kind.UNAVAILABLE, "INTERNAL_ERROR"),
    ],
)
def test_each_kind_of_error_has_a_graphql_code(kind: Kind, code: str) -> None:
    """The kind of an error determines its GraphQL error code."""
    assert to_graphql_code(WorkspaceError(kind, "SOME_CODE", "detail")) == code


def test_an_invalid_approved_query_is_an_internal_error() -> None:
    """If an approved query is invalid, the caller gets an internal error with the reason."""
    error = WorkspaceError(Kind.INVALID, "QUERY_INVALID", "detail")
    assert to_graphql_extensions(error) == {"code": "INTERNAL_ERROR", "reason": "QUERY_INVALID"}


def test_invalid_fields_are_listed() -> None:
    """The error of a rejected request has the message and the invalid fields."""
    error = build_invalid_field_error("limit", "must be at least 1")
    shown = to_graphql_error_object(error)
    assert (shown["message"], shown["path"]) == (error.detail, [])
    assert shown["extensions"] == {"code": "VALIDATION_ERROR", "errors": error.members["errors"]}
