"""Tests of webhook events about warm queries."""

from typing import Any

import pytest

from shared.catalog.ports import CONTEXT, PendingEvent
from shared.webhooks.events import WebhookEvent
from shared.webhooks.sources.warm_queries import WarmQueryEvents, build_query_event


def build_pending(action: str = "Catalog.WarmQuery.Updated", **members: Any) -> PendingEvent:
    """Return the audit event of a change of a query."""
    context = {"editedBy": "ann", "changedAt": "2026-03-01T12:00:00Z"}
    after = {"name": "First", "surface": "cooling", "approval": members.pop("approval", None)}
    event = {"ActionType": action, "EntityType": "WarmQuery", "EntityID": "q1", "AfterState": after, CONTEXT: context}
    return PendingEvent("e1", "PlatformConfig", "ann", {**event, **members})


@pytest.mark.parametrize(
    ("action", "approval", "kind", "approved_by"),
    [
        ("Catalog.WarmQuery.Created", None, "warm-query.pending-approval", None),
        ("Catalog.WarmQuery.Created", {"approvedBy": "bob"}, "warm-query.approved", "bob"),
        ("Catalog.WarmQuery.Approved", {"approved_by": "bob"}, "warm-query.approved", "bob"),
        ("Catalog.WarmQuery.Rejected", None, "warm-query.rejected", None),
    ],
)
def test_a_change_becomes_an_event(action: str, approval: Any, kind: str, approved_by: str | None) -> None:
    """A change of a query is announced as pending, approved or rejected, depending on its action and approval."""
    event = build_query_event(build_pending(action, approval=approval))
    assert event is not None
    assert (event.type, event.key, event.surfaces) == (kind, f"{kind}/e1", frozenset({"cooling"}))
    assert (event.data["lookup"], event.data["editedBy"], event.data["approvedBy"]) == ("q1", "ann", approved_by)


@pytest.mark.parametrize("members", [{"AfterState": None}, {"EntityType": "Surface"}, {CONTEXT: None}])
def test_other_changes_are_ignored(members: dict[str, Any]) -> None:
    """A deletion, a change of another item, and an event of an earlier version have no webhook event."""
    assert build_query_event(build_pending(**members)) is None


async def test_only_events_are_published() -> None:
    """The outbox is called only if there is an event to publish."""
    published: list[list[WebhookEvent]] = []

    class Outbox:
        async def publish(self, events: list[WebhookEvent]) -> None:
            published.append(events)

    source = WarmQueryEvents(Outbox())  # type: ignore[arg-type]  # records lists
    await source.announce([build_pending(AfterState=None)])
    assert published == []
    await source.announce([build_pending(AfterState=None), build_pending()])
    assert [len(each) for each in published] == [1]
