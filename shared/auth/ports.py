"""Ports of authentication: team, credentials, signing key and OpenID provider."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from shared.auth.access_events import AccessEvent
from shared.auth.rights import AccessRight
from shared.auth.telemetry_binding import TelemetryBinding
from shared.auth.token_ids import read_issue_time
from shared.timestamps import LONGEST_SETBACK

MAX_MINUTES = 43_200
"""Maximum lifetime of a token: 30 days."""

RETENTION_AFTER_EXPIRY: Final = LONGEST_SETBACK + timedelta(minutes=5)
"""Time for which stores retain tokens and revocations after their expiry.

If a clock is set back, an expired token becomes valid again. If the token was revoked, it must stay revoked then. The
minutes are for differences between clocks, such as those of a host and of Cosmos DB.
"""


class TeamMember(Protocol):
    """Member of the workspace's team: a person or a service that can own credentials."""

    @property
    def id(self) -> str:
        """Id of the member in credentials and audit records."""
        ...

    @property
    def name(self) -> str:
        """Name of the member for display."""
        ...

    @property
    def access_rights(self) -> frozenset[AccessRight]:
        """All rights of the member: the rights of the role and the member's additional rights."""
        ...

    @property
    def enabled(self) -> bool:
        """True if the member's credentials are accepted."""
        ...

    @property
    def service(self) -> bool:
        """True if the member is a service. Tokens of services have no user identity."""
        ...

    @property
    def oid(self) -> str | None:
        """Object id of the member in Entra ID."""
        ...


@dataclass(frozen=True, slots=True)
class CredentialCutoff:
    """Times up to which the credentials of a team member are invalid: one for API keys and one for tokens.

    Attributes:
        keys: time of the member's last removal; API keys created before it are invalid. None if there is no such time.
        tokens: time at which the member was last disabled, enabled or removed; tokens of the service and of Entra ID
            that were issued before it are invalid. None if there is no such time.
    """

    keys: datetime | None = None
    tokens: datetime | None = None


NO_CUTOFF: Final = CredentialCutoff()
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Team:
    """Current members of the workspace.

    Attributes:
        workspace: id of the workspace; empty before the first workspace document is applied.
        members: members of the team by their ids.
        audited: True if issued and revoked credentials are recorded in the audit chain ``AccessControl``.
        cutoffs: times before which credentials are invalid, by the ids of current and former members.
        max_sign_in_age: maximum age in seconds of the sign-in of a person who signs; None if no decision needs a
            signature.
        unreadable_members: ids of stored members that this version of the service cannot parse, because a newer
            version stored them; they are not in ``members``.
        service_ends: times at which members last stopped being services, by the ids of current and former members.
    """

    workspace: str
    members: Mapping[str, TeamMember]
    audited: bool
    cutoffs: Mapping[str, CredentialCutoff] = field(default_factory=dict)
    max_sign_in_age: int | None = None
    unreadable_members: frozenset[str] = frozenset()
    service_ends: Mapping[str, datetime] = field(default_factory=dict)

    def has_token_ended(self, member_id: str, token_id: str) -> bool:
        """Return whether a token ended because its owner was disabled, enabled or removed after it was issued."""
        # Ids without a time are from before the first cutoff could be stored.
        return self.is_token_issued_before_cutoff(member_id, read_issue_time(token_id) or _EARLIEST)

    def is_token_issued_before_cutoff(self, member_id: str, issued_at: datetime) -> bool:
        """Return whether a member's tokens that were issued at this time have ended."""
        cutoff = self.cutoffs.get(member_id, NO_CUTOFF).tokens
        return cutoff is not None and issued_at <= cutoff

    def find_key_end_time(self, key: "ApiKey") -> datetime | None:
        """Return the time at which an API key became invalid, by its revocation or its member's removal.

        Return None if neither has happened. The key's own expiry is not checked.
        """
        cutoff = self.cutoffs.get(key.principal, NO_CUTOFF).keys
        removed_at = cutoff if cutoff is not None and key.created_at <= cutoff else None
        return min((at for at in (key.revoked_at, removed_at) if at is not None), default=None)

    def is_possibly_service_key(self, key: "ApiKey") -> bool:
        """Return whether the owner of this API key is, or possibly was, a service since the key was created.

        A service can become a person, and a removed member was possibly a service.
        """
        owner, service_end = self.members.get(key.principal), self.service_ends.get(key.principal)
        return owner is None or owner.service or (service_end is not None and key.created_at <= service_end)

    def list_effective_rights(self, key: "ApiKey") -> list[AccessRight]:
        """Return the rights that an API key currently grants, sorted: the key's rights that its principal still has."""
        member = self.members.get(key.principal)
        member_rights = member.access_rights if member is not None else frozenset[AccessRight]()
        return sorted(member_rights if key.rights is None else key.rights & member_rights)


class Directory(Protocol):
    """Source of the workspace's current team."""

    async def get_team(self) -> Team:
        """Return the current members. Called for each request, so it must be cheap."""
        ...


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Stored API key, with a salted hash instead of the secret.

    Attributes:
        key_id: public part of the key, 8 base32 characters.
        digest: SHA-256 of salt and secret.
        principal: id of the member who owns the key.
        rights: rights to which the key is restricted; None for all rights of its principal.
        last_used_at: time of the last use, accurate to about a minute.
        creators: members, other than the principal, who may know the secret: the creator of the key, and the creators
            of the credential that was used to create it. None if they are unknown, because an earlier version of the
            service created the key, or the key with which it was created.
        binding: the only connections and devices whose telemetry the key may send; None for a key without this limit.
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
    creators: tuple[str, ...] | None = ()
    binding: TelemetryBinding | None = None


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """Stored record of an issued token. Token stores delete the record some time after the token expires.

    Attributes:
        principal: id of the member who owns the token.
        parent: id of the API key, token or OAuth grant for which the token was issued; empty if it was issued for an
            Entra ID token.
    """

    token_id: str
    principal: str
    expires_at: datetime
    parent: str = ""


type CredentialsVersion = int
"""Version of the stored credentials, which grows with each new key and each revocation."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """All API keys, the ids of the revoked tokens, and the version of this data in the store.

    Stores delete revocations of tokens some time after the expiry of the token.
    """

    version: CredentialsVersion
    keys: Mapping[str, ApiKey]
    revoked_tokens: frozenset[str]


class CredentialStore(Protocol):
    """Storage of API keys, issued tokens, revocations, and the pending audit events of revocations."""

    async def read_version(self) -> CredentialsVersion:
        """Read the version number of the credentials, which grows with each new key and each revocation.

        This must be fast.
        """
        ...

    async def load(self) -> Credentials:
        """Read all credentials that authentication needs."""
        ...

    async def add_or_get_key(
        self, key: ApiKey, parent_id: str = "", *, max_unrevoked_keys: int | None = None
    ) -> ApiKey:
        """Store a new API key, unless a key with the same id and digest is stored; return the stored key.

        A request that is sent again derives the same key, so it stores no second key.

        Args:
            key: the new key.
            parent_id: id of the API key or token with which the key was requested; empty if the store need not check
                that the parent is not revoked.
            max_unrevoked_keys: maximum number of unrevoked keys of the principal, including the new one; None if the
                store need not check the number. Concurrent calls, also of other processes, cannot exceed it.

        Raises:
            WorkspaceError: UNAUTHENTICATED if the parent is revoked, so that the key is not stored; CONFLICT
                ``TOO_MANY_API_KEYS`` if the principal has too many unrevoked keys; UNAVAILABLE if the store does not
                respond, or if another key has this id.
        """
        ...

    async def find_key(self, key_id: str) -> ApiKey | None:
        """Return the stored API key with this id; None if no API key has this id.

        The result takes account of every change that was stored before the call, also by other processes.
        """
        ...

    async def is_revoked(self, credential_id: str) -> bool:
        """Return whether the API key or token with this id is revoked; False for an unknown id.

        The result takes account of every revocation that was stored before the call, also by other processes.
        """
        ...

    async def revoke_key_and_find_pending_event(
        self, key_id: str, at: datetime, event: AccessEvent | None = None
    ) -> AccessEvent | None:
        """Revoke a key and every token that descends from it; earlier revocations are not changed.

        A token of this key that another process adds at the same time is revoked, or :meth:`add_token` rejects it.

        Args:
            key_id: id of the key.
            at: time of the revocation.
            event: audit event, which is stored as a pending event in the same write as the revocation of the key; a
                stored pending event with the same append id is not changed. None to store no event.

        Returns:
            The stored pending event: ``event``, or the event that an earlier call stored with the same append id. If
            the stored event cannot be parsed, the result is ``event``; if ``event`` is None, it is None.
        """
        ...

    async def store_last_use(self, key_id: str, at: datetime) -> None:
        """Store the time of a key's last use; the version of the credentials does not change."""
        ...

    async def add_token(self, token: IssuedToken) -> None:
        """Store the record of an issued token; the store may also delete records of tokens that expired long ago.

        Raises:
            WorkspaceError: UNAUTHENTICATED if the token's parent is revoked; the token must not be used then.
        """
        ...

    async def find_token(self, token_id: str) -> IssuedToken | None:
        """Return the record of an issued token; None if no token has this id.

        The record of an expired token is returned until the store deletes it, at the earliest after
        ``RETENTION_AFTER_EXPIRY``.
        """
        ...

    async def revoke_token_and_find_pending_event(
        self, token_id: str, at: datetime, event: AccessEvent | None = None
    ) -> AccessEvent | None:
        """Revoke an issued token and every token that descends from it.

        Arguments and result are as for :meth:`revoke_key_and_find_pending_event`.
        """
        ...

    async def list_pending_events(self) -> Sequence[AccessEvent]:
        """Return the audit events of revocations that are possibly not yet in their chain, oldest first.

        Damaged events are logged and omitted.
        """
        ...

    async def delete_pending_event(self, append_id: str) -> None:
        """Delete a pending event after it was appended; an unknown id is ignored."""
        ...


type GrantId = str
"""Id of an OAuth grant."""


class DelegatedGrants(Protocol):
    """OAuth grants: rights that members delegated to clients.

    A grant ends if the credential with which the member gave consent is revoked.
    """

    async def end_grants_of_credential(
        self, credential_id: str, actor: str, used_credential: Mapping[str, Any] | None
    ) -> Sequence[GrantId]:
        """End all grants whose consent was given with a credential, or with a token that descends from the credential.

        The tokens of the grants are revoked. The caller must then call :meth:`record_grant_ends`. If the caller's
        process ends before that, a background job appends the audit events.

        Args:
            credential_id: id of the token or API key, which is being revoked.
            actor: id of the member who revokes the token or key.
            used_credential: credential with which that member sent the request, for the audit events.

        Returns:
            The ids of the ended grants.
        """
        ...

    async def record_grant_ends(self, grant_ids: Sequence[GrantId]) -> None:
        """Append the audit events of ended grants, unless the events are already recorded."""
        ...


type Jwk = Mapping[str, Any]
"""Public key as a JSON Web Key (RFC 7517)."""


class SigningKey(Protocol):
    """ES256 key that signs tokens.

    Methods raise ``WorkspaceError`` UNAVAILABLE ``SIGNING_KEY_UNAVAILABLE`` if the key cannot be used.
    """

    async def get_key_id(self) -> str:
        """Return the id (``kid``) of the key that signs currently."""
        ...

    async def sign(self, message: bytes) -> bytes:
        """Return the ES256 signature of a message, r and s as 64 bytes (RFC 7518 section 3.4)."""
        ...

    async def load_public_keys(self, *, reload: bool = False) -> Sequence[Jwk]:
        """Return the public keys as JWKs (RFC 7517), the signing key first.

        Args:
            reload: True if the caller misses a key; the keys are then read again, unless the cached keys are only some
                seconds old.
        """
        ...


class OpenIdProvider(Protocol):
    """Entra ID tenant as issuer of tokens (OpenID Connect)."""

    async def load_issuer(self) -> str:
        """Return the value of ``iss`` in the tokens of the provider.

        Raises:
            WorkspaceError: UNAVAILABLE ``IDENTITY_PROVIDER_UNAVAILABLE``.
        """
        ...

    async def find_public_key(self, key_id: str) -> Jwk | None:
        """Return the public JWK with this ``kid``; None if the provider has none.

        Raises:
            WorkspaceError: UNAVAILABLE ``IDENTITY_PROVIDER_UNAVAILABLE``.
        """
        ...
