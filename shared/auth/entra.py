"""Verification of Entra ID tokens, with which people sign in with their organisation's account."""

import string
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import jwt

from shared.auth import jose
from shared.auth.ports import OpenIdProvider, TeamMember
from shared.auth.principals import build_unauthenticated_error
from shared.auth.tokens import CLOCK_TOLERANCE

ALGORITHM = "RS256"
_REQUIRED = ["iss", "aud", "iat", "nbf", "exp", "tid"]
_INVALID = "The token is not valid; request a new one."
_BACKDATING: Final = timedelta(minutes=5)
"""Time by which Entra ID sets ``iat`` and ``nbf`` before the issue of a token.

In the example tokens of learn.microsoft.com/entra/identity-platform/access-tokens, ``exp`` is 65 minutes after ``iat``.
"""
_ASCII_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


type EntraClaims = Mapping[str, Any]
"""Claims of a verified Entra ID token, by name."""


class EntraTokens:
    """Verifier of the tokens that one Entra ID tenant issues for one application (OpenID Connect Core 3.1.3.7).

    Args:
        provider: source of the issuer's name and public keys.
        tenant_id: id of the only accepted tenant.
        audiences: accepted values of ``aud``, which all identify the same application.
    """

    def __init__(self, provider: OpenIdProvider, tenant_id: str, *audiences: str) -> None:
        self._provider = provider
        self._tenant_id = tenant_id
        self._audiences = frozenset(filter(None, audiences))

    async def verify(self, token: str) -> EntraClaims:
        """Verify an Entra ID token and return its claims.

        Raises:
            WorkspaceError: UNAUTHENTICATED if the token is invalid or has expired; UNAVAILABLE if the provider's keys
                cannot be fetched.
        """
        try:
            key = await self._load_public_key(jose.parse_token_header(token))
            claims: EntraClaims = jwt.decode(
                token,
                key,
                algorithms=[ALGORITHM],
                issuer=await self._provider.load_issuer(),
                options={"require": _REQUIRED, "verify_aud": False},
            )
        except jwt.ExpiredSignatureError:
            raise build_unauthenticated_error("The token has expired; request a new one.") from None
        except (jwt.PyJWTError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
            raise build_unauthenticated_error(_INVALID) from None
        audience = claims["aud"]
        if claims["tid"] != self._tenant_id or not isinstance(audience, str) or audience not in self._audiences:
            raise build_unauthenticated_error(_INVALID)
        return claims

    async def _load_public_key(self, token_header: Mapping[str, Any]) -> jwt.PyJWK:
        if token_header.get("alg") != ALGORITHM or "crit" in token_header:
            raise ValueError(_INVALID)
        key = await self._provider.find_public_key(str(token_header["kid"]))
        if key is None or key.get("kty") != "RSA":
            raise ValueError(_INVALID)
        return jwt.PyJWK(dict(key), ALGORITHM)


class ManagedIdentityTokens:
    """Verifier of the tokens of managed identities, in both versions that Entra ID issues.

    The registration of the called application selects the version. Version 1.0 is the default, with the issuer
    ``https://sts.windows.net/<tenant>/`` and the App ID URI or the client id as audience. Version 2.0 has the issuer
    ``<authority>/<tenant>/v2.0`` and the client id (learn.microsoft.com/entra/identity-platform/access-tokens). Each
    version has its own discovery document.

    Args:
        versions: verifier for each value of the token's claim ``ver``.
    """

    def __init__(self, versions: Mapping[str, EntraTokens]) -> None:
        self._versions = versions

    async def verify(self, token: str) -> EntraClaims:
        """Verify the token of a managed identity and return its claims.

        Raises:
            WorkspaceError: the same errors as ``EntraTokens.verify``.
        """
        try:
            jose.parse_token_header(token)
            # Not verified yet: the claim only selects the verifier, which checks issuer and signature.
            version = str(jwt.decode(token, options={"verify_signature": False}).get("ver"))
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise build_unauthenticated_error(_INVALID) from None
        verifier = self._versions.get(version)
        if verifier is None:
            raise build_unauthenticated_error(_INVALID)
        return await verifier.verify(token)


def get_client_id_and_app_id_uri(audience: str) -> tuple[str, str]:
    """Return both documented forms of an application's audience: its client id and its App ID URI."""
    client_id = audience.removeprefix("api://")
    return client_id, f"api://{client_id}"


def find_member_by_claims(members: Iterable[TeamMember], claims: EntraClaims) -> TeamMember | None:
    """Find the team member of a verified token: by object id, else by e-mail address.

    The claim ``email`` is used only if ``xms_edov`` or ``email_verified`` states that the provider has verified it,
    because the owner of a directory can enter any text. Only the case of ASCII letters is ignored. Unicode's case
    folding would make different mailboxes equal, such as ``strauß`` and ``strauss``.
    """
    known = list(members)
    object_id = _lower_ascii(str(claims.get("oid", "")))
    for member in known:
        if object_id and member.oid is not None and _lower_ascii(member.oid) == object_id:
            return member
    verified = any(claims.get(name) in (True, "true", "1", 1) for name in ("xms_edov", "email_verified"))
    email = _lower_ascii(str(claims.get("email", ""))) if verified else ""
    return next((member for member in known if email and member.oid is None and _lower_ascii(member.id) == email), None)


def get_token_or_user_id(claims: EntraClaims) -> str:
    """Return the id of a verified Entra ID token for audit events; the id of the user if the token has no id."""
    return str(claims.get("uti") or claims.get("oid") or "")


def get_token_expiry(claims: EntraClaims) -> datetime:
    """Return the time at which a verified Entra ID token expires."""
    return datetime.fromtimestamp(int(claims["exp"]), UTC)


def compute_latest_possible_issue_time(claims: EntraClaims) -> datetime:
    """Return the latest time, by the clock of this service, at which a verified Entra ID token can have been issued.

    It is later than the claim ``iat``, because Entra ID states an earlier time there, and clocks can differ.
    """
    return datetime.fromtimestamp(int(claims["iat"]), UTC) + _BACKDATING + CLOCK_TOLERANCE


def _lower_ascii(text: str) -> str:
    return text.translate(_ASCII_LOWER)
