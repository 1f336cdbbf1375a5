"""Source of webhook events about warm queries (saved KQL queries), derived from audit events of catalog changes."""

from collections.abc import Sequence
from typing import Any

from shared.catalog.items import ItemKind
from shared.catalog.ports import CONTEXT, PendingEvent
from shared.timestamps import parse_rfc3339
from shared.webhooks.events import EventOutbox, WebhookEvent, WebhookEventType

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

    async def announce(self, pending: Sequence[PendingEvent]) -> None:
        """Publish webhook events about changes of saved KQL queries; changes of other catalog items are ignored.

        Raises:
            WorkspaceError: UNAVAILABLE ``WEBHOOKS_UNAVAILABLE``.
        """
        events = [event for each in pending if (event := build_query_event(each)) is not None]
        if events:
            await self._outbox.publish(events)


def build_query_event(pending: PendingEvent) -> WebhookEvent | None:
    """Build the webhook event about a catalog change; None for a deletion and for changes of other items.

    If the change stores an approved query, for instance from a workspace document, the event is an approval. After any
    other change of the definition, the query is a draft.
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
