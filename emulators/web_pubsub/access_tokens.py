"""Access tokens: signed with the access key (HS256), with the requested URL as audience."""

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

import jwt

from shared.errors import Kind, WorkspaceError

type Claims = Mapping[str, Any]

_CACHE_SIZE = 1_000
_MAX_TOKEN_LENGTH = 16_384
_MAX_TIME = 253_402_300_800
_INVALID = "The access token is malformed, expired, or not signed with the access key."
_SCHEMES = frozenset({"http", "https", "ws", "wss"})


def read_token(token: str, access_key: str, host: str, target: str) -> Claims:
    """Return the claims of a valid token for a URL.

    Args:
        token: the token from the request.
        access_key: the key that must have signed it.
        host: the host and port that the caller used, in lower case.
        target: path of the URL as sent, optionally with its query.

    Raises:
        WorkspaceError: UNAUTHENTICATED if the token is malformed, expired, signed with another key, or for another URL.
    """
    claims = _verified(token, access_key, host, target)
    if claims["exp"] <= time.time():
        raise _unauthenticated(_INVALID)
    return claims


# Publishers reuse a token for many requests, and its validation costs more than a request.
@lru_cache(maxsize=_CACHE_SIZE)
def _verified(token: str, access_key: str, host: str, target: str) -> Claims:
    try:
        claims: Claims = jwt.decode(
            token, access_key, algorithms=["HS256"], options={"require": ["exp", "aud"], "verify_aud": False}
        )
    except (jwt.InvalidTokenError, ValueError, OverflowError):
        raise _unauthenticated(_INVALID) from None
    if len(token) > _MAX_TOKEN_LENGTH or not _is_time(claims["exp"]):
        raise _unauthenticated(_INVALID)
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if not any(isinstance(audience, str) and _is_for(audience, host, target) for audience in audiences):
        raise _unauthenticated("The access token is for another URL.")
    return claims


def issue_token(
    access_key: str, audience: str, issued_at: int, expires_at: int, claims: Mapping[str, str | Sequence[str] | None]
) -> str:
    """Return a token without empty claims. Times are in seconds since 1970."""
    given = {name: value for name, value in claims.items() if value}
    return jwt.encode({"aud": audience, "iat": issued_at, "exp": expires_at, **given}, access_key, algorithm="HS256")


def _is_for(audience: str, host: str, target: str) -> bool:
    """Return whether an audience is equivalent to a URL.

    Clients sign a URL before their HTTP library normalizes it, so that percent-encoding can differ (RFC 3986 section
    6.2.2).
    """
    try:
        parts = urlsplit(audience)
    except ValueError:
        return False
    path, _, query = target.partition("?")
    return (
        parts.scheme in _SCHEMES
        and parts.netloc.lower() == host
        and _segments(parts.path) == _segments(path)
        and (not parts.query or _parameters(parts.query) == _parameters(query))
    )


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MAX_TIME


def _segments(path: str) -> list[bytes]:
    return [unquote_to_bytes(segment) for segment in path.split("/")]


def _parameters(query: str) -> list[tuple[str, str]]:
    # Invalid UTF-8 must be preserved, because two different URLs could otherwise become equal.
    return parse_qsl(query, keep_blank_values=True, errors="surrogateescape")


def _unauthenticated(detail: str) -> WorkspaceError:
    return WorkspaceError(Kind.UNAUTHENTICATED, "UNAUTHENTICATED", detail)
