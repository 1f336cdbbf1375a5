"""Access tokens: HS256 over the access key, with the address that they are for as audience."""

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

import jwt

from shared.auth.jose import parse_header
from shared.errors import Kind, WorkspaceError

type Claims = Mapping[str, Any]

_CACHE_SIZE = 1_000
_BAD = "The access token is malformed, expired, or not signed with the access key."
_SCHEMES = frozenset({"http", "https", "ws", "wss"})


def read_token(token: str, access_key: str, host: str, target: str) -> Claims:
    """Return the claims of a token that is for an address.

    Args:
        token: as the caller sent it.
        access_key: the key that it must be signed with.
        host: the host and port that the caller used, in lower case.
        target: path of the address as sent, with or without its query.

    Raises:
        WorkspaceError: UNAUTHENTICATED: the token is malformed, of another key, expired, or for another address.
    """
    claims = _verified(token, access_key, host, target)
    if claims["exp"] <= time.time():
        raise _refused(_BAD)
    return claims


# Who publishes signs with one token for many calls, and checking it costs more than the call.
@lru_cache(maxsize=_CACHE_SIZE)
def _verified(token: str, access_key: str, host: str, target: str) -> Claims:
    try:
        parse_header(token)
        claims: Claims = jwt.decode(
            token, access_key, algorithms=["HS256"], options={"require": ["exp", "aud"], "verify_aud": False}
        )
    except (jwt.InvalidTokenError, ValueError):
        raise _refused(_BAD) from None
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if not any(isinstance(audience, str) and _is_for(audience, host, target) for audience in audiences):
        raise _refused("The access token is for another address.")
    return claims


def issue_token(
    access_key: str, audience: str, issued_at: int, expires_at: int, claims: Mapping[str, str | Sequence[str] | None]
) -> str:
    """Return a token; claims that are empty are left out. Instants are seconds of Unix time."""
    given = {name: value for name, value in claims.items() if value}
    return jwt.encode({"aud": audience, "iat": issued_at, "exp": expires_at, **given}, access_key, algorithm="HS256")


def _is_for(audience: str, host: str, target: str) -> bool:
    """Compare what two addresses mean, not how they are written.

    Clients sign an address before their HTTP library writes it anew: an apostrophe or a comma is escaped in one and
    plain in the other (RFC 3986 section 6.2.2).
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


def _segments(path: str) -> list[bytes]:
    return [unquote_to_bytes(segment) for segment in path.split("/")]


def _parameters(query: str) -> list[tuple[str, str]]:
    # Bytes that are not UTF-8 must stay what they are, or two addresses could look like one.
    return parse_qsl(query, keep_blank_values=True, errors="surrogateescape")


def _refused(detail: str) -> WorkspaceError:
    return WorkspaceError(Kind.UNAUTHENTICATED, "UNAUTHENTICATED", detail)
