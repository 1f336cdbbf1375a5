"""Counter of refused attempts to sign; it reports the lock-outs of members to the audit log and to webhooks."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

from shared.errors import WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.provenance.ports import AuditLog, Target
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.signatures.attempts import (
    LockOut,
    MemberAttempts,
    add_refused_attempt_if_not_locked_out,
    add_stale_sign_in_refusal_if_not_locked_out,
    check_not_locked_out,
    remove_reported_lock_out_if_present,
    shorten_lock_out_after_clock_setback,
)
from shared.signatures.ports import SignatureStore
from shared.timestamps import format_rfc3339

ACTION: Final = "Signature.Suspicious"
_LOG = get_logger("signatures")

type Announce = Callable[[str, LockOut], Awaitable[None]]
"""Function that announces the lock-out of a member; the arguments are the id of the member and the event."""


class AttemptCounter:
    """Counts the refused attempts of each member, and locks the member out after too many of them.

    A lock-out is stored with its event, and then the event is reported. If the process ends in between,
    :meth:`report_unreported_lock_outs` reports the event later.

    Args:
        store: storage of the attempts.
        audit_log: destination of the audit events.
        is_audited: returns whether the workspace has provenance (audit chains) now.
        announce: announces a lock-out, for example to webhooks; called at least once for each lock-out.
        runtime: clock and randomness.
    """

    def __init__(
        self,
        store: SignatureStore,
        audit_log: AuditLog,
        is_audited: Callable[[], Awaitable[bool]],
        announce: Announce,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._audit_log = audit_log
        self._is_audited = is_audited
        self._announce = announce
        self._runtime = runtime

    async def check_not_locked_out(self, member_id: str) -> None:
        """Check that a member is not locked out.

        Raises:
            WorkspaceError: THROTTLED ``SIGNATURE_LOCKED``; UNAVAILABLE if the store does not respond.
        """
        value = await self._store.find_refused_attempts(member_id)
        if value is None:
            return
        attempts, at = MemberAttempts.from_json(value), self._runtime.now()
        if shorten_lock_out_after_clock_setback(attempts, at) is not None:
            attempts = await self._change_attempts(member_id, partial(shorten_lock_out_after_clock_setback, at=at))
        check_not_locked_out(attempts, at)

    async def record_refusal(self, member_id: str, token_id: str, *, is_sign_in_too_old: bool) -> None:
        """Count a member's refused attempt to sign.

        Args:
            member_id: id of the member.
            token_id: id of the caller's token.
            is_sign_in_too_old: True if the sign-in was not recent; the first such refusal of a token does not count.

        Raises:
            WorkspaceError: UNAVAILABLE if the store of attempts or of the catalog does not respond.
        """
        at, append_id = self._runtime.now(), self._runtime.new_id()
        is_audited = await self._is_audited()

        def add_refusal(attempts: MemberAttempts) -> MemberAttempts | None:
            if is_sign_in_too_old:
                return add_stale_sign_in_refusal_if_not_locked_out(
                    attempts, token_id, at, append_id, is_audited=is_audited
                )
            return add_refused_attempt_if_not_locked_out(attempts, at, append_id, is_audited=is_audited)

        attempts = await self._change_attempts(member_id, add_refusal)
        if any(one.append_id == append_id for one in attempts.pending):
            await self._try_to_report_lock_outs(attempts)

    async def report_unreported_lock_outs(self) -> None:
        """Report the lock-outs of members that are not reported yet, because an earlier report was interrupted.

        Raises:
            WorkspaceError: UNAVAILABLE if a store does not respond; the lock-outs that are not reported stay stored.
        """
        values = await self._store.list_attempts_with_unreported_lock_outs()
        await self._report_lock_outs(map(MemberAttempts.from_json, values))

    async def _try_to_report_lock_outs(self, attempts: MemberAttempts) -> None:
        try:
            await self._report_lock_outs([attempts])
        except WorkspaceError:
            _LOG.exception("a lock-out will be reported later", extra=fields(principal=attempts.member))

    async def _report_lock_outs(self, members: Iterable[MemberAttempts]) -> None:
        """Report the unreported lock-outs of members; raise the first error after all were tried."""
        failure: WorkspaceError | None = None
        for attempts in members:
            for event in attempts.pending:
                try:
                    await self._report_lock_out(attempts.member, event)
                except WorkspaceError as error:
                    failure = failure or error
        if failure is not None:
            raise failure

    async def _report_lock_out(self, member_id: str, event: LockOut) -> None:
        """Announce a lock-out and append its audit event; neither waits for the other, because each can fail for days.

        If one of them fails, both are repeated later.
        """
        reports = self._announce(member_id, event), self._append_lock_out_event_if_audited(member_id, event)
        for result in await asyncio.gather(*reports, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        await self._change_attempts(member_id, partial(remove_reported_lock_out_if_present, append_id=event.append_id))

    async def _append_lock_out_event_if_audited(self, member_id: str, event: LockOut) -> None:
        if not event.is_audited:
            return
        state = {"userId": member_id, "attempts": event.attempts, "since": format_rfc3339(event.since)}
        content = {"ActionType": ACTION, "EntityType": "Member", "EntityID": member_id, "AfterState": state}
        await self._audit_log.append(Target.ACCESS_CONTROL, member_id, content, append_id=event.append_id)

    async def _change_attempts(
        self, member_id: str, change: Callable[[MemberAttempts], MemberAttempts | None]
    ) -> MemberAttempts:
        """Change the stored refused attempts of a member; return the attempts after the change."""
        first = MemberAttempts(member_id)

        def change_attempts_json(value: dict[str, Any] | None) -> dict[str, Any] | None:
            after = change(first if value is None else MemberAttempts.from_json(value))
            return None if after is None else after.to_json()

        stored = await self._store.change_refused_attempts(member_id, change_attempts_json)
        return first if stored is None else MemberAttempts.from_json(stored)
