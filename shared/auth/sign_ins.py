"""Sign-in of a person from which a token descends: its time, its methods and its id.

Tokens contain these values as the claims ``auth_time``, ``amr`` and ``sid`` (OpenID Connect Core).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from shared.auth.token_ids import read_issue_time

AUTH_TIME: Final = "auth_time"
"""Claim with the time of the sign-in, in seconds since 1970."""

AMR: Final = "amr"
"""Claim with the authentication methods of the sign-in (RFC 8176)."""

SID: Final = "sid"
"""Claim with the id of the sign-in."""

KEY_METHOD: Final = "key"
"""Authentication method of a sign-in with an API key."""

_START: Final = datetime.fromtimestamp(0, UTC)
_MAX_SECONDS: Final = (datetime.max.replace(tzinfo=UTC) - _START) // timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SignIn:
    """Sign-in of a person with an API key or an Entra ID account.

    Attributes:
        at: time of the sign-in in whole seconds; None if unknown; the sign-in then never counts as recent.
        methods: authentication methods (RFC 8176).
        sign_in_id: id of the sign-in, which all tokens that descend from it share; empty if the time is unknown.
    """

    at: datetime | None = None
    methods: tuple[str, ...] = ()
    sign_in_id: str = ""

    @property
    def exact_time(self) -> datetime | None:
        """Time of the sign-in, accurate to a microsecond if its id contains the time, else in whole seconds."""
        return read_issue_time(self.sign_in_id) or self.at

    def to_claims(self) -> dict[str, Any]:
        """Convert the sign-in to claims of a token."""
        time = {} if self.at is None else {AUTH_TIME: to_epoch_seconds(self.at)}
        return {**time, AMR: list(self.methods), **({SID: self.sign_in_id} if self.sign_in_id else {})}


NO_SIGN_IN: Final = SignIn()
"""Sign-in of a credential that proves no sign-in of a person."""


def build_api_key_sign_in(token_id: str, at: datetime) -> SignIn:
    """Return the sign-in of a person who requests a token with an API key.

    Args:
        token_id: id of the token, which becomes the id of the sign-in, because both are unique and contain the time.
        at: time of the request.
    """
    return SignIn(at.replace(microsecond=0), (KEY_METHOD,), token_id)


def sign_in_from_claims(claims: Mapping[str, Any]) -> SignIn:
    """Parse the sign-in in the claims of one of the service's own tokens.

    The attributes of the sign-in are empty if an earlier version of the service issued the token.

    Raises:
        ValueError: a claim has another form than this service writes.
    """
    time, methods, sign_in_id = claims.get(AUTH_TIME), claims.get(AMR, []), claims.get(SID, "")
    at = None if time is None else parse_epoch_seconds(time)
    known = _parse_authentication_methods(methods)
    if (at is None) is not (time is None) or known is None or not isinstance(sign_in_id, str):
        raise ValueError(
            f"the claims {AUTH_TIME}, {AMR} or {SID} of the token do not have the form that this service writes"
        )
    return SignIn(at, known, sign_in_id)


def sign_in_from_entra_claims(claims: Mapping[str, Any]) -> SignIn:
    """Read the sign-in in the claims of a verified Entra ID token; a missing or malformed claim counts as unknown.

    The id of the sign-in is derived from the person and the time, so all Entra ID tokens of one sign-in give the same
    id.
    """
    at = parse_epoch_seconds(claims.get(AUTH_TIME))
    methods = _parse_authentication_methods(claims.get(AMR)) or ()
    if at is None:
        return SignIn(None, methods)
    seed = f"{claims.get('tid')} {claims.get('oid') or claims.get('sub')} {to_epoch_seconds(at)}"
    # The prefix distinguishes the id from ids that contain a time.
    return SignIn(at, methods, f"entra-{hashlib.sha256(seed.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}")


def parse_epoch_seconds(value: Any) -> datetime | None:
    """Parse a number of seconds since 1970, without its fraction; None if the value is not a valid time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_SECONDS:
        return None
    return _START + timedelta(seconds=int(value))


def to_epoch_seconds(at: datetime) -> int:
    """Convert a time to whole seconds since 1970."""
    return (at - _START) // timedelta(seconds=1)


def _parse_authentication_methods(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(method, str) for method in value):
        return None
    return tuple(value)
