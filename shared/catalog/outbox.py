"""Transactional outbox: appends the audit events of saved changes to their chains."""

from collections.abc import Sequence
from itertools import batched
from typing import Final

from shared.catalog.ports import CatalogStore, PendingEvent
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import AuditLog, Target

SETTLE_EVERY: Final = 100


async def flush_outbox(store: CatalogStore, audit_log: AuditLog) -> int:
    """Append pending events to their chains, oldest first, and return their number.

    An event is settled after the append. If the process ends in between, the event is appended again; its append id
    makes the second append return the same record. An event that its chain rejects permanently stays pending and does
    not block later events.

    Raises:
        WorkspaceError: from the audit log or the store; unappended events stay pending.
    """
    count = 0
    rejection: WorkspaceError | None = None
    for events in batched(await store.pending_events(), SETTLE_EVERY, strict=False):
        appended, failure = await _append_events(events, audit_log)
        if appended:
            await store.settle(appended)
        if failure is not None and failure.kind is not Kind.INVALID:
            raise failure
        count += len(appended)
        rejection = rejection or failure
    if rejection is not None:
        raise rejection
    return count


async def _append_events(
    events: Sequence[PendingEvent], audit_log: AuditLog
) -> tuple[list[str], WorkspaceError | None]:
    """Append events in order until the log is unavailable; return the ids of appended events, and the error."""
    appended: list[str] = []
    rejection: WorkspaceError | None = None
    for event in events:
        try:
            await audit_log.append(Target(event.target), event.user_id, event.event, append_id=event.append_id)
        except WorkspaceError as error:
            rejection = error
            if error.kind is not Kind.INVALID:
                break
        else:
            appended.append(event.append_id)
    return appended, rejection
