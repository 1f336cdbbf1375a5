"""What other domains need of the audit log."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol


class Target(StrEnum):
    """The four containers of audit records; the first two are workspace chains, the others have one chain a scope."""

    PLATFORM_CONFIG = "PlatformConfig"
    ACCESS_CONTROL = "AccessControl"
    DOMAIN_EVENTS = "DomainEvents"
    DOMAIN_AMENDMENTS = "DomainAmendments"


class AuditLog(Protocol):
    """Appends audit events to a chain."""

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Append one event; when this returns, it is stored durably, once.

        Args:
            target: the container.
            user_id: the acting principal, becomes ``UserID``.
            event: ActionType, EntityType, EntityID and optionally NodeID, BeforeState, AfterState, Name, Description.
            append_id: unique per event; the same id again returns the record already stored.
            scope_key: the scope of a domain chain, empty for a workspace chain.

        Returns:
            The stored record, RecordID, Timestamp, PreviousHash and Hash included.

        Raises:
            WorkspaceError: UNAVAILABLE when the store does not answer.
        """
        ...
