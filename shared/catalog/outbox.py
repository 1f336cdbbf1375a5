"""Transactional outbox: appends the stored audit events of catalog changes to their chains."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from shared.catalog.ports import CONTEXT, UNAUDITED, PendingEvent, PendingEventStore
from shared.errors import Kind, WorkspaceError
from shared.provenance.hash_rule import SAFE_INTEGER
from shared.provenance.ports import AuditLog, Target

APPENDS_AT_ONCE: Final = 100


type Announce = Callable[[Sequence[PendingEvent]], Awaitable[None]]
"""Announces changes to other parts of the service, by their events. An event can be announced more than once."""


async def ignore_events(events: Sequence[PendingEvent]) -> None:
    """Do nothing; this is the default for ``announce``, so that appended audit events are not announced."""


async def flush_outbox(store: PendingEventStore, audit_log: AuditLog, announce: Announce = ignore_events) -> int:
    """Append the pending audit events to their audit chains, oldest first; return the number of processed events.

    Events with the target :data:`UNAUDITED` are announced and counted like the others, but not appended. The function
    ``announce`` is called with the processed events; for changes of the catalog, it publishes webhook events.

    An event is deleted from the outbox after these steps. If the process ends before the
    deletion, the steps are repeated; the append id of an event makes the second append return the same
    record. An event that its chain rejects permanently stays pending and does not block later events.

    Raises:
        WorkspaceError: from the audit log, the announcement or the store; unappended events stay pending.
    """
    count = 0
    rejection: WorkspaceError | None = None
    for events in _iterate_event_batches(await store.list_pending_events()):
        appended, failure = await _append_events(events, audit_log)
        if appended:
            await announce([event for event in events if event.append_id in appended])
            await store.delete_pending_events(appended)
        if failure is not None and failure.kind is not Kind.INVALID:
            raise failure
        count += len(appended)
        rejection = rejection or failure
    if rejection is not None:
        raise rejection
    return count


def _iterate_event_batches(events: Iterable[PendingEvent]) -> Iterator[Sequence[PendingEvent]]:
    """Yield pending audit events in batches. A batch contains at most one event of each catalog item.

    The events of an item therefore keep their order, also if an append fails.
    """
    batch: dict[tuple[str, ...], PendingEvent] = {}
    for event in events:
        item = event.target, str(event.event.get("EntityType")), str(event.event.get("EntityID"))
        if item in batch or len(batch) == APPENDS_AT_ONCE:
            yield tuple(batch.values())
            batch = {}
        batch[item] = event
    if batch:
        yield tuple(batch.values())


async def _append_events(
    events: Sequence[PendingEvent], audit_log: AuditLog
) -> tuple[list[str], WorkspaceError | None]:
    """Append a batch of audit events; return the ids of the appended events, and the last error or None.

    If the audit log is unavailable for an event, the ids of all later events are omitted, so that these events are
    appended again. Events that their chains reject are skipped.
    """
    results = await asyncio.gather(*(_append_event(event, audit_log) for event in events))
    appended: list[str] = []
    rejection: WorkspaceError | None = None
    for event, error in zip(events, results, strict=True):
        rejection = error or rejection
        if error is None:
            appended.append(event.append_id)
        elif error.kind is not Kind.INVALID:
            break
    return appended, rejection


async def _append_event(event: PendingEvent, audit_log: AuditLog) -> WorkspaceError | None:
    if event.target == UNAUDITED:
        return None
    try:
        content = convert_large_integers_to_text(
            {name: value for name, value in event.event.items() if name != CONTEXT}
        )
        await audit_log.append(Target(event.target), event.user_id, content, append_id=event.append_id)
    except WorkspaceError as error:
        return error
    return None


def convert_large_integers_to_text(value: Any) -> Any:
    """Return a JSON value in which integers beyond ±(2^53-1) are texts; audit records cannot contain them."""
    if isinstance(value, dict):
        return {name: convert_large_integers_to_text(member) for name, member in value.items()}
    if isinstance(value, list):
        return [convert_large_integers_to_text(item) for item in value]
    return str(value) if isinstance(value, int) and abs(value) > SAFE_INTEGER else value
