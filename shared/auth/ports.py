"""Ports of authentication: team, credentials, signing key and OpenID provider."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.auth.rights import AccessRight

MAX_MINUTES = 43_200
"""Maximum lifetime of a token: 30 days."""


class TeamMember(Protocol):
    """Principal of the workspace."""

    @property
    def id(self) -> str:
        """Identifier in credentials and audit records."""
        ...

    @property
    def name(self) -> str:
        """Display name."""
        ...

    @property
    def access_rights(self) -> frozenset[AccessRight]:
        """All rights: those of the role and the member's own."""
        ...

    @property
    def enabled(self) -> bool:
        """True if the member's credentials are accepted."""
        ...

    @property
    def service(self) -> bool:
        """True if the member is a service, whose tokens have no user identity."""
        ...

    @property
    def oid(self) -> str | None:
        """Object id in Entra ID."""
        ...


@dataclass(frozen=True, slots=True)
class Team:
    """Current members of the workspace.

    Attributes:
        workspace: id of the workspace; empty before the first document is applied.
        members: by id.
        audited: whether issued and revoked credentials are recorded in the AccessControl chain.
    """

    workspace: str
    members: Mapping[str, TeamMember]
    audited: bool


class Directory(Protocol):
    """Source of the team."""

    async def team(self) -> Team:
        """Return the team. Called for each request, so it must be cheap."""
        ...


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Stored API key, with a salted hash instead of the secret.

    Attributes:
        key_id: the public part, 8 base32 characters.
        digest: SHA-256 over salt and secret.
        rights: restriction of the key; None for all rights of its principal.
        last_used_at: accurate to about a minute.
    """

    key_id: str
    salt: bytes
    digest: bytes
    principal: str
    name: str
    rights: frozenset[AccessRight] | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """Issued token that has not expired.

    Attributes:
        parent: id of the API key or token that requested it; empty for an Entra ID token.
    """

    token_id: str
    principal: str
    expires_at: datetime
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Credentials:
    """All API keys and all revoked tokens that have not expired, in one version."""

    version: int
    keys: Mapping[str, ApiKey]
    revoked_tokens: frozenset[str]


class CredentialStore(Protocol):
    """Storage of API keys, issued tokens and revocations."""

    async def version(self) -> int:
        """Return a number that grows with each new key and each revocation. Must be cheap."""
        ...

    async def load(self) -> Credentials:
        """Return all credentials that authentication needs."""
        ...

    async def add_key(self, key: ApiKey) -> None:
        """Store a new key; it replaces an unused key with the same id and principal."""
        ...

    async def revoke_key(self, key_id: str, at: datetime) -> None:
        """Revoke a key and every token that descends from it; earlier revocations are not changed."""
        ...

    async def touch_key(self, key_id: str, at: datetime) -> None:
        """Store the last use of a key, without a new version."""
        ...

    async def add_token(self, token: IssuedToken) -> None:
        """Store an issued token, and delete expired ones."""
        ...

    async def find_token(self, token_id: str) -> IssuedToken | None:
        """Return an issued token that has not expired; None if there is none."""
        ...

    async def revoke_token(self, token_id: str, at: datetime) -> None:
        """Revoke an issued token and every token that descends from it."""
        ...


class SigningKey(Protocol):
    """ES256 key that signs tokens."""

    async def key_id(self) -> str:
        """Return the ``kid`` of the current signing key."""
        ...

    async def sign(self, message: bytes) -> bytes:
        """Return the ES256 signature of a message, r and s as 64 bytes (RFC 7518 section 3.4).

        Raises:
            WorkspaceError: UNAVAILABLE ``SIGNING_KEY_UNAVAILABLE``.
        """
        ...

    async def public_keys(self) -> Sequence[Mapping[str, Any]]:
        """Return the public keys as JWKs (RFC 7517), the signing key first."""
        ...


class OpenIdProvider(Protocol):
    """Issuer of Entra ID tokens."""

    async def issuer(self) -> str:
        """Return the ``iss`` of its tokens.

        Raises:
            WorkspaceError: UNAVAILABLE ``IDENTITY_PROVIDER_UNAVAILABLE``.
        """
        ...

    async def public_key(self, key_id: str) -> Mapping[str, Any] | None:
        """Return the public JWK with this ``kid``; None if the provider has none.

        Raises:
            WorkspaceError: UNAVAILABLE ``IDENTITY_PROVIDER_UNAVAILABLE``.
        """
        ...
