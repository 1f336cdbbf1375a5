"""Audit events about issued and revoked credentials, in the audit chain AccessControl."""

from collections.abc import Mapping
from typing import Any

from shared.auth.ports import Directory
from shared.observability import logs
from shared.provenance.ports import AuditLog, Target

_LOG = logs.get_logger("auth")


class AccessAudit:
    """Recorder of issued and revoked credentials; does nothing if the workspace has no audit log."""

    def __init__(self, directory: Directory, audit_log: AuditLog) -> None:
        self._directory = directory
        self._audit_log = audit_log

    async def record(
        self,
        actor: str,
        action: str,
        entity_type: str,
        entity_id: str,
        *,
        append_id: str,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Append an audit event; a repeated call with the same ``append_id`` adds nothing.

        Raises:
            WorkspaceError: UNAVAILABLE; a credential that the event is about must then not be given to the user.
        """
        if not (await self._directory.get_team()).audited:
            _LOG.warning("provenance is not configured; the action is not audited", extra=logs.fields(action=action))
            return
        event: dict[str, Any] = {"ActionType": action, "EntityType": entity_type, "EntityID": entity_id}
        if before is not None:
            event["BeforeState"] = dict(before)
        if after is not None:
            event["AfterState"] = dict(after)
        await self._audit_log.append(Target.ACCESS_CONTROL, actor, event, append_id=append_id)
