"""Access tokens that the client requests with its API key."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from oi.errors import ApiError

RENEW_SECONDS = 60.0
"""A token is renewed when it expires within this time."""


@dataclass(frozen=True, slots=True)
class Token:
    """Access token of the service.

    Attributes:
        text: the token itself, a JWT.
        expires_at: expiry in seconds since 1970; None if unknown.
    """

    text: str
    expires_at: float | None = None

    def is_fresh(self, now: float) -> bool:
        """Return whether the token is valid for at least another minute; ``now`` is the time in seconds since 1970."""
        return self.expires_at is None or now < self.expires_at - RENEW_SECONDS


def check_credential(text: str) -> None:
    """Check that an API key or a token consists of characters that an HTTP header can contain.

    Raises:
        ValueError: the text contains other characters; the error message does not repeat the text.
    """
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("the API key or token contains a space, a line break or another invalid character")


def parse_token(reply: Any) -> Token:
    """Parse the access token in the reply of ``GET /workspace/api/keys/jwt``.

    Raises:
        ApiError: the reply contains no token, most often because the address belongs to another server.
    """
    try:
        return Token(str(reply["Token"]), datetime.fromisoformat(reply["ExpiresAt"]).timestamp())
    except (KeyError, TypeError, ValueError):
        raise ApiError(0, "", "The reply contains no token; check that the URL is that of a workspace.") from None
