"""Errors of the OAuth endpoints (RFC 6749 sections 4.1.2.1 and 5.2, RFC 8707 section 2)."""

from enum import StrEnum

from shared.errors import Kind, WorkspaceError


class OAuthErrorCode(StrEnum):
    """Values of the property ``error`` in an OAuth error reply."""

    INVALID_REQUEST = "invalid_request"
    INVALID_CLIENT = "invalid_client"
    INVALID_GRANT = "invalid_grant"
    UNAUTHORIZED_CLIENT = "unauthorized_client"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    UNSUPPORTED_RESPONSE_TYPE = "unsupported_response_type"
    INVALID_SCOPE = "invalid_scope"
    INVALID_TARGET = "invalid_target"
    ACCESS_DENIED = "access_denied"
    SERVER_ERROR = "server_error"
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"


class OAuthError(WorkspaceError):
    """Error that an OAuth endpoint returns to a client.

    Args:
        error: the error code.
        description: one sentence for the client's developer, without secrets.
        kind: class of the error; it determines the HTTP status.
    """

    def __init__(self, error: OAuthErrorCode, description: str, kind: Kind = Kind.INVALID) -> None:
        super().__init__(kind, f"OAUTH_{error.upper()}", description)
        self.error = error


def invalid_request_error(description: str) -> OAuthError:
    """Build the OAuth error for a malformed request."""
    return OAuthError(OAuthErrorCode.INVALID_REQUEST, description)


def invalid_client_error(description: str) -> OAuthError:
    """Build the error for a client that is unknown or whose authentication failed."""
    return OAuthError(OAuthErrorCode.INVALID_CLIENT, description, Kind.UNAUTHENTICATED)


def invalid_grant_error(description: str) -> OAuthError:
    """Build the error for an authorization code or refresh token that is not valid."""
    return OAuthError(OAuthErrorCode.INVALID_GRANT, description)


_CODES = {
    Kind.INVALID: OAuthErrorCode.INVALID_REQUEST,
    Kind.UNAUTHENTICATED: OAuthErrorCode.INVALID_CLIENT,
    Kind.FORBIDDEN: OAuthErrorCode.UNAUTHORIZED_CLIENT,
    Kind.THROTTLED: OAuthErrorCode.TEMPORARILY_UNAVAILABLE,
    Kind.UNAVAILABLE: OAuthErrorCode.TEMPORARILY_UNAVAILABLE,
    Kind.TIMEOUT: OAuthErrorCode.TEMPORARILY_UNAVAILABLE,
    Kind.INTERNAL: OAuthErrorCode.SERVER_ERROR,
}


_REPLACED = {'"': "'", "\\": "?"}


def find_error_code(error: WorkspaceError) -> OAuthErrorCode:
    """Return the OAuth error code for any error of the service."""
    if isinstance(error, OAuthError):
        return error.error
    return _CODES.get(error.kind, OAuthErrorCode.INVALID_REQUEST)


def to_description(detail: str) -> str:
    r"""Remove all characters that ``error_description`` must not contain: those beyond ASCII, ``"`` and ``\``."""
    allowed = (_REPLACED.get(char, char if " " <= char <= "~" else "?") for char in detail)
    return "".join(allowed)
