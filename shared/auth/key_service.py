"""Creation, listing and revocation of API keys; creation and revocation are audit events.

This module is separate from ``issuer``, so that commands can create keys without loading the libraries for tokens.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from shared.auth import api_keys
from shared.auth.audit import AccessAudit
from shared.auth.credential_lineage import CredentialLineage
from shared.auth.credential_revocation import CredentialRevoker
from shared.auth.older_keys import OlderKeyCreators
from shared.auth.ports import ApiKey, Credentials, CredentialStore, Directory, Team, TeamMember
from shared.auth.principals import CredentialKind, Principal
from shared.auth.reauthentication import require_recent_sign_in_time
from shared.auth.rights import AccessRight
from shared.auth.telemetry_binding import TelemetryBinding
from shared.errors import FieldError, Kind, WorkspaceError, build_invalid_field_error, build_invalid_fields_error
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.versioned_cache import VersionedCache

BY_COMMAND: Final[Mapping[str, str | None]] = {"via": "command", "credentialId": None}
"""Credential in the audit events about keys that the deployment's own command created."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """New API key: its stored record, and its text, which is shown only once."""

    key: ApiKey
    api_key: str


class ApiKeys:
    """Service that creates, lists and revokes the API keys of the workspace."""

    def __init__(
        self,
        directory: Directory,
        store: CredentialStore,
        credentials: VersionedCache[Credentials],
        audit: AccessAudit,
        revoker: CredentialRevoker,
        *,
        older_keys: OlderKeyCreators | None = None,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._directory = directory
        self._store = store
        self._credentials = credentials
        self._audit = audit
        self._revoker = revoker
        self._runtime = runtime
        self._lineage = CredentialLineage(store, older_keys=older_keys)

    async def create(
        self,
        caller: Principal,
        name: str,
        *,
        principal: str | None = None,
        rights: Sequence[AccessRight] | None = None,
        expires_in_days: int | None = None,
        seed: bytes = b"",
        binding: TelemetryBinding | None = None,
    ) -> IssuedKey:
        """Create an API key for the caller or, with the right to manage keys, for another member.

        A key never has a right that its creator lacks, so that no member gains rights with a key. If ``rights`` is
        None, the key gets these rights:

        - a key for another member: the rights that this member has now.
        - a key for the caller: the rights of the caller's credential. If this credential was created for all rights of
          the caller, not for a list of rights, and no other member created it, the key also gets the rights that the
          caller gets later.

        Calls with the same ``seed`` (:func:`shared.auth.api_keys.generate_api_key`) create one key and return the same
        secret. A key with a ``binding`` has only the right to write telemetry.

        Raises:
            WorkspaceError: FORBIDDEN if the caller lacks a right, or its credential may not create keys; INVALID naming
                ``principal`` or ``rights``; UNAUTHENTICATED ``REAUTHENTICATION_REQUIRED`` if the workspace requires
                signatures, and the caller creates a key for itself with a token of an old sign-in; UNAUTHENTICATED
                ``UNAUTHENTICATED`` if the caller's credential was revoked in the meantime; CONFLICT
                ``TOO_MANY_API_KEYS`` if the principal has too many unrevoked keys; UNAVAILABLE
                ``PROVENANCE_UNAVAILABLE`` if the creators of the caller's API key must be read from the audit log, and
                it does not respond.
        """
        caller.require_not_delegated()
        caller.require_no_connection_binding()
        owner = await self._authorize_key_creation_and_get_owner(caller, principal)
        granted = _select_rights_or_none_for_all(
            caller, owner, rights if binding is None else _select_rights_of_bound_key(rights)
        )
        if owner.id == caller.member_id:
            await self._require_recent_sign_in(caller)
        return await self.issue_without_rights_check(
            caller.member_id,
            owner.id,
            name,
            granted,
            expires_in_days,
            credential=caller.describe_credential(),
            parent=caller.stored_credential_id,
            seed=seed,
            creators=await self._find_creator_ids_of_new_key(caller, owner),
            binding=binding,
            max_unrevoked_keys=api_keys.MAX_UNREVOKED_KEYS,
        )

    async def issue_without_rights_check(
        self,
        actor: str,
        principal: str,
        name: str,
        rights: frozenset[AccessRight] | None = None,
        expires_in_days: int | None = None,
        *,
        credential: Mapping[str, str | None] = BY_COMMAND,
        parent: str = "",
        seed: bytes = b"",
        creators: Collection[str] | None = (),
        binding: TelemetryBinding | None = None,
        max_unrevoked_keys: int | None = None,
    ) -> IssuedKey:
        """Create an API key without a check of the actor's rights.

        Only :meth:`create`, the deployment's commands and the first start of the local host may call this method.

        ``actor`` is the creator and ``credential`` the creator's credential, both for the audit event. ``parent`` is
        the id of that credential, which must not be revoked. ``seed`` has the same meaning as for :meth:`create`.
        ``creators`` are the members, other than the principal, who create the key; None if they are unknown.
        Without ``max_unrevoked_keys``, the number of the principal's keys is not limited.
        """
        generated = api_keys.generate_api_key(self._runtime, seed)
        at = self._runtime.now()
        expires_at = None if expires_in_days is None else at + timedelta(days=expires_in_days)
        key = ApiKey(
            *(generated.key_id, generated.salt, generated.digest, principal, name, rights, at, expires_at),
            creators=None if creators is None else tuple(sorted(creators)),
            binding=binding,
        )
        key = await self._store.add_or_get_key(key, parent, max_unrevoked_keys=max_unrevoked_keys)
        self._credentials.invalidate()
        right_names = None if rights is None else sorted(rights)
        details = {
            "principal": principal,
            "name": name,
            "accessRights": right_names,
            "madeWith": dict(credential),
            **(binding.to_json() if binding is not None else {}),
        }
        await self._audit.record_event_if_audited(
            actor, "ApiKey.Created", "ApiKey", key.key_id, append_id=f"key-created-{key.key_id}", after=details
        )
        return IssuedKey(key, generated.text)

    async def list_visible(self, caller: Principal) -> list[ApiKey]:
        """Return the caller's keys, or all keys if the caller has the right to manage keys, oldest first."""
        caller.require_no_connection_binding()
        # Read from the store, not from the cache, because lastUsedAt changes without a new version.
        keys = (await self._store.load()).keys.values()
        owner_id = None if AccessRight.KEYS_MANAGE in caller.rights else caller.member_id
        # In a worker thread, because there can be thousands of keys.
        return await self._runtime.run_in_thread(
            _select_keys_of_owner_or_all, keys, owner_id, await self._directory.get_team()
        )

    async def revoke(self, caller: Principal, key_id: str) -> None:
        """Revoke an API key and every token that descends from it.

        Raises:
            WorkspaceError: NOT_FOUND ``API_KEY_NOT_FOUND``; FORBIDDEN if the key belongs to another member and the
                caller lacks the right to manage keys; UNAVAILABLE as for :meth:`CredentialRevoker.revoke_key`.
        """
        caller.require_no_connection_binding()
        key = await self._store.find_key(key_id) if api_keys.is_key_id(key_id) else None
        if key is None:
            raise WorkspaceError(Kind.NOT_FOUND, "API_KEY_NOT_FOUND", "No API key has this id.")
        if key.principal != caller.member_id:
            caller.require_right(AccessRight.KEYS_MANAGE)
        await self._revoker.revoke_key(caller, key)

    async def _find_creator_ids_of_new_key(self, caller: Principal, owner: TeamMember) -> Collection[str] | None:
        """Return the members, other than the owner, who may know the secret of a new key; None if they are unknown.

        They are the caller and the members who created the API key from which the caller's credential descends.
        """
        creators_of_callers_key = await self._lineage.find_key_creator_ids(caller)
        if creators_of_callers_key is None:
            return None
        creators = ({caller.member_id} | creators_of_callers_key) - {owner.id}
        return creators if creators or caller.personal else None

    async def _require_recent_sign_in(self, caller: Principal) -> None:
        """Raise an error if the workspace requires signatures and the caller's token descends from an old sign-in.

        Otherwise, a person could create a key with an old token, and then sign with this key.
        """
        max_age = (await self._directory.get_team()).max_sign_in_age
        if max_age is not None and caller.via is not CredentialKind.API_KEY:
            require_recent_sign_in_time(caller.sign_in, max_age, self._runtime.now())

    async def _authorize_key_creation_and_get_owner(self, caller: Principal, principal: str | None) -> TeamMember:
        requested = caller.member_id if principal is None else principal
        if requested != caller.member_id:
            caller.require_right(AccessRight.KEYS_MANAGE)
        member = (await self._directory.get_team()).members.get(requested)
        if member is None:
            raise build_invalid_field_error("principal", "is not a member of this workspace")
        return member


def _select_keys_of_owner_or_all(keys: Iterable[ApiKey], owner_id: str | None, team: Team) -> list[ApiKey]:
    """Return the keys of the member ``owner_id``, or all keys if it is None, oldest first.

    ``revoked_at`` of each returned key is the earlier of two times: the key's revocation, and the removal of its owner
    from the team. It is None if neither has happened.
    """
    selected = (
        replace(key, revoked_at=team.find_key_end_time(key))
        for key in keys
        if owner_id is None or key.principal == owner_id
    )
    return sorted(selected, key=lambda key: (key.created_at, key.key_id))


def _select_rights_of_bound_key(requested: Sequence[AccessRight] | None) -> Sequence[AccessRight]:
    """Return the only right that a key with a binding to connections can have: the right to write telemetry.

    Raises:
        WorkspaceError: INVALID naming ``rights`` if other rights are requested.
    """
    others = sorted(set(requested or ()) - {AccessRight.TELEMETRY_WRITE})
    if others:
        rule = f"a key with `connections` can only have the right {AccessRight.TELEMETRY_WRITE}"
        raise build_invalid_fields_error(
            [FieldError("rights", f"the right {right} is not allowed: {rule}") for right in others]
        )
    return [AccessRight.TELEMETRY_WRITE]


def _select_rights_or_none_for_all(
    caller: Principal, owner: TeamMember, requested: Sequence[AccessRight] | None
) -> frozenset[AccessRight] | None:
    """Return the rights of a new key; None for all rights that its owner has now or gets later.

    Raises:
        WorkspaceError: FORBIDDEN if no rights are requested for a key of another member, and the caller lacks a right
            of this member; INVALID naming ``rights`` if the caller or the owner lacks a requested right.
    """
    if requested is None:
        if owner.id == caller.member_id:
            # The person who made the caller's key may know the new one as well, and must not get the rights that the
            # owner gets later. Nor must a tool, whose credential has a list of rights that happens to be complete now.
            gets_later_rights = caller.personal and not caller.has_listed_rights
            return None if gets_later_rights and caller.rights >= owner.access_rights else caller.rights
        missing = sorted(owner.access_rights - caller.rights)
        if not missing:
            return owner.access_rights
        detail = f"The key would have access rights that its creator lacks: {', '.join(missing)}."
        raise WorkspaceError(
            Kind.FORBIDDEN, "ACCESS_RIGHT_MISSING", detail, accessRight=missing[0], accessRights=missing
        )
    errors = [
        FieldError("rights", f"{right}: {lacking}")
        for right in sorted(set(requested))
        if (lacking := _find_missing_right_error(right, caller, owner))
    ]
    if errors:
        raise build_invalid_fields_error(errors)
    return frozenset(requested)


def _find_missing_right_error(right: AccessRight, caller: Principal, owner: TeamMember) -> str | None:
    """Return an error message if the caller or the key's principal lacks a right; None if both have it."""
    lacks = right not in caller.rights, right not in owner.access_rights
    match lacks:
        case True, True:
            return "you and the key's principal do not have this right"
        case True, False:
            return "you do not have this right"
        case False, True:
            return "the key's principal does not have this right"
    return None
