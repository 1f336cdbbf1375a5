"""What authentication needs from the outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.auth.rights import AccessRight

MAX_MINUTES = 43_200
"""The longest life of a token: 30 days."""


class TeamMember(Protocol):
    """A principal of the workspace."""

    @property
    def id(self) -> str:
        """What the member is called in credentials and records."""
        ...

    @property
    def name(self) -> str:
        """For people to read."""
        ...

    @property
    def access_rights(self) -> frozenset[AccessRight]:
        """All rights, the role's and the member's own."""
        ...

    @property
    def enabled(self) -> bool:
        """Whether the member's credentials work."""
        ...

    @property
    def service(self) -> bool:
        """Whether the member's tokens carry no identity."""
        ...

    @property
    def oid(self) -> str | None:
        """Object id in Entra ID."""
        ...


@dataclass(frozen=True, slots=True)
class Team:
    """Who belongs to the workspace, as of now.

    Attributes:
        workspace: the workspace's id, empty before a document was applied.
        members: by id.
        audited: whether issues and revocations go to the AccessControl chain.
    """

    workspace: str
    members: Mapping[str, TeamMember]
    audited: bool


class Directory(Protocol):
    """Knows the team."""

    async def team(self) -> Team:
        """Return the team; cheap, asked on each request."""
        ...


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as it is stored: never the secret, only a salted hash of it.

    Attributes:
        key_id: the public part, 8 base32 characters.
        digest: SHA-256 over salt and secret.
        rights: what the key is cut to; None for all rights that its principal holds.
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
    """A token that was handed out, as long as it can still be used.

    Attributes:
        parent: id of the API key or token that asked for it, empty for an Entra ID token.
    """

    token_id: str
    principal: str
    expires_at: datetime
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Credentials:
    """All API keys and all revoked tokens that have not expired, as of one version."""

    version: int
    keys: Mapping[str, ApiKey]
    revoked_tokens: frozenset[str]


class CredentialStore(Protocol):
    """Keeps API keys, and which tokens were issued and revoked."""

    async def version(self) -> int:
        """Return a number that grows with each key made and each revocation; cheap."""
        ...

    async def load(self) -> Credentials:
        """Return what is needed to judge credentials."""
        ...

    async def add_key(self, key: ApiKey) -> None:
        """Keep a new key; one of the same id, made before for the same principal and never used, is replaced."""
        ...

    async def revoke_key(self, key_id: str, at: datetime) -> None:
        """Revoke a key and every token that descends from it; what was revoked before stays as it is."""
        ...

    async def touch_key(self, key_id: str, at: datetime) -> None:
        """Note that a key was used; does not change the version."""
        ...

    async def add_token(self, token: IssuedToken) -> None:
        """Keep that a token was issued, and forget those that have expired."""
        ...

    async def find_token(self, token_id: str) -> IssuedToken | None:
        """Return an issued token that has not expired."""
        ...

    async def revoke_token(self, token_id: str, at: datetime) -> None:
        """Revoke an issued token and every token that descends from it."""
        ...


class SigningKey(Protocol):
    """The ES256 key that signs tokens."""

    async def key_id(self) -> str:
        """Return the ``kid`` of the key that signs now."""
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
    """The issuer of Entra ID tokens."""

    async def issuer(self) -> str:
        """Return the ``iss`` that its tokens carry.

        Raises:
            WorkspaceError: UNAVAILABLE ``IDENTITY_PROVIDER_UNAVAILABLE``.
        """
        ...

    async def public_key(self, key_id: str) -> Mapping[str, Any] | None:
        """Return the public JWK with this ``kid``, None where the provider has none.

        Raises:
            WorkspaceError: UNAVAILABLE ``IDENTITY_PROVIDER_UNAVAILABLE``.
        """
        ...
