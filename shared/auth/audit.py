"""Audit events about issued and revoked credentials, in the audit chain AccessControl."""

from collections.abc import Mapping
from typing import Any

from shared.auth.access_events import AccessEvent
from shared.auth.ports import Directory
from shared.observability import logs
from shared.provenance.ports import AuditLog, Target

_LOG = logs.get_logger("auth")


class AccessAudit:
    """Recorder of audit events about credentials; it only logs a warning if the workspace has no provenance."""

    def __init__(self, directory: Directory, audit_log: AuditLog) -> None:
        self._directory = directory
        self._audit_log = audit_log

    async def record_event_if_audited(
        self,
        actor: str,
        action: str,
        entity_type: str,
        entity_id: str,
        *,
        append_id: str,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any] | None:
        """Append an audit event; a repeated call with the same ``append_id`` adds nothing.

        Args:
            actor: id of the user who acts.
            action: ActionType, such as ``Token.Issued``.
            entity_type: kind of the entity, such as ``Token``.
            entity_id: id of the entity, such as the id of the token.
            append_id: unique id of the event.
            before: state of the entity before the action; None to omit it.
            after: state of the entity after the action; None to omit it.

        Returns:
            The record that this call, or an earlier call with the same ``append_id``, has stored; None if the workspace
            has no provenance.

        Raises:
            WorkspaceError: UNAVAILABLE if the event is not recorded; the caller must then not give a new credential to
                the user.
        """
        if not await self.is_audited(action):
            return None
        return await self.append_event_and_get_record(
            AccessEvent(append_id, actor, action, entity_type, entity_id, before, after)
        )

    async def is_audited(self, action: str) -> bool:
        """Return whether the workspace has provenance; if not, log a warning that names the action."""
        if await self.has_provenance():
            return True
        _LOG.warning("provenance is not configured; the action is not audited", extra=logs.fields(action=action))
        return False

    async def has_provenance(self) -> bool:
        """Return whether the workspace has provenance (audit chains)."""
        return (await self._directory.get_team()).audited

    async def append_event_and_get_record(self, event: AccessEvent) -> Mapping[str, Any]:
        """Append an audit event, for which :meth:`is_audited` is True; return the stored record.

        Raises:
            WorkspaceError: UNAVAILABLE if the event is not recorded.
        """
        return await self._audit_log.append(
            Target.ACCESS_CONTROL, event.actor, event.build_record_content(), append_id=event.append_id
        )
