"""The service's own tokens: ES256 JWTs (RFC 7519) with fixed algorithm, issuer, audience and workspace."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt

from shared.auth import jose
from shared.auth.ports import SigningKey
from shared.auth.principals import unauthenticated
from shared.auth.rights import AccessRight
from shared.errors import WorkspaceError

ALGORITHM = "ES256"
FETCH_SECONDS = 1.0
"""Minimum time between two fetches of public keys, so that unknown key ids cannot cause many fetches."""

FRESH_SECONDS = 300.0
"""Maximum age of fetched public keys, so that a withdrawn key stops verifying tokens."""

_REQUIRED = ["iss", "aud", "iat", "nbf", "exp", "jti"]
_INVALID = "The token is not valid."


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims of a verified token.

    Attributes:
        subject: ``sub``; None for a service's token, which has no user identity.
        username: ``Username``: the team member who owns the token.
        rights: ``AccessRights`` at the time of issue.
    """

    token_id: str
    subject: str | None
    username: str
    workspace: str
    rights: frozenset[AccessRight]
    expires_at: datetime


class TokenCodec:
    """Signer and verifier of tokens."""

    def __init__(self, key: SigningKey, issuer: str, audience: str) -> None:
        self._key = key
        self._issuer = issuer
        self._audience = audience
        self._public: dict[str, jwt.PyJWK] = {}
        self._fetched_at = float("-inf")
        self._failure: WorkspaceError | None = None
        self._fetching = asyncio.Lock()

    async def sign(self, claims: Claims, issued_at: datetime) -> str:
        """Return the compact token with the claims."""
        header = {"alg": ALGORITHM, "kid": await self._key.key_id(), "typ": "JWT"}
        signing_input = f"{_encode_segment(header)}.{_encode_segment(self._build_payload(claims, issued_at))}"
        signature = await self._key.sign(signing_input.encode("ascii"))
        return f"{signing_input}.{jose.encode_base64url(signature)}"

    async def verify(self, token: str) -> Claims:
        """Return the claims of a token.

        Raises:
            WorkspaceError: UNAUTHENTICATED, with a detail that only separates expired from invalid tokens; UNAVAILABLE
                ``SIGNING_KEY_UNAVAILABLE`` if the public keys are unknown.
        """
        try:
            key = await self._public_key(jose.parse_header(token))
            payload = jwt.decode(
                token,
                key,
                algorithms=[ALGORITHM],
                audience=self._audience,
                issuer=self._issuer,
                options={"require": _REQUIRED, "strict_aud": True},
            )
            return _parse_claims(payload)
        except jwt.ExpiredSignatureError:
            raise unauthenticated("The token has expired.") from None
        except (jwt.PyJWTError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
            raise unauthenticated(_INVALID) from None

    async def _public_key(self, header: Mapping[str, Any]) -> jwt.PyJWK:
        # Only the key id is read from the header; an embedded key (jwk, x5c) or URL (jku, x5u) must never be used.
        if header.get("alg") != ALGORITHM or "crit" in header:
            raise ValueError(_INVALID)
        key_id = header["kid"]
        if self._is_due(key_id):
            # Concurrent requests must wait for the fetch instead of failing with an unknown key.
            async with self._fetching:
                if self._is_due(key_id):
                    await self._fetch()
        if self._failure is not None and key_id not in self._public:
            raise self._failure
        return self._public[key_id]

    def _is_due(self, key_id: str) -> bool:
        return time.monotonic() - self._fetched_at > (FRESH_SECONDS if key_id in self._public else FETCH_SECONDS)

    async def _fetch(self) -> None:
        try:
            keys = await self._key.public_keys()
        except WorkspaceError as error:
            self._failure = error
            raise
        finally:
            self._fetched_at = time.monotonic()
        self._failure = None
        self._public = {str(key["kid"]): jwt.PyJWK(dict(key), ALGORITHM) for key in keys}

    def _build_payload(self, claims: Claims, issued_at: datetime) -> dict[str, Any]:
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
        }


def _encode_segment(value: Mapping[str, Any]) -> str:
    return jose.encode_base64url(json.dumps(value, separators=(",", ":")).encode())


def _parse_claims(payload: Mapping[str, Any]) -> Claims:
    known = set(AccessRight)
    return Claims(
        token_id=str(payload["jti"]),
        subject=payload.get("sub"),
        username=str(payload["Username"]),
        workspace=str(payload["WorkspaceLookup"]),
        rights=frozenset(AccessRight(right) for right in payload["AccessRights"] if right in known),
        expires_at=datetime.fromtimestamp(0, UTC) + timedelta(seconds=int(payload["exp"])),
    )
