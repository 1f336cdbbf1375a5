"""OAuth parameters that require a recent sign-in: ``max_age`` and ``prompt=login`` (OpenID Connect Core 3.1.2.1)."""

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.auth.reauthentication import MAX_AHEAD, build_reauthentication_error
from shared.auth.sign_ins import SignIn
from shared.errors import build_invalid_field_error
from shared.oauth.errors import OAuthError, build_invalid_request_error
from shared.oauth.parameters import Parameters
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339, parse_rfc3339

REQUESTED_AT: Final = "requested_at"
"""Parameter with the time of an authorization request, which the service adds to the address of the consent page."""

REMEMBERED_REQUESTS: Final = 1_000
LONGEST_CONSENT: Final = timedelta(hours=1)
"""Time within which the person must answer a request that requires a new sign-in."""

_MAX_DIGITS: Final = 9
_IDENTIFYING: Final = ("client_id", "redirect_uri", "state", "code_challenge")


@dataclass(frozen=True, slots=True)
class SignInDemand:
    """Requirement of an OAuth client for the sign-in of the person who consents.

    Attributes:
        max_age: maximum age of the sign-in in seconds; None for any age.
        is_new: True if the person must sign in after the request.
    """

    max_age: int | None
    is_new: bool

    def require_recent_sign_in(self, sign_in: SignIn, requested_at: datetime | None, at: datetime) -> None:
        """Check that a sign-in is recent enough for the OAuth client.

        Args:
            sign_in: sign-in of the person who consents.
            requested_at: time of the authorization request. If it is None (unknown) and the client requires a new
                sign-in, every sign-in is rejected.
            at: time of the consent.

        Raises:
            WorkspaceError: UNAUTHENTICATED ``REAUTHENTICATION_REQUIRED``.
        """
        if self.is_new and not _is_sign_in_after_request(sign_in, requested_at):
            raise build_reauthentication_error(0, "The application")
        if self.max_age and not _is_sign_in_within_age(sign_in, timedelta(seconds=self.max_age), at):
            raise build_reauthentication_error(self.max_age, "The application")


def parse_sign_in_demand(parameters: Parameters) -> SignInDemand:
    """Parse the parameters ``max_age`` and ``prompt`` of an authorization request.

    The maximum age 0 has the meaning of ``prompt=login``, because every sign-in is older than 0 seconds.

    Raises:
        OAuthError: ``invalid_request`` if ``max_age`` is not a number of seconds.
    """
    text, prompt = parameters.get("max_age"), parameters.get("prompt") or ""
    if text is not None and not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise build_invalid_request_error(
            f"The parameter max_age must be a whole number of seconds with at most {_MAX_DIGITS} digits."
        )
    max_age = None if text is None else int(text)
    return SignInDemand(max_age, max_age == 0 or "login" in prompt.split())


class RequestTimes:
    """Arrival times of the authorization requests that require a new sign-in, as far as this process received them.

    The consent page sends the arrival time back with its request. If a page sends only the client's parameters, the
    time is taken from this object.

    Args:
        runtime: clock of the service.
    """

    def __init__(self, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._runtime = runtime
        self._times: OrderedDict[bytes, datetime] = OrderedDict()

    def record_and_format_arrival_time(self, parameters: Parameters) -> str | None:
        """Record the arrival time of an authorization request, and return it for the address of the consent page.

        Returns:
            The time as value of the parameter ``requested_at``, which the consent page sends back. None, and nothing is
            recorded, if the request requires no new sign-in or is malformed.
        """
        try:
            if not parse_sign_in_demand(parameters).is_new:
                return None
        except OAuthError:
            return None
        at, identity = self._runtime.now(), _compute_request_digest(parameters)
        self._times[identity] = at
        self._times.move_to_end(identity)
        if len(self._times) > REMEMBERED_REQUESTS:
            self._times.popitem(last=False)
        return format_rfc3339(at)

    def find_arrival_time(self, parameters: Parameters) -> datetime | None:
        """Return the arrival time of a request: the recorded time or the consent page's time, whichever is later.

        The page may send a time that another instance recorded. A time over an hour ago is ignored, because with a
        forged old time every sign-in would count as new.

        Returns:
            The time; None if it is unknown.

        Raises:
            WorkspaceError: INVALID naming ``requested_at`` if the consent page's time is not an RFC 3339 time.
        """
        text, recorded = parameters.get(REQUESTED_AT), self._times.get(_compute_request_digest(parameters))
        if text is None:
            return recorded
        try:
            sent = parse_rfc3339(text)
        except ValueError as error:
            raise build_invalid_field_error(REQUESTED_AT, str(error)) from None
        if self._runtime.now() - sent > LONGEST_CONSENT:
            return recorded
        return sent if recorded is None else max(sent, recorded)


def _is_sign_in_within_age(sign_in: SignIn, max_age: timedelta, at: datetime) -> bool:
    """Return whether a sign-in is at most ``max_age`` old, and at most ``MAX_AHEAD`` in the future."""
    return sign_in.exact_time is not None and -MAX_AHEAD <= at - sign_in.exact_time <= max_age


def _is_sign_in_after_request(sign_in: SignIn, requested_at: datetime | None) -> bool:
    """Return whether a sign-in is later than a request; False if one of the two times is unknown."""
    if sign_in.exact_time is None or requested_at is None:
        return False
    # Entra ID states whole seconds, so a sign-in in the second of the request counts as later.
    is_exact = sign_in.exact_time != sign_in.at
    return sign_in.exact_time >= (requested_at if is_exact else requested_at.replace(microsecond=0))


def _compute_request_digest(parameters: Parameters) -> bytes:
    """Compute a digest of the parameters of an authorization request, which identifies the request."""
    values = json.dumps([parameters.get(name) for name in _IDENTIFYING])
    return hashlib.sha256(values.encode()).digest()
