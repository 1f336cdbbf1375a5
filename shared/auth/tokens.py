"""The service's own tokens: ES256 JWTs (RFC 7519), pinned in algorithm, issuer, audience and workspace."""

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
"""Public keys are fetched at most this often, however many unknown key ids tokens name."""

FRESH_SECONDS = 300.0
"""Public keys are fetched at least this often, so that one that was withdrawn verifies nothing any more."""

_REQUIRED = ["iss", "aud", "iat", "nbf", "exp", "jti"]
_BAD = "The token is not valid."


@dataclass(frozen=True, slots=True)
class Claims:
    """What a verified token says.

    Attributes:
        subject: ``sub``, None for a service's token, which carries no identity.
        username: ``Username``: the team member whose token it is.
        rights: ``AccessRights``, as they were when it was issued.
    """

    token_id: str
    subject: str | None
    username: str
    workspace: str
    rights: frozenset[AccessRight]
    expires_at: datetime


class TokenCodec:
    """Signs and verifies tokens."""

    def __init__(self, key: SigningKey, issuer: str, audience: str) -> None:
        self._key = key
        self._issuer = issuer
        self._audience = audience
        self._public: dict[str, jwt.PyJWK] = {}
        self._asked_at = float("-inf")
        self._failure: WorkspaceError | None = None
        self._fetching = asyncio.Lock()

    async def sign(self, claims: Claims, issued_at: datetime) -> str:
        """Return the compact token that carries the claims."""
        header = {"alg": ALGORITHM, "kid": await self._key.key_id(), "typ": "JWT"}
        signing_input = f"{_segment(header)}.{_segment(self._payload(claims, issued_at))}"
        signature = await self._key.sign(signing_input.encode("ascii"))
        return f"{signing_input}.{jose.encode_base64url(signature)}"

    async def verify(self, token: str) -> Claims:
        """Return the claims of a token.

        Raises:
            WorkspaceError: UNAUTHENTICATED; the detail tells an expired token from a bad one and no more. UNAVAILABLE
                ``SIGNING_KEY_UNAVAILABLE`` while the public keys are not known.
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
            return _claims(payload)
        except jwt.ExpiredSignatureError:
            raise unauthenticated("The token has expired.") from None
        except (jwt.PyJWTError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
            raise unauthenticated(_BAD) from None

    async def _public_key(self, header: Mapping[str, Any]) -> jwt.PyJWK:
        # Only the key id is taken from the header; an embedded key (jwk, x5c) or address (jku, x5u) is never looked at.
        if header.get("alg") != ALGORITHM or "crit" in header:
            raise ValueError(_BAD)
        key_id = header["kid"]
        if self._is_due(key_id):
            # Who comes while the keys are on their way must not find them missing.
            async with self._fetching:
                if self._is_due(key_id):
                    await self._fetch()
        if self._failure is not None and key_id not in self._public:
            raise self._failure
        return self._public[key_id]

    def _is_due(self, key_id: str) -> bool:
        return time.monotonic() - self._asked_at > (FRESH_SECONDS if key_id in self._public else FETCH_SECONDS)

    async def _fetch(self) -> None:
        try:
            keys = await self._key.public_keys()
        except WorkspaceError as error:
            self._failure = error
            raise
        finally:
            self._asked_at = time.monotonic()
        self._failure = None
        self._public = {str(key["kid"]): jwt.PyJWK(dict(key), ALGORITHM) for key in keys}

    def _payload(self, claims: Claims, issued_at: datetime) -> dict[str, Any]:
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


def _segment(value: Mapping[str, Any]) -> str:
    return jose.encode_base64url(json.dumps(value, separators=(",", ":")).encode())


def _claims(payload: Mapping[str, Any]) -> Claims:
    known = set(AccessRight)
    return Claims(
        token_id=str(payload["jti"]),
        subject=payload.get("sub"),
        username=str(payload["Username"]),
        workspace=str(payload["WorkspaceLookup"]),
        rights=frozenset(AccessRight(right) for right in payload["AccessRights"] if right in known),
        expires_at=datetime.fromtimestamp(0, UTC) + timedelta(seconds=int(payload["exp"])),
    )
