"""Tests of the errors of the OAuth endpoints."""

import pytest

from shared.errors import Kind, WorkspaceError
from shared.oauth.errors import OAuthErrorCode, find_error_code, invalid_grant_error, to_description


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (Kind.INVALID, OAuthErrorCode.INVALID_REQUEST),
        (Kind.TOO_LARGE, OAuthErrorCode.INVALID_REQUEST),
        (Kind.UNAUTHENTICATED, OAuthErrorCode.INVALID_CLIENT),
        (Kind.THROTTLED, OAuthErrorCode.TEMPORARILY_UNAVAILABLE),
        (Kind.INTERNAL, OAuthErrorCode.SERVER_ERROR),
    ],
)
def test_every_error_has_a_code(kind: Kind, code: OAuthErrorCode) -> None:
    """Each error of another part of the service gets the OAuth code of its kind."""
    assert find_error_code(WorkspaceError(kind, "X", "x")) is code


def test_an_own_error_keeps_its_code() -> None:
    """The code of an OAuth error is returned unchanged."""
    assert find_error_code(invalid_grant_error("x")) is OAuthErrorCode.INVALID_GRANT


def test_descriptions_have_only_allowed_characters() -> None:
    """RFC 6749 allows printable ASCII without quotation marks and backslashes."""
    assert to_description('a "b" \\ ü\n') == "a 'b' ? ??"
