"""Check that a person has signed in recently, and the challenge to sign in again (RFC 9470)."""

from datetime import datetime, timedelta
from typing import Final

from shared.auth.sign_ins import SignIn
from shared.errors import Kind, WorkspaceError

REAUTHENTICATION_REQUIRED: Final = "REAUTHENTICATION_REQUIRED"
SINGLE_USE_SECONDS: Final = 60
"""Maximum age of a sign-in that may be used once only."""

MAX_AHEAD: Final = timedelta(seconds=120)
"""Time by which the clock of the service that authenticated the person may be ahead."""


def require_recent_sign_in_time(sign_in: SignIn, max_age_seconds: int, at: datetime) -> datetime:
    """Check that a person has signed in recently enough; return the time of the sign-in.

    Args:
        sign_in: sign-in from which the caller's token descends.
        max_age_seconds: maximum age of the sign-in in seconds; 0 if each use needs its own sign-in, at most
            :data:`SINGLE_USE_SECONDS` ago.
        at: current time.

    Raises:
        WorkspaceError: UNAUTHENTICATED ``REAUTHENTICATION_REQUIRED`` if the sign-in is too old, too far in the future
            or unknown.
    """
    oldest = at - timedelta(seconds=max_age_seconds or SINGLE_USE_SECONDS)
    if sign_in.at is None or not oldest <= sign_in.at <= at + MAX_AHEAD:
        raise build_reauthentication_error(max_age_seconds)
    return sign_in.at


def build_reauthentication_error(max_age_seconds: int, subject: str = "This operation") -> WorkspaceError:
    """Build the error that requires the caller to sign in again.

    Args:
        max_age_seconds: maximum age of the new sign-in in seconds.
        subject: subject of the error message, such as ``This operation``.
    """
    detail = (
        f"{subject} requires a recent sign-in: exchange the API key for a new token, or sign in again, and repeat the "
        "request with the new token."
    )
    return WorkspaceError(Kind.UNAUTHENTICATED, REAUTHENTICATION_REQUIRED, detail, maxAge=max_age_seconds)


def build_www_authenticate_header(error: WorkspaceError) -> str:
    """Build the value of the header WWW-Authenticate for an UNAUTHENTICATED error."""
    if error.code != REAUTHENTICATION_REQUIRED:
        return "Bearer"
    return f'Bearer error="insufficient_user_authentication", max_age={error.members["maxAge"]}'
