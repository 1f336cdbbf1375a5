"""From the outbox into the chain: audit events of changes that are already saved."""

from collections.abc import Sequence
from itertools import batched
from typing import Final

from shared.catalog.ports import CatalogStore, PendingEvent
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import AuditLog, Target

SETTLE_EVERY: Final = 100


async def flush_outbox(store: CatalogStore, audit_log: AuditLog) -> int:
    """Enter the pending events in their chains, oldest first, and return how many.

    An event is settled after it stands in its chain, so that a crash in between enters it again: the append id makes
    that the same record. An event that its chain refuses for good stays pending and does not hold up those behind it.

    Raises:
        WorkspaceError: the audit log's or the store's; what was not entered stays pending.
    """
    entered = 0
    refused: WorkspaceError | None = None
    for events in batched(await store.pending_events(), SETTLE_EVERY, strict=False):
        standing, failure = await _enter(events, audit_log)
        if standing:
            await store.settle(standing)
        if failure is not None and failure.kind is not Kind.INVALID:
            raise failure
        entered += len(standing)
        refused = refused or failure
    if refused is not None:
        raise refused
    return entered


async def _enter(events: Sequence[PendingEvent], audit_log: AuditLog) -> tuple[list[str], WorkspaceError | None]:
    """Append events in order until the log does not answer; return the ids of those that stand, and the failure."""
    standing: list[str] = []
    refused: WorkspaceError | None = None
    for event in events:
        try:
            await audit_log.append(Target(event.target), event.user_id, event.event, append_id=event.append_id)
        except WorkspaceError as error:
            refused = error
            if error.kind is not Kind.INVALID:
                break
        else:
            standing.append(event.append_id)
    return standing, refused
