"""Puts what happens to credentials into the AccessControl chain."""

from collections.abc import Mapping
from typing import Any

from shared.auth.ports import Directory
from shared.observability import logs
from shared.provenance.ports import AuditLog, Target

_LOG = logs.get_logger("auth")


class AccessAudit:
    """Records issues and revocations, where the workspace has provenance."""

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
        """Append one event, durably, before the caller learns of the outcome; once per append id.

        Raises:
            WorkspaceError: UNAVAILABLE; what was to be recorded must then not be handed out.
        """
        if not (await self._directory.team()).audited:
            _LOG.warning("provenance is not provisioned; this goes unaudited", extra=logs.fields(action=action))
            return
        event: dict[str, Any] = {"ActionType": action, "EntityType": entity_type, "EntityID": entity_id}
        if before is not None:
            event["BeforeState"] = dict(before)
        if after is not None:
            event["AfterState"] = dict(after)
        await self._audit_log.append(Target.ACCESS_CONTROL, actor, event, append_id=append_id)
