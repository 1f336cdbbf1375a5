"""Transactional outbox: announces the stored audit events of catalog changes, and appends them to their chains."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import batched
from typing import Any, Final, NamedTuple

from shared.catalog.ports import CONTEXT, UNAUDITED, PendingEvent, PendingEventStore
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.provenance.canonical import encode_canonical_value
from shared.provenance.hash_rule import SAFE_INTEGER
from shared.provenance.ports import AuditLog, Target
from shared.provenance.records import build_event_draft

APPENDS_AT_ONCE: Final = 100
ANNOUNCED_AT_ONCE: Final = 100
"""Maximum number of events that are announced together; more would block the event loop."""

DIGESTS_DESCRIPTION: Final = "The states are too large for a record; this record has their SHA-256 digests."
"""Description of an event whose record has digests in place of the states."""

_PERMANENT: Final = frozenset({Kind.INVALID, Kind.TOO_LARGE})
"""Kinds of errors with which a chain rejects an event at every attempt."""

_STATES: Final = frozenset({"BeforeState", "AfterState"})
_MAX_SHOWN: Final = 64
_LOG = logs.get_logger("outbox")

type Announce = Callable[[Sequence[PendingEvent]], Awaitable[None]]
"""Announces changes to other parts of the service, by their events. An event can be announced more than once."""


async def ignore_events(events: Sequence[PendingEvent]) -> None:
    """Do nothing; an ``announce`` for audit events that are not announced."""


class EventAnnouncer:
    """Announces pending events to other parts of the service, each event once in this process.

    An event stays pending, possibly for days, until its audit chain accepts a record. After a restart of the process it
    is announced again.

    Args:
        announce: announces events; for changes of the catalog, it publishes webhook events.
    """

    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        self._announced_ids = frozenset[str]()

    async def announce_new_events(self, pending: Sequence[PendingEvent]) -> None:
        """Announce the events that are not announced yet.

        Args:
            pending: all pending events, oldest first; the announcer forgets the ids of other events.

        Raises:
            WorkspaceError: from the announcement; the next call repeats it.
        """
        new = [event for event in pending if event.append_id not in self._announced_ids]
        for part in batched(new, ANNOUNCED_AT_ONCE, strict=False):
            await self._announce(part)
        self._announced_ids = frozenset(event.append_id for event in pending)


async def flush_outbox_and_count_events(
    store: PendingEventStore, audit_log: AuditLog, announcer: EventAnnouncer
) -> int:
    """Announce the pending audit events, and append them to their audit chains, oldest first.

    Events with the target :data:`UNAUDITED` are announced and counted like the others, but not appended. Announcements
    do not wait for the audit chains, because the changes are in force, nor do the chains wait for announcements.

    An event is deleted from the outbox after these steps. If the process ends before the deletion, the steps are
    repeated; because of the append id of the event, the second append returns the record of the first one. An event
    that its chain rejects permanently stays pending and does not block later events. A chain that is unavailable blocks
    its own events only.

    Args:
        store: storage of the pending events.
        audit_log: destination of the audit events.
        announcer: announces the events.

    Returns:
        Number of events that were deleted from the outbox.

    Raises:
        WorkspaceError: from the audit log, the announcement or the store; unappended events stay pending, and after a
            failed announcement all events.
    """
    pending = await store.list_pending_events()
    announcement, result = await asyncio.gather(
        announcer.announce_new_events(pending),
        _append_events_of_all_chains(pending, audit_log),
        return_exceptions=True,
    )
    if isinstance(announcement, BaseException):
        raise announcement
    if isinstance(result, BaseException):
        raise result
    if result.appended_ids:
        await store.delete_pending_events(result.appended_ids)
    if result.error is not None:
        raise result.error
    return len(result.appended_ids)


def _group_by_target(events: Iterable[PendingEvent]) -> Iterable[Sequence[PendingEvent]]:
    groups: dict[str, list[PendingEvent]] = {}
    for event in events:
        groups.setdefault(event.target, []).append(event)
    return groups.values()


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


class _AppendResult(NamedTuple):
    """Append ids of the events to remove from the outbox, and one error of the events that could not be appended.

    For a batch, ``error`` is the error of the first event whose chain is unavailable, else of the last event that its
    chain rejects, else None.
    """

    appended_ids: list[str]
    error: WorkspaceError | None


async def _append_events_of_all_chains(pending: Iterable[PendingEvent], audit_log: AuditLog) -> _AppendResult:
    results = [await _append_events_of_chain(events, audit_log) for events in _group_by_target(pending)]
    appended = [append_id for result in results for append_id in result.appended_ids]
    return _AppendResult(appended, next((result.error for result in results if result.error), None))


async def _append_events_of_chain(pending: Iterable[PendingEvent], audit_log: AuditLog) -> _AppendResult:
    """Append the pending events of one chain until it is unavailable; rejected events do not block later events."""
    appended: list[str] = []
    rejection: WorkspaceError | None = None
    for events in _iterate_event_batches(pending):
        result = await _append_events(events, audit_log)
        appended += result.appended_ids
        if result.error is not None and result.error.kind not in _PERMANENT:
            return _AppendResult(appended, result.error)
        rejection = rejection or result.error
    return _AppendResult(appended, rejection)


async def _append_events(events: Sequence[PendingEvent], audit_log: AuditLog) -> _AppendResult:
    """Append a batch of audit events to their chains; return which events can be removed from the outbox.

    All other events stay in the outbox and are appended again: those that their chain rejects and, if the audit log is
    unavailable for an event, this event and all later events of the batch, even if they were appended.
    """
    results = await asyncio.gather(*(_append_event_or_return_error(event, audit_log) for event in events))
    appended: list[str] = []
    rejection: WorkspaceError | None = None
    for event, error in zip(events, results, strict=True):
        rejection = error or rejection
        if error is None:
            appended.append(event.append_id)
        elif error.kind not in _PERMANENT:
            break
    return _AppendResult(appended, rejection)


async def _append_event_or_return_error(event: PendingEvent, audit_log: AuditLog) -> WorkspaceError | None:
    if event.target == UNAUDITED:
        return None
    content = _build_record_content(event)
    try:
        try:
            await audit_log.append(Target(event.target), event.user_id, content, append_id=event.append_id)
        except WorkspaceError as error:
            if error.kind is not Kind.TOO_LARGE:
                raise
            _LOG.warning("an audit event is too large; its record has digests of the states: %s", error)
            digests = _replace_states_by_digests(content)
            await audit_log.append(Target(event.target), event.user_id, digests, append_id=event.append_id)
    except WorkspaceError as error:
        return error
    return None


def _build_record_content(event: PendingEvent) -> dict[str, Any]:
    """Return the properties of an event that are stored in its audit record; large integers become texts."""
    content = {name: value for name, value in event.event.items() if name != CONTEXT}
    converted: dict[str, Any] = convert_large_integers_to_text(content)
    return converted


def _replace_states_by_digests(content: Mapping[str, Any]) -> dict[str, Any]:
    """Replace ``BeforeState`` and ``AfterState`` of an event's content by the SHA-256 and size of their canonical form.

    The result is a copy; its ``Description`` states that the digests replace the states.
    """
    digests: dict[str, Any] = {}
    for name in _STATES & content.keys():
        canonical = encode_canonical_value(content[name], name)
        digests[name] = {"sha256": sha256(canonical).hexdigest(), "bytes": len(canonical)}
    return {**content, **digests, "Description": DIGESTS_DESCRIPTION}


def check_event_can_be_appended(event: PendingEvent) -> None:
    """Check that the audit event of a catalog change can be appended to its chain; if not, refuse the change.

    An event whose ``BeforeState`` alone is too large is accepted if the event without it fits into a record; the
    record then has digests in place of the states. Earlier versions of the service stored items of this size. Without
    this exception, no change could shorten or remove such an item.

    Raises:
        WorkspaceError: TOO_LARGE ``RECORD_TOO_LARGE``, or INVALID for a value without canonical form; the detail names
            the item.
    """
    if event.target == UNAUDITED:
        return
    content = _build_record_content(event)
    error = _find_record_error(event.user_id, content)
    if error is None:
        return
    before = {name: value for name, value in content.items() if name != "AfterState"}
    rest = {name: value for name, value in content.items() if name != "BeforeState"}
    if _find_record_error(event.user_id, before) is None or _find_record_error(event.user_id, rest) is not None:
        raise _build_refused_change_error(event, error)


def _find_record_error(user_id: str, content: Mapping[str, Any]) -> WorkspaceError | None:
    try:
        build_event_draft(user_id, content)
    except WorkspaceError as error:
        return error
    return None


def _build_refused_change_error(event: PendingEvent, error: WorkspaceError) -> WorkspaceError:
    """Return the error for a change whose audit event cannot be appended; it names the item and the record's error."""
    item = f"{event.event['EntityType']} {str(event.event['EntityID'])[:_MAX_SHOWN]!r}"
    detail = f"The audit event of this change of {item} cannot be recorded. {error.detail}"
    if error.kind is Kind.TOO_LARGE:
        detail += " The record contains the item before and after the change; shorten the item."
    return WorkspaceError(error.kind, error.code, detail, **error.members)


def convert_large_integers_to_text(value: Any) -> Any:
    """Return a JSON value in which integers beyond ±(2^53-1) are texts; audit records cannot contain them."""
    if isinstance(value, dict):
        return {name: convert_large_integers_to_text(member) for name, member in value.items()}
    if isinstance(value, list):
        return [convert_large_integers_to_text(item) for item in value]
    return str(value) if isinstance(value, int) and abs(value) > SAFE_INTEGER else value
