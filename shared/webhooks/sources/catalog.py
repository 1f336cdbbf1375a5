"""Sources of webhook events about connections and warm queries (saved KQL queries).

Events about connections are derived from their current and their last reported status, events about warm queries from
audit events of catalog changes.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from shared.catalog.items import ItemKind
from shared.catalog.ports import CONTEXT, PendingEvent
from shared.catalog.snapshot import Catalog
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.connection_status import ConnectionStatuses, connection_statistics_to_json
from shared.telemetry.ports import ConnectionStateStore
from shared.timestamps import format_rfc3339, parse_rfc3339
from shared.webhooks.events import EventOutbox, WebhookEvent, WebhookEventType
from shared.webhooks.ports import WebhookStore
from shared.webhooks.registry import EndpointRegistry
from shared.webhooks.sources.amendments import find_earliest_subscription_time

STATE_DOCUMENT: Final = "connection-statuses"
MAX_UNPUBLISHED_BYTES: Final = 500_000
"""Maximum size of the unpublished changes as JSON; with all statuses, they are one document of up to 2 MB."""
_KIND: Final = WebhookEventType.CONNECTION_STATUS_CHANGED

type ReportedStatuses = dict[str, Any]
"""Stored document: reported ``statuses`` by connection, time of the run (``version``), its ``unpublished`` changes."""


class ConnectionEvents:
    """Source that publishes a webhook event for each change of a connection's status.

    The new statuses and the unpublished changes are stored in one write, or in several if there are many changes. Then
    the changes are published, and removed from the stored document. After a crash in between, the next run publishes
    the same changes with the same keys.

    Args:
        load_catalog: returns the current workspace catalog.
        states: store of the connections' status and message statistics.
        statuses: derives the status of a connection.
        store: stores the statuses that were reported last.
        registry: storage of the endpoints.
        outbox: receives the events.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        load_catalog: Callable[[], Awaitable[Catalog]],
        states: ConnectionStateStore,
        statuses: ConnectionStatuses,
        store: WebhookStore,
        registry: EndpointRegistry,
        outbox: EventOutbox,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._load_catalog = load_catalog
        self._states = states
        self._statuses = statuses
        self._store = store
        self._registry = registry
        self._outbox = outbox
        self._runtime = runtime

    async def publish_status_changes(self) -> None:
        """Publish the changes of connection statuses since the last run.

        While no endpoint subscribes to these changes, no status is read, and the stored statuses are deleted. An
        endpoint that subscribes later gets only later changes.

        Raises:
            WorkspaceError: UNAVAILABLE if a store does not respond; the next run repeats the work.
        """
        reported = _parse_reported_statuses(await self._store.read_state_document(STATE_DOCUMENT))
        if not await self._has_subscription():
            if not reported or not await self._try_replace_reported_statuses(reported, {}):
                return
            # An endpoint that subscribed meanwhile must get the changes since then, and relied on the deleted statuses.
            if not await self._has_subscription() or not await self._try_replace_reported_statuses({}, reported):
                return
        reported = await self._publish_unpublished_changes(reported)
        current = await self._read_statuses_by_connection()
        while (
            after := build_next_statuses_if_changed(reported, current, format_rfc3339(self._runtime.now()))
        ) is not None:
            if not await self._try_replace_reported_statuses(reported, after):
                return
            reported = await self._publish_unpublished_changes(after)

    async def _has_subscription(self) -> bool:
        return find_earliest_subscription_time(await self._registry.load(), [_KIND]) is not None

    async def _read_statuses_by_connection(self) -> dict[str, dict[str, Any]]:
        """Return status, time of the last message, and surfaces of each connection, by the connection's lookup."""
        catalog, states = await self._load_catalog(), await self._states.load_states_by_connection()
        surfaces = _map_surface_lookups_by_connection(catalog)
        return {
            lookup: {
                "status": self._statuses.derive_status(entry.value, states.get(lookup)).status,
                "lastMessage": connection_statistics_to_json(states.get(lookup))["lastMessage"],
                "surfaces": surfaces.get(lookup, []),
            }
            for lookup, entry in catalog.connections.items()
        }

    async def _publish_unpublished_changes(self, reported: ReportedStatuses) -> ReportedStatuses:
        """Publish the status changes that a stored document lists as unpublished; return the document without them.

        The stored document is replaced, too. Otherwise, a change would be delivered a second time after its first
        deliveries have expired.

        Args:
            reported: the stored document, with the statuses that were reported last.
        """
        if not reported.get("unpublished"):
            return reported
        await self._outbox.publish([build_status_event(each, reported["version"]) for each in reported["unpublished"]])
        published = {**reported, "unpublished": []}
        await self._try_replace_reported_statuses(reported, published)
        return published

    async def _try_replace_reported_statuses(self, before: ReportedStatuses, after: ReportedStatuses) -> bool:
        """Replace the stored document of reported statuses; return False if another process has changed it."""

        def replace_if_unchanged(found: str | None) -> str | None:
            return json.dumps(after) if _parse_reported_statuses(found) == before else None

        stored = await self._store.change_state_document(STATE_DOCUMENT, replace_if_unchanged)
        return _parse_reported_statuses(stored) == after


def _parse_reported_statuses(text: str | None) -> ReportedStatuses:
    return json.loads(text) if text else {}


def build_next_statuses_if_changed(
    reported_before: ReportedStatuses, current: Mapping[str, Mapping[str, Any]], at: str
) -> ReportedStatuses | None:
    """Build the next document of reported connection statuses and of status changes; None if no status has changed.

    New connections have no earlier status and are not reported. If the changes do not fit into one document, the last
    ones are left out: their connections have their earlier status in the document, so the next document reports them.

    Args:
        reported_before: the stored document; empty for the first run.
        current: status, time of the last message, and surfaces (groups) of each connection.
        at: the current time.
    """
    known: dict[str, str] = reported_before.get("statuses", {})
    statuses = {lookup: str(state["status"]) for lookup, state in current.items()}
    if reported_before and statuses == known:
        return None
    changes = [
        {**current[lookup], "connection": lookup, "before": known[lookup], "after": status, "at": at}
        for lookup, status in statuses.items()
        if known.get(lookup, status) != status
    ]
    unpublished = _select_changes_that_fit(changes)
    statuses |= {change["connection"]: change["before"] for change in changes[len(unpublished) :]}
    return {"version": at, "statuses": statuses, "unpublished": unpublished}


def _select_changes_that_fit(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return as many of the first changes as one document can contain, but at least one of them."""
    size = 0
    for number, change in enumerate(changes):
        size += len(json.dumps(change))
        if size > MAX_UNPUBLISHED_BYTES and number > 0:
            return changes[:number]
    return changes


def build_status_event(change: Mapping[str, Any], version: str) -> WebhookEvent:
    """Build the webhook event about a change of a connection's status.

    Args:
        change: an element of ``unpublished`` in the stored document.
        version: time of the run that found the change; part of the event's key.
    """
    names = ("connection", "before", "after", "lastMessage")
    return WebhookEvent(
        key=f"{_KIND}/{version}/{change['connection']}",
        type=_KIND,
        at=parse_rfc3339(change["at"]),
        data={name: change[name] for name in names},
        surfaces=frozenset(change["surfaces"]) or None,
        connections=frozenset({change["connection"]}),
    )


def _map_surface_lookups_by_connection(catalog: Catalog) -> dict[str, list[str]]:
    """Return, by connection, the lookups (ids in URLs) of the surfaces (groups of connections) that contain it."""
    grouped: dict[str, list[str]] = {}
    for lookup, entry in catalog.surfaces.items():
        for connection in entry.value.connections:
            grouped.setdefault(connection, []).append(lookup)
    return grouped


_ENTITY_TYPE = ItemKind.WARM_QUERY[0].upper() + ItemKind.WARM_QUERY[1:]
_TYPES = {
    "Approved": WebhookEventType.WARM_QUERY_APPROVED,
    "Rejected": WebhookEventType.WARM_QUERY_REJECTED,
}


class WarmQueryEvents:
    """Publishes webhook events about changed warm queries (saved KQL queries).

    Args:
        outbox: receives the events.
    """

    def __init__(self, outbox: EventOutbox) -> None:
        self._outbox = outbox

    async def publish_query_events(self, pending: Sequence[PendingEvent]) -> None:
        """Publish webhook events about changes of saved KQL queries; changes of other catalog items are ignored.

        Raises:
            WorkspaceError: UNAVAILABLE ``WEBHOOKS_UNAVAILABLE``.
        """
        events = [event for each in pending if (event := build_query_event(each)) is not None]
        if events:
            await self._outbox.publish(events)


def build_query_event(pending: PendingEvent) -> WebhookEvent | None:
    """Build the webhook event about a catalog change; None for a deletion, and for items that are not queries.

    If the change stores an approved query, for instance from a workspace document, the event is an approval. After any
    other change of the definition, the query is a draft, and the event says that it waits for approval.
    """
    change = pending.event
    after, context = change.get("AfterState"), change.get(CONTEXT)
    if change.get("EntityType") != _ENTITY_TYPE or not after or not context:
        return None
    kind = _TYPES.get(str(change["ActionType"]).rpartition(".")[2])
    approval: dict[str, Any] | None = after.get("approval")
    if kind is None:
        kind = WebhookEventType.WARM_QUERY_APPROVED if approval else WebhookEventType.WARM_QUERY_PENDING_APPROVAL
    approved_by = None if approval is None else approval.get("approved_by", approval.get("approvedBy"))
    data = {
        "lookup": change["EntityID"],
        "name": after.get("name"),
        "surface": after.get("surface"),
        "editedBy": context["editedBy"],
        "approvedBy": approved_by,
    }
    return WebhookEvent(
        key=f"{kind}/{pending.append_id}",
        type=kind,
        at=parse_rfc3339(context["changedAt"]),
        data=data,
        surfaces=frozenset({str(after.get("surface"))}),
    )
