"""Creation, listing and revocation of API keys; creation and revocation are audit events.

Separate from ``issuer`` because the deployment's command creates keys without the libraries of tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.auth import api_keys
from shared.auth.audit import AccessAudit
from shared.auth.ports import ApiKey, Credentials, CredentialStore, Directory, TeamMember
from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.errors import FieldError, Kind, WorkspaceError, invalid, invalid_fields
from shared.timestamps import now
from shared.versioned_cache import VersionedCache

BY_COMMAND: Final[Mapping[str, str | None]] = {"via": "command", "credentialId": None}
"""Credential in audit events for keys that the deployment's own command creates."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """New key: the stored record, and the text, which is shown once."""

    key: ApiKey
    api_key: str


class ApiKeys:
    """Service for the API keys of the workspace."""

    def __init__(
        self,
        directory: Directory,
        store: CredentialStore,
        credentials: VersionedCache[Credentials],
        audit: AccessAudit,
    ) -> None:
        self._directory = directory
        self._store = store
        self._credentials = credentials
        self._audit = audit

    async def create(
        self,
        caller: Principal,
        name: str,
        *,
        principal: str | None = None,
        rights: Sequence[AccessRight] | None = None,
        expires_in_days: int | None = None,
        id_seed: str = "",
    ) -> IssuedKey:
        """Create a key for the caller or, with the right to manage keys, for another member.

        A key never has a right that its creator lacks, so that no member gains rights with a key. A retry with the same
        ``id_seed`` replaces the key of the first attempt, whose secret was never shown.

        Raises:
            WorkspaceError: FORBIDDEN, or INVALID naming ``principal`` or ``rights``.
        """
        owner = await self._find_owner(caller, principal)
        granted = _select_rights(caller, owner, rights)
        return await self.issue(
            caller.member_id,
            owner.id,
            name,
            granted,
            expires_in_days,
            credential=caller.describe_credential(),
            id_seed=id_seed,
        )

    async def issue(
        self,
        actor: str,
        principal: str,
        name: str,
        rights: frozenset[AccessRight] | None = None,
        expires_in_days: int | None = None,
        *,
        credential: Mapping[str, str | None] = BY_COMMAND,
        id_seed: str = "",
    ) -> IssuedKey:
        """Create a key without a check of the actor's rights, for the deployment's own command.

        ``credential`` is the credential of the actor for the audit event; ``id_seed`` as for :meth:`create`.
        """
        generated = api_keys.generate_key(id_seed)
        at = now()
        expires_at = None if expires_in_days is None else at + timedelta(days=expires_in_days)
        key = ApiKey(generated.key_id, generated.salt, generated.digest, principal, name, rights, at, expires_at)
        await self._store.add_key(key)
        self._credentials.invalidate()
        right_names = None if rights is None else sorted(rights)
        details = {"principal": principal, "name": name, "accessRights": right_names, "madeWith": dict(credential)}
        await self._audit.record(
            actor, "ApiKey.Created", "ApiKey", key.key_id, append_id=f"key-created-{key.key_id}", after=details
        )
        return IssuedKey(key, generated.text)

    async def list_visible(self, caller: Principal) -> list[ApiKey]:
        """Return the caller's keys, or all keys if the caller has the right to manage keys, oldest first."""
        # Read from the store, not from the cache, because lastUsedAt changes without a new version.
        keys = (await self._store.load()).keys.values()
        can_manage = AccessRight.KEYS_MANAGE in caller.rights
        visible = [key for key in keys if can_manage or key.principal == caller.member_id]
        return sorted(visible, key=lambda key: (key.created_at, key.key_id))

    async def revoke(self, caller: Principal, key_id: str) -> None:
        """Revoke a key.

        Raises:
            WorkspaceError: NOT_FOUND ``API_KEY_NOT_FOUND``; FORBIDDEN for another member's key without the right to
                manage keys.
        """
        key = (await self._store.load()).keys.get(key_id)
        if key is None:
            raise WorkspaceError(Kind.NOT_FOUND, "API_KEY_NOT_FOUND", "No API key has this id.")
        if key.principal != caller.member_id:
            caller.require_right(AccessRight.KEYS_MANAGE)
        await self._store.revoke_key(key_id, now())
        self._credentials.invalidate()
        # The append id contains the key id, so that a retry after a failure completes the record without a duplicate.
        await self._audit.record(
            caller.member_id,
            "ApiKey.Revoked",
            "ApiKey",
            key_id,
            append_id=f"key-revoked-{key_id}",
            before={"principal": key.principal},
            after={"madeWith": caller.describe_credential()},
        )

    async def get_effective_rights(self, key: ApiKey) -> list[AccessRight]:
        """Return the current rights of a key, sorted."""
        member = (await self._directory.team()).members.get(key.principal)
        member_rights = member.access_rights if member is not None else frozenset[AccessRight]()
        return sorted(member_rights if key.rights is None else key.rights & member_rights)

    async def _find_owner(self, caller: Principal, principal: str | None) -> TeamMember:
        requested = caller.member_id if principal is None else principal
        if requested != caller.member_id:
            caller.require_right(AccessRight.KEYS_MANAGE)
        member = (await self._directory.team()).members.get(requested)
        if member is None:
            raise invalid("principal", "is not a member of this workspace")
        return member


def _select_rights(
    caller: Principal, owner: TeamMember, requested: Sequence[AccessRight] | None
) -> frozenset[AccessRight] | None:
    if requested is None:
        if caller.rights >= owner.access_rights:
            return None
        if owner.id == caller.member_id:
            return caller.rights
        raise WorkspaceError(
            Kind.FORBIDDEN, "ACCESS_RIGHT_MISSING", "The key would have access rights that its creator lacks."
        )
    missing = [right for right in sorted(set(requested)) if right not in caller.rights & owner.access_rights]
    if missing:
        rule = "is not a right of both the caller and the key's principal"
        raise invalid_fields([FieldError("rights", f"{right} {rule}") for right in missing])
    return frozenset(requested)
