"""Access tokens that the client requests with its API key, or receives from a function."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from oi.errors import ApiError
from oi.instants import parse_date_header_as_unix_seconds

RENEW_SECONDS = 60.0
"""A token is renewed when it expires within this time."""


@dataclass(frozen=True, slots=True)
class Token:
    """Access token of the service.

    Attributes:
        text: the token itself, a JWT.
        expires_at: expiry in seconds of the monotonic clock; None if unknown.
    """

    text: str
    expires_at: float | None = None

    def is_fresh(self, monotonic_now: float) -> bool:
        """Return whether the token is valid for at least another minute at a time of the monotonic clock."""
        return self.expires_at is None or monotonic_now < self.expires_at - RENEW_SECONDS


class RenewableToken(ABC):
    """Base class of functions that return a valid JWT, and can replace one that the service rejects.

    Other functions with a method ``renew`` do not count, because it can have another meaning.
    """

    @abstractmethod
    def __call__(self) -> str:
        """Return a JWT that is valid according to the clock of this computer."""

    @abstractmethod
    def renew(self, rejected_token: str) -> str:
        """Return another JWT than ``rejected_token``, which the service has rejected.

        Several concurrent requests can report the same JWT; only the first report requests a new one.
        """


def check_credential_characters(text: str) -> None:
    """Check that an API key or a token consists of characters that an HTTP header can contain.

    Raises:
        ValueError: the text contains other characters; the error message does not repeat the text.
    """
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("the API key or token contains a space, a line break or another invalid character")


def parse_token_reply(reply_json: Any, date_header: str, requested_at_monotonic: float) -> Token:
    """Parse the access token in the reply of ``GET /workspace/api/keys/jwt``.

    Args:
        reply_json: JSON value of the reply.
        date_header: HTTP header ``Date`` of the reply; empty if it is missing.
        requested_at_monotonic: time of the monotonic clock, in seconds, at which the request was sent.

    Raises:
        ApiError: the reply contains no token, most often because the address belongs to another server.
    """
    try:
        # Both times are of the service's clock, because that of this computer can be hours ahead or behind.
        expiry = datetime.fromisoformat(reply_json["ExpiresAt"]).timestamp()
        seconds = expiry - parse_date_header_as_unix_seconds(date_header)
        text = str(reply_json["Token"])
        check_credential_characters(text)
        return Token(text, requested_at_monotonic + seconds)
    except (KeyError, TypeError, ValueError):
        raise ApiError(0, "", "The reply contains no token; check that the URL is that of a workspace.") from None
