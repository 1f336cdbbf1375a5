"""Replies of the OAuth endpoints: tokens and errors (RFC 6749 sections 5.1 and 5.2)."""

from collections.abc import Mapping
from typing import Any, Final, NotRequired, TypedDict

from shared.auth.issuer import NewToken
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request, build_json_reply
from shared.http.problems import STATUS, build_error_headers
from shared.oauth.errors import to_error_description, to_oauth_error_code
from shared.oauth.scopes import format_scope

NO_STORE: Final[Mapping[str, str]] = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class TokenReply(TypedDict):
    """A new access token; no other reply contains it."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str
    refresh_token: NotRequired[str]


class OAuthErrorReply(TypedDict):
    """An OAuth error (RFC 6749 section 5.2)."""

    error: str
    error_description: str


ERRORS: Final = (
    OAuthErrorReply,
    {"error": "invalid_client", "error_description": "The client id must be the id of an API key."},
)


def build_token_reply(token: NewToken, refresh_token: str = "") -> Reply:
    """Build the reply with an access token and, if there is one, a refresh token.

    Args:
        token: access token with its rights and expiry.
        refresh_token: text of the refresh token; empty for no refresh token.
    """
    # The claims `iat` and `exp` have whole seconds, and the lifetime is their difference.
    lifetime = token.expires_at - token.issued_at.replace(microsecond=0)
    members: dict[str, Any] = {
        "access_token": token.token,
        "token_type": "Bearer",
        "expires_in": int(lifetime.total_seconds()),
        "scope": format_scope(token.rights),
    }
    if refresh_token:
        members["refresh_token"] = refresh_token
    return build_json_reply(members, headers=NO_STORE)


def build_oauth_error_reply(error: WorkspaceError, _trace_id: str = "", _request: Request | None = None) -> Reply:
    """Build the OAuth error reply; a 401 reply states in WWW-Authenticate how the client must authenticate."""
    code = to_oauth_error_code(error)
    headers = {**build_error_headers(error), **NO_STORE}
    if error.kind is Kind.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = 'Basic realm="oauth2", charset="UTF-8"'
    reply = build_json_reply(
        {"error": code, "error_description": to_error_description(error.detail)}, STATUS[error.kind], headers
    )
    reply.error_code = error.code
    return reply
