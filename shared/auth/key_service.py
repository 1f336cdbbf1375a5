"""Makes, lists and revokes API keys; each making and revocation is an audit event."""

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
"""Names the deployment's own command in audit events, in the place of a caller's credential."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key: what is stored, and the text that is shown this once."""

    key: ApiKey
    api_key: str


class ApiKeys:
    """The API keys of the workspace."""

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
        """Make a key for the caller or, with the right to manage keys, for another member.

        A key never carries a right that its maker does not hold, so that no key lifts anybody above oneself. With the
        same text in ``id_seed`` again the key is made anew under the id that it has: nobody saw its secret.

        Raises:
            WorkspaceError: FORBIDDEN, or INVALID naming ``principal`` or ``rights``.
        """
        owner = await self._owner(caller, principal)
        chosen = _rights(caller, owner, rights)
        return await self.issue(
            caller.member_id, owner.id, name, chosen, expires_in_days, made_with=caller.made_with(), id_seed=id_seed
        )

    async def issue(
        self,
        actor: str,
        principal: str,
        name: str,
        rights: frozenset[AccessRight] | None = None,
        expires_in_days: int | None = None,
        *,
        made_with: Mapping[str, str | None] = BY_COMMAND,
        id_seed: str = "",
    ) -> IssuedKey:
        """Make a key without asking whether the actor may; for the deployment's own command.

        ``made_with`` names the credential behind it in the audit event; ``id_seed`` as for :meth:`create`.
        """
        made = api_keys.generate_key(id_seed)
        at = now()
        expires_at = None if expires_in_days is None else at + timedelta(days=expires_in_days)
        key = ApiKey(made.key_id, made.salt, made.digest, principal, name, rights, at, expires_at)
        await self._store.add_key(key)
        self._credentials.invalidate()
        carried = None if rights is None else sorted(rights)
        details = {"principal": principal, "name": name, "accessRights": carried, "madeWith": dict(made_with)}
        await self._audit.record(
            actor, "ApiKey.Created", "ApiKey", key.key_id, append_id=f"key-created-{key.key_id}", after=details
        )
        return IssuedKey(key, made.text)

    async def list_visible(self, caller: Principal) -> list[ApiKey]:
        """Return the caller's keys, with the right to manage keys everybody's, oldest first."""
        # Read from the store, not from the copy in memory: lastUsedAt moves without a new version.
        keys = (await self._store.load()).keys.values()
        everybody = AccessRight.KEYS_MANAGE in caller.rights
        mine = [key for key in keys if everybody or key.principal == caller.member_id]
        return sorted(mine, key=lambda key: (key.created_at, key.key_id))

    async def revoke(self, caller: Principal, key_id: str) -> None:
        """Make a key useless from now on.

        Raises:
            WorkspaceError: NOT_FOUND ``API_KEY_NOT_FOUND``; FORBIDDEN for another's key without the right to manage.
        """
        key = (await self._store.load()).keys.get(key_id)
        if key is None:
            raise WorkspaceError(Kind.NOT_FOUND, "API_KEY_NOT_FOUND", "There is no API key with this id.")
        if key.principal != caller.member_id:
            caller.require_right(AccessRight.KEYS_MANAGE)
        await self._store.revoke_key(key_id, now())
        self._credentials.invalidate()
        # The append id names the key, so that a repeat after a failure here completes the record and adds no second.
        await self._audit.record(
            caller.member_id,
            "ApiKey.Revoked",
            "ApiKey",
            key_id,
            append_id=f"key-revoked-{key_id}",
            before={"principal": key.principal},
            after={"madeWith": caller.made_with()},
        )

    async def rights_of(self, key: ApiKey) -> list[AccessRight]:
        """Return what a key may do today, sorted."""
        member = (await self._directory.team()).members.get(key.principal)
        held = member.access_rights if member is not None else frozenset[AccessRight]()
        return sorted(held if key.rights is None else key.rights & held)

    async def _owner(self, caller: Principal, principal: str | None) -> TeamMember:
        wanted = caller.member_id if principal is None else principal
        if wanted != caller.member_id:
            caller.require_right(AccessRight.KEYS_MANAGE)
        member = (await self._directory.team()).members.get(wanted)
        if member is None:
            raise invalid("principal", "there is no member with this id")
        return member


def _rights(
    caller: Principal, owner: TeamMember, wanted: Sequence[AccessRight] | None
) -> frozenset[AccessRight] | None:
    if wanted is None:
        if caller.rights >= owner.access_rights:
            return None
        if owner.id == caller.member_id:
            return caller.rights
        raise WorkspaceError(
            Kind.FORBIDDEN, "ACCESS_RIGHT_MISSING", "The key would carry access rights that its maker does not hold."
        )
    missing = [right for right in sorted(set(wanted)) if right not in caller.rights & owner.access_rights]
    if missing:
        rule = "is not held by both the caller and the key's principal"
        raise invalid_fields([FieldError("rights", f"{right} {rule}") for right in missing])
    return frozenset(wanted)
