"""Revocation of API keys and tokens; each revocation has an audit event.

A revocation and its pending event are stored in one write. Then the consents to OAuth clients that were given with the
credential are ended and their tokens revoked, all events are appended to the audit chain, and the pending event is
deleted. If a step fails or the process stops, a background job completes the steps.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

from shared.auth.access_events import AccessEvent
from shared.auth.audit import AccessAudit
from shared.auth.ports import ApiKey, Credentials, CredentialStore, DelegatedGrants
from shared.auth.principals import Principal
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339
from shared.versioned_cache import VersionedCache

_LOG = logs.get_logger("auth")
_APPEND_IDS: Final = {"ApiKey": "key-revoked-", "Token": "token-revoked-"}

type _Store = Callable[[str, datetime, AccessEvent | None], Awaitable[AccessEvent | None]]
"""Method of the credential store that revokes an API key or a token."""


class CredentialRevoker:
    """Revokes API keys and tokens, and completes interrupted revocations.

    Args:
        store: storage of the credentials and of the pending events.
        credentials: cached credentials of this process.
        audit: records the audit events.
        grants: OAuth grants, which end with the credential of the consent; None if there are no grants.
        runtime: clock.
    """

    def __init__(
        self,
        store: CredentialStore,
        credentials: VersionedCache[Credentials],
        audit: AccessAudit,
        *,
        grants: DelegatedGrants | None = None,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._credentials = credentials
        self._audit = audit
        self._grants = grants
        self._runtime = runtime

    async def revoke_key(self, caller: Principal, key: ApiKey) -> None:
        """Revoke an API key and every token that descends from it.

        If the key was revoked before and its event is pending, this appends the pending event, which names the caller
        of the first revocation.

        Raises:
            WorkspaceError: UNAVAILABLE; the key may be revoked nevertheless. Its event is then recorded later.
        """
        at = key.revoked_at or self._runtime.now()
        await self._revoke(
            caller, "ApiKey", key.key_id, key.principal, at, self._store.revoke_key_and_find_pending_event
        )

    async def revoke_token(self, caller: Principal, token_id: str, owner_id: str) -> None:
        """Revoke a token of the member ``owner_id``, and every token that descends from it.

        A token that was revoked before is treated as in :meth:`revoke_key`.

        Raises:
            WorkspaceError: UNAVAILABLE; the token may be revoked nevertheless. Its event is then recorded later.
        """
        await self._revoke(
            caller, "Token", token_id, owner_id, self._runtime.now(), self._store.revoke_token_and_find_pending_event
        )

    async def complete_pending_revocations(self) -> None:
        """Complete the revocations whose event is still pending, oldest first, and append their events.

        An event that the audit chain rejects stays pending. A revocation that cannot be completed does not block the
        remaining ones.

        Raises:
            WorkspaceError: UNAVAILABLE; the first such error, after each revocation was tried.
        """
        pending = await self._store.list_pending_events()
        if not pending:
            return
        if not await self._audit.has_provenance():
            _LOG.warning(
                "provenance is not configured; events of revocations stay pending",
                extra=logs.fields(count=len(pending)),
            )
            return
        failure: WorkspaceError | None = None
        for event in pending:
            try:
                await self._complete_interrupted_revocation(event)
            except (WorkspaceError, ValueError) as error:
                if isinstance(error, WorkspaceError) and error.kind is Kind.UNAVAILABLE:
                    failure = failure or error
                    continue
                _LOG.error(
                    "the audit chain rejects a pending event: %s", error, extra=logs.fields(event=event.append_id)
                )
        if failure is not None:
            raise failure

    async def _revoke(
        self,
        caller: Principal,
        entity_type: str,
        credential_id: str,
        owner_id: str,
        at: datetime,
        revoke_in_store: _Store,
    ) -> None:
        action = f"{entity_type}.Revoked"
        event = AccessEvent(
            # The append id contains the credential's id, so that the event is recorded once, also if the request and
            # the background job append it at the same time.
            *(f"{_APPEND_IDS[entity_type]}{credential_id}", caller.member_id, action, entity_type, credential_id),
            before={"principal": owner_id},
            after={"madeWith": caller.describe_credential(), "revokedAt": format_rfc3339(at)},
        )
        is_audited = await self._audit.is_audited(action)
        if not is_audited:
            # No event is pending, so no job would end the consents after an interrupted revocation, and a caller who
            # revoked its own credential could not repeat the request.
            await self._record_grant_ends(await self._end_grants_and_get_ids(event))
        pending = await revoke_in_store(credential_id, at, event if is_audited else None)
        self._credentials.invalidate()
        await self._finish_revocation(pending or event, is_audited=is_audited)

    async def _complete_interrupted_revocation(self, event: AccessEvent) -> None:
        # Cosmos DB revokes the tokens that descend from the credential in later writes than the credential.
        revoke = (
            self._store.revoke_key_and_find_pending_event
            if event.entity_type == "ApiKey"
            else self._store.revoke_token_and_find_pending_event
        )
        await revoke(event.entity_id, self._runtime.now())
        self._credentials.invalidate()
        await self._finish_revocation(event, is_audited=True)

    async def _finish_revocation(self, event: AccessEvent, *, is_audited: bool) -> None:
        """End the grants of the revoked credential, append all events, and delete the pending event."""
        ended: Sequence[str] = ()
        failure: Exception | None = None
        try:
            # After the revocation, so that this finds each consent that was stored before it; before the append, which
            # can wait for a busy chain.
            ended = await self._end_grants_and_get_ids(event)
        except Exception as error:  # noqa: BLE001  it is raised after the event is appended
            failure = error
            _LOG.warning(
                "the consents of a revoked credential have not ended: %s",
                error,
                extra=logs.fields(event=event.append_id),
            )
        if is_audited:
            await self._audit.append_event_and_get_record(event)
        if failure is not None:
            raise failure
        await self._record_grant_ends(ended)
        if is_audited:
            await self._delete_pending_event(event)

    async def _delete_pending_event(self, event: AccessEvent) -> None:
        try:
            await self._store.delete_pending_event(event.append_id)
        except WorkspaceError as error:
            # The event is recorded; the background job appends it again, which adds nothing, and deletes it.
            _LOG.warning("a recorded event stays pending: %s", error, extra=logs.fields(event=event.append_id))

    async def _end_grants_and_get_ids(self, event: AccessEvent) -> Sequence[str]:
        """End the grants of the revoked credential without events; return their ids."""
        if self._grants is None:
            return ()
        made_with = (event.after or {}).get("madeWith")
        return await self._grants.end_grants_of_credential(event.entity_id, event.actor, made_with)

    async def _record_grant_ends(self, grant_ids: Sequence[str]) -> None:
        if self._grants is not None:
            await self._grants.record_grant_ends(grant_ids)
