"""The service's own tokens: ES256 JWTs (RFC 7519) with fixed algorithm, issuer, audience and workspace."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import jwt

from shared.auth import jose
from shared.auth.ports import MAX_MINUTES, SigningKey
from shared.auth.principals import build_unauthenticated_error
from shared.auth.rights import AccessRight, select_known_rights
from shared.auth.sign_ins import NO_SIGN_IN, SignIn, sign_in_from_claims
from shared.auth.telemetry_binding import TelemetryBinding, binding_from_claims
from shared.errors import WorkspaceError, build_invalid_field_error
from shared.runtime import SYSTEM_RUNTIME, Runtime

ALGORITHM = "ES256"
FETCH_SECONDS = 1.0
"""Minimum time between two fetches of public keys, so that unknown key ids cannot cause many fetches."""

FRESH_SECONDS = 300.0
"""Maximum age of fetched public keys, so that a withdrawn key stops verifying tokens."""

CLOCK_TOLERANCE: Final = timedelta(seconds=120)
"""Maximum lead of the clock of the instance that issued a token; the expiry of a token has no tolerance."""

CLIENT_ID: Final = "client_id"
"""Claim with the OAuth client of a delegated token (RFC 9068 section 2.2)."""

PERSONAL: Final = "Personal"
"""Claim that is False in a token that descends from an API key that another person created; else missing."""

RIGHTS_LISTED: Final = "RightsListed"
"""Claim that is True in a token with listed rights, or that descends from a credential with them; else missing."""

_REQUIRED = ["iss", "aud", "iat", "nbf", "exp", "jti"]
_INVALID = "The token is not valid; request a new one."


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims of one of the service's own tokens.

    Attributes:
        subject: ``sub``; None for a service's token, which has no user identity.
        username: ``Username``: id of the team member who owns the token.
        rights: ``AccessRights`` at the time of issue.
        binding: claims ``Connections`` and ``Devices``: the only connections and devices whose telemetry the token may
            send; None without this limit.
        client_id: ``client_id``: OAuth client to which the member delegated the rights; empty if there is none.
        sign_in: ``auth_time``, ``amr`` and ``sid``.
        personal: ``Personal``: False if another person created the API key from which the token descends.
        has_listed_rights: ``RightsListed``: True if the rights of the token, or of a credential from which it descends,
            were listed at its creation.
        key_id: ``kid`` of the key that verified the token; empty in the claims of a token that is not signed yet.
    """

    token_id: str
    subject: str | None
    username: str
    workspace: str
    rights: frozenset[AccessRight]
    expires_at: datetime
    binding: TelemetryBinding | None = None
    client_id: str = ""
    sign_in: SignIn = NO_SIGN_IN
    personal: bool = True
    has_listed_rights: bool = False
    key_id: str = field(default="", compare=False)


class TokenCodec:
    """Signer and verifier of the service's own tokens."""

    def __init__(self, key: SigningKey, issuer: str, audience: str, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._key = key
        self._issuer = issuer
        self._audience = audience
        self._public: dict[str, jwt.PyJWK] = {}
        self._fetched_at = float("-inf")
        self._failure: WorkspaceError | None = None
        self._fetching = asyncio.Lock()
        self._runtime = runtime

    async def sign(self, claims: Claims, issued_at: datetime) -> str:
        """Sign claims and return the token in compact form.

        Raises:
            WorkspaceError: INVALID naming ``Authorization`` if the token would be too long to be accepted; UNAVAILABLE
                ``SIGNING_KEY_UNAVAILABLE``.
        """
        header = {"alg": ALGORITHM, "kid": await self._key.get_key_id(), "typ": "JWT"}
        signing_input = (
            f"{_encode_json_segment(header)}.{_encode_json_segment(self._build_jwt_payload(claims, issued_at))}"
        )
        signature = await self._key.sign(signing_input.encode("ascii"))
        token = f"{signing_input}.{jose.encode_base64url(signature)}"
        if len(token) > jose.MAX_LENGTH:
            rule = (
                f"the token would have more than {jose.MAX_LENGTH} characters, because the credential is bound to too "
                "many connections or devices; create API keys that are bound to fewer"
            )
            raise build_invalid_field_error("Authorization", rule)
        return token

    async def verify(self, token: str) -> Claims:
        """Verify one of the service's own tokens and return its claims.

        Raises:
            WorkspaceError: UNAUTHENTICATED, whose detail only distinguishes expired from invalid tokens; UNAVAILABLE
                ``SIGNING_KEY_UNAVAILABLE`` if the public keys are unknown.
        """
        try:
            header = jose.parse_token_header(token)
            key = await self._require_public_key(header)
            payload = jwt.decode(
                token,
                key,
                algorithms=[ALGORITHM],
                audience=self._audience,
                issuer=self._issuer,
                leeway=CLOCK_TOLERANCE,
                options={"require": _REQUIRED, "strict_aud": True},
            )
            claims = _parse_claims(payload, header["kid"])
        except jwt.ExpiredSignatureError:
            raise build_unauthenticated_error("The token has expired; request a new one.") from None
        except (jwt.PyJWTError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
            raise build_unauthenticated_error(_INVALID) from None
        # The leeway concerns the times of issue only: a token must not outlive its parent.
        if claims.expires_at <= self._runtime.now():
            raise build_unauthenticated_error("The token has expired; request a new one.")
        return claims

    async def is_key_published(self, key_id: str) -> bool:
        """Return whether the published public keys still contain the key with this id (``kid``).

        The public keys are fetched again if they are older than :data:`FRESH_SECONDS`.

        Raises:
            WorkspaceError: UNAVAILABLE ``SIGNING_KEY_UNAVAILABLE`` if there are no public keys.
        """
        return key_id in await self._load_public_keys(key_id)

    async def _require_public_key(self, token_header: Mapping[str, Any]) -> jwt.PyJWK:
        # Only the key id is read from the header; an embedded key (jwk, x5c) or URL (jku, x5u) must never be used.
        if token_header.get("alg") != ALGORITHM or "crit" in token_header:
            raise ValueError(_INVALID)
        key_id = token_header["kid"]
        return (await self._load_public_keys(key_id))[key_id]

    async def _load_public_keys(self, key_id: str) -> Mapping[str, jwt.PyJWK]:
        """Return the published public keys by id, not older than allowed for the key with the id ``key_id``."""
        await self._refresh_public_keys_if_due(key_id)
        if self._failure is not None:
            raise self._failure
        return self._public

    async def _refresh_public_keys_if_due(self, key_id: str) -> None:
        if self._is_key_fetch_due(key_id):
            # Concurrent requests must wait for the fetch instead of failing with an unknown key.
            async with self._fetching:
                if self._is_key_fetch_due(key_id):
                    await self._fetch_public_keys(reload=key_id not in self._public)

    def _is_key_fetch_due(self, key_id: str) -> bool:
        return self._runtime.monotonic() - self._fetched_at > (
            FRESH_SECONDS if key_id in self._public else FETCH_SECONDS
        )

    async def _fetch_public_keys(self, *, reload: bool) -> None:
        try:
            keys = await self._key.load_public_keys(reload=reload)
        except Exception as error:
            # A cancelled fetch does not count: the next request, which possibly waits already, fetches the keys.
            self._fetched_at = self._runtime.monotonic()
            if isinstance(error, WorkspaceError):
                # During an outage the signing key returns the keys that it knows, so a failure means that no key is
                # enabled or that none was ever read.
                self._failure, self._public = error, {}
            raise
        self._fetched_at = self._runtime.monotonic()
        self._failure = None
        self._public = {str(key["kid"]): jwt.PyJWK(dict(key), ALGORITHM) for key in keys}

    def _build_jwt_payload(self, claims: Claims, issued_at: datetime) -> dict[str, Any]:
        second = int(issued_at.timestamp())
        identity = {} if claims.subject is None else {"sub": claims.subject}
        return {
            "iss": self._issuer,
            **identity,
            "aud": self._audience,
            "iat": second,
            "nbf": second,
            "exp": int(claims.expires_at.timestamp()),
            "jti": claims.token_id,
            "Username": claims.username,
            "WorkspaceLookup": claims.workspace,
            "AccessRights": sorted(claims.rights),
            **(claims.binding.to_claims() if claims.binding is not None else {}),
            **({CLIENT_ID: claims.client_id} if claims.client_id else {}),
            **claims.sign_in.to_claims(),
            **({} if claims.personal else {PERSONAL: False}),
            **({RIGHTS_LISTED: True} if claims.has_listed_rights else {}),
        }


def _encode_json_segment(value: Mapping[str, Any]) -> str:
    return jose.encode_base64url(json.dumps(value, separators=(",", ":")).encode())


def _parse_claims(payload: Mapping[str, Any], key_id: str) -> Claims:
    if int(payload["exp"]) - int(payload["iat"]) > MAX_MINUTES * 60:
        raise ValueError("the token is valid for longer than any token of the service")
    return Claims(
        token_id=str(payload["jti"]),
        subject=payload.get("sub"),
        username=str(payload["Username"]),
        workspace=str(payload["WorkspaceLookup"]),
        rights=select_known_rights(payload["AccessRights"]),
        expires_at=datetime.fromtimestamp(0, UTC) + timedelta(seconds=int(payload["exp"])),
        binding=binding_from_claims(payload),
        client_id=str(payload.get(CLIENT_ID, "")),
        sign_in=sign_in_from_claims(payload),
        personal=PERSONAL not in payload,
        has_listed_rights=RIGHTS_LISTED in payload,
        key_id=key_id,
    )
