"""End of OAuth grants: by the member, the client, the reuse of a token, or the revocation of the member's credential.

The end of the grant is stored first. Then the access tokens are revoked, and the audit event is appended. If the
process stops in between, a background job completes the steps. The job also ends the grants of disabled members and of
removed clients.

A new access token is stored first, and then the record of its grant is replaced. The replacement fails if the grant
has ended, and the client then receives no token. Each token that a client has was therefore stored before the end of
the grant, so the revocation, which follows the end, finds it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from shared.auth.audit import AccessAudit
from shared.auth.ports import Credentials, CredentialStore, Directory, GrantId, Team
from shared.oauth.clients import URL_PREFIX
from shared.oauth.grants import EndReason, Grant, GrantEnd, GrantStore, StoredGrant
from shared.provenance.ports import ServiceUser
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.versioned_cache import VersionedCache

SCHEDULE: Final = "40 */5 * * * *"
"""NCRONTAB schedule (six fields) of :meth:`GrantEnder.complete_ends_and_end_orphaned_grants`."""


class GrantEnder:
    """Ends OAuth grants and revokes their tokens, each with an audit event.

    Args:
        store: storage of the grants.
        credential_store: storage of the access tokens; each token of a grant is stored with the grant as its parent.
        credentials: cached credentials of this process.
        directory: source of the team's members.
        audit: records the audit events.
        find_client_creation_time: returns the time at which the OAuth client with a given id was declared in the
            workspace document; None if it is not declared. If the client was removed and declared again, this is the
            time of the second declaration.
        runtime: clock.
    """

    def __init__(
        self,
        store: GrantStore,
        credential_store: CredentialStore,
        credentials: VersionedCache[Credentials],
        directory: Directory,
        audit: AccessAudit,
        find_client_creation_time: Callable[[str], Awaitable[datetime | None]],
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._credential_store = credential_store
        self._credentials = credentials
        self._directory = directory
        self._audit = audit
        self._find_client_creation_time = find_client_creation_time
        self._runtime = runtime

    async def end_grant(
        self,
        grant_id: str,
        reason: EndReason,
        actor: str = ServiceUser.OAUTH,
        used_credential: Mapping[str, Any] | None = None,
    ) -> None:
        """End a grant and revoke its access tokens; a repeated call completes an interrupted call.

        Args:
            grant_id: id of the grant; an unknown grant is ignored.
            reason: reason for the end, for the audit event.
            actor: id of the member who ends the grant, or who consented to it if the client ends it; by default, the
                service ends it.
            used_credential: credential with which the actor sent the request, for the audit event; None if the client
                or the service ends the grant.
        """
        end = GrantEnd(self._runtime.now(), reason, actor, used_credential)
        ended = await self._store_end_and_revoke_tokens(grant_id, end)
        if ended is not None:
            await self._record_end(ended)

    async def end_grants_of_credential(
        self, credential_id: str, actor: str, used_credential: Mapping[str, Any] | None
    ) -> Sequence[GrantId]:
        """End all grants whose consent was given with a token or API key that is being revoked; return their ids.

        All their tokens are revoked, but no event is appended, because the audit chain can be unavailable.
        :meth:`record_grant_ends` appends the events.

        Args:
            credential_id: id of the token or API key that is being revoked.
            actor: id of the member who revokes it, for the audit events.
            used_credential: credential with which that member sent the request, for the audit events.
        """
        end = GrantEnd(self._runtime.now(), EndReason.CREDENTIAL, actor, used_credential)
        grant_ids = [grant.grant_id for grant in await self._store.list_grants_of_credential(credential_id)]
        for grant_id in grant_ids:
            await self._store_end_and_revoke_tokens(grant_id, end)
        return grant_ids

    async def record_grant_ends(self, grant_ids: Sequence[str]) -> None:
        """Append the audit events of ended grants, unless they are recorded."""
        for grant_id in grant_ids:
            stored = await self._store.find_grant(grant_id)
            if stored is not None:
                await self._record_end(stored)

    async def find_consent_credential_id(self, grant_id: str) -> str | None:
        """Return the id of the API key or token with which a member consented to a grant; None for an unknown grant."""
        stored = await self._store.find_grant(grant_id)
        return None if stored is None else stored.grant.api_key_id or stored.grant.token_id

    async def complete_ends_and_end_orphaned_grants(self) -> None:
        """Complete interrupted ends of grants; end the grants of disabled members and of removed clients."""
        for stored in await self._store.list_grants_with_unrecorded_end():
            await self._revoke_tokens(stored)
            await self._record_end(stored)
        for grant in await self._store.list_active_grants():
            await self.try_end_if_orphaned(grant)

    async def try_end_if_orphaned(self, grant: Grant) -> bool:
        """End a grant whose member was disabled or whose client was removed; return whether it was ended.

        A grant also ends if its member was enabled again, or its client was declared again, since the consent.
        A member or client counts as existing if this version of the service cannot parse it, because a newer version
        stored it.
        """
        team = await self._directory.get_team()
        if not has_enabled_member(team, grant) and grant.member_id not in team.unreadable_members:
            reason = EndReason.DISABLED
        elif await self._is_client_removed(grant):
            reason = EndReason.UNDECLARED
        else:
            return False
        await self.end_grant(grant.grant_id, reason)
        return True

    async def _is_client_removed(self, grant: Grant) -> bool:
        """Return whether a declared client was removed since the consent, even if it was declared again."""
        if grant.client_id.startswith(URL_PREFIX):
            return False
        declared_at = await self._find_client_creation_time(grant.client_id)
        return declared_at is None or declared_at > grant.created_at

    async def _store_end_and_revoke_tokens(self, grant_id: str, end: GrantEnd) -> StoredGrant | None:
        """Store the end of a grant, unless it has ended, and revoke its tokens; return the ended grant.

        Return None if the grant does not exist.
        """
        while (stored := await self._store.find_grant(grant_id)) is not None:
            if stored.grant.end is not None:
                await self._revoke_tokens(stored)
                return stored
            await self._store.try_replace_grant(stored, replace(stored.grant, end=end))
        return None

    async def _revoke_tokens(self, stored: StoredGrant) -> None:
        """Revoke the access tokens of an ended grant.

        Do nothing if the end's audit event is recorded, because the tokens are revoked before it is appended.
        """
        grant, end = stored.grant, stored.grant.end
        if end is None or end.is_recorded:
            return
        await self._credential_store.revoke_token_and_find_pending_event(grant.grant_id, end.at)
        self._credentials.invalidate()

    async def _record_end(self, stored: StoredGrant) -> None:
        """Append the audit event of an ended grant, unless it is recorded."""
        grant, end = stored.grant, stored.grant.end
        if end is None or end.is_recorded:
            return
        await self._audit.record_event_if_audited(
            end.actor,
            "Grant.Ended",
            "Grant",
            grant.grant_id,
            append_id=f"grant-ended-{grant.grant_id}",
            before={"principal": grant.member_id, "clientId": grant.client_id, "accessRights": sorted(grant.rights)},
            after={"reason": end.reason, **({} if end.made_with is None else {"madeWith": dict(end.made_with)})},
        )
        # A lost race only means that another process marks the event as stored.
        await self._store.try_replace_grant(stored, replace(grant, end=replace(end, is_recorded=True)))


def has_enabled_member(team: Team, grant: Grant) -> bool:
    """Return whether the member who consented to a grant is enabled, and was never disabled since the consent."""
    member = team.members.get(grant.member_id)
    return member is not None and member.enabled and not team.has_token_ended(grant.member_id, grant.grant_id)
