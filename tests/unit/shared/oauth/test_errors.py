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
    """Errors of other parts of the service get the OAuth code that matches their kind."""
    assert find_error_code(WorkspaceError(kind, "X", "x")) is code


def test_an_own_error_keeps_its_code() -> None:
    """An OAuth error keeps its code when it is returned."""
    assert find_error_code(invalid_grant_error("x")) is OAuthErrorCode.INVALID_GRANT


def test_descriptions_have_only_allowed_characters() -> None:
    """Descriptions are printable ASCII without quotation marks and backslashes, as RFC 6749 requires."""
    assert to_description('a "b" \\ ü\n') == "a 'b' ? ??"
