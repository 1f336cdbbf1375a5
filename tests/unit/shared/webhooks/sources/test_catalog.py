"""Tests of webhook events about connections and warm queries."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from shared.backends.embedded.connection_states import SqliteConnectionStates
from shared.catalog.models import Connection
from shared.catalog.ports import CONTEXT, PendingEvent
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import Kind, WorkspaceError
from shared.telemetry.connection_status import ConnectionStatuses
from shared.webhooks.events import EventOutbox, WebhookEvent, WebhookEventType
from shared.webhooks.models import RETENTION, EndpointList
from shared.webhooks.sources import catalog
from shared.webhooks.sources.catalog import (
    ConnectionEvents,
    WarmQueryEvents,
    build_next_statuses_if_changed,
    build_query_event,
    build_status_event,
)
from tests.unit.shared.webhooks.environment import WebhookServices
from tests.virtual_time import START

CHANGED = WebhookEventType.CONNECTION_STATUS_CHANGED
AT = "2026-03-01T12:00:00.000000Z"
BEFORE = {"version": "v", "statuses": {"rig": "LIVE", "press": "LIVE"}, "unpublished": []}


def build_current_statuses(**statuses: str) -> dict[str, dict[str, Any]]:
    """Return the current status of each connection in the form in which the event source reads it."""
    return {
        lookup: {"status": status, "lastMessage": None, "surfaces": ["cooling"]} for lookup, status in statuses.items()
    }


def test_without_a_status_change_nothing_is_stored() -> None:
    """If no status has changed, a run stores nothing."""
    assert build_next_statuses_if_changed(BEFORE, build_current_statuses(rig="LIVE", press="LIVE"), AT) is None


def test_the_first_run_reports_no_status_change() -> None:
    """The first run only stores statuses, because their changes were before the first subscription."""
    assert build_next_statuses_if_changed({}, build_current_statuses(rig="STALE"), AT) == {
        "version": AT,
        "statuses": {"rig": "STALE"},
        "unpublished": [],
    }


@pytest.mark.parametrize(
    ("statuses", "changed"),
    [
        ({"rig": "STALE", "press": "LIVE"}, ["rig"]),
        ({"rig": "LIVE"}, []),
        ({"rig": "LIVE", "press": "LIVE", "new": "NEVER"}, []),
    ],
)
def test_only_changes_of_known_connections_are_reported(statuses: dict[str, str], changed: list[str]) -> None:
    """A new or removed connection causes no event, but is added to or removed from the stored statuses."""
    after = build_next_statuses_if_changed(BEFORE, build_current_statuses(**statuses), AT)
    assert after is not None
    assert ([each["connection"] for each in after["unpublished"]], after["statuses"]) == (changed, statuses)


def test_a_change_of_status_becomes_an_event() -> None:
    """Each change of a status has one event key, so that an event that is published again is delivered once."""
    after = build_next_statuses_if_changed(BEFORE, build_current_statuses(rig="STALE", press="LIVE"), AT)
    assert after is not None
    event = build_status_event(after["unpublished"][0], after["version"])
    assert event.key == f"connection.status-changed/{AT}/rig"
    assert event.data == {"connection": "rig", "before": "LIVE", "after": "STALE", "lastMessage": None}
    assert (event.surfaces, event.connections) == (frozenset({"cooling"}), frozenset({"rig"}))


def test_many_changes_of_status_are_stored_in_several_documents() -> None:
    """If ten thousand connections change, each stored document is below 2 MB, and contains each change once."""
    lookups = [f"{number:064}" for number in range(10_000)]
    reported: dict[str, Any] = {"version": "v", "statuses": dict.fromkeys(lookups, "CONNECTED"), "unpublished": []}
    current = build_current_statuses(**dict.fromkeys(lookups, "DISABLED"))
    reported_connections: list[str] = []
    while (after := build_next_statuses_if_changed(reported, current, AT)) is not None:
        # Cosmos DB stores the document as a text in an item.
        assert len(json.dumps(json.dumps(after))) < 2_000_000
        reported_connections += [change["connection"] for change in after["unpublished"]]
        reported = after
    assert reported_connections == lookups


@pytest.fixture
async def states(tmp_path: Path) -> AsyncIterator[SqliteConnectionStates]:
    """Provide an empty store of connection states."""
    opened = SqliteConnectionStates(tmp_path / "telemetry.sqlite")
    yield opened
    await opened.close()


def build_connection_events(
    webhook_services: WebhookServices, states: SqliteConnectionStates, outbox: EventOutbox, *lookups: str
) -> ConnectionEvents:
    """Return the source of events about the status of connections, by default of the connection ``rig``."""
    definitions = [{"lookup": lookup, "name": "Rig", "type": "CLOUD_IOT_HUB"} for lookup in lookups or ("rig",)]
    connections = [CatalogEntry(Connection.model_validate(each), START, START, "ann") for each in definitions]

    async def load_catalog() -> Catalog:
        return Catalog(connections={entry.value.lookup: entry for entry in connections})

    store, registry = webhook_services.store, webhook_services.registry
    return ConnectionEvents(
        load_catalog, states, ConnectionStatuses(()), store, registry, outbox, runtime=webhook_services.runtime
    )


async def test_a_change_is_not_sent_again_after_its_delivery_has_expired(
    webhook_services: WebhookServices, states: SqliteConnectionStates
) -> None:
    """A change of a connection's status is delivered once, also if its delivery expires and no other change follows."""
    source = build_connection_events(webhook_services, states, webhook_services.outbox)
    endpoint = await webhook_services.create_endpoint(CHANGED)
    await source.publish_status_changes()
    await states.set_status(["rig"], "CONNECTED")
    await source.publish_status_changes()
    assert len(await webhook_services.list_all(endpoint)) == 1
    webhook_services.time.advance(RETENTION.total_seconds())
    assert await webhook_services.store.delete_and_count_expired_deliveries(webhook_services.time.now, 10) == 1
    await source.publish_status_changes()
    assert await webhook_services.list_all(endpoint) == []


@pytest.mark.parametrize("changes_at_once", [False, True])
@pytest.mark.parametrize("has_changed", [False, True])
async def test_a_subscription_during_the_deletion_of_statuses_gets_later_changes(
    webhook_services: WebhookServices,
    states: SqliteConnectionStates,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_changed: bool,
    changes_at_once: bool,
) -> None:
    """An endpoint that subscribes while another instance deletes the statuses gets the changes since then.

    ``has_changed`` is True if a status has changed since the latest run; ``changes_at_once`` is True if the next change
    comes before the deletion.
    """
    source = build_connection_events(webhook_services, states, webhook_services.outbox)
    earlier = await webhook_services.create_endpoint(CHANGED)
    await source.publish_status_changes()
    await webhook_services.service.remove("admin@t", earlier.id)
    if has_changed:
        await states.set_status(["rig"], "CONNECTED")
    load = webhook_services.registry.load

    async def load_before_subscription() -> EndpointList:
        monkeypatch.setattr(webhook_services.registry, "load", load)
        endpoint_list = await load()
        await webhook_services.create_endpoint(CHANGED)
        await build_connection_events(webhook_services, states, webhook_services.outbox).publish_status_changes()
        if changes_at_once:
            webhook_services.time.advance(1)
            await states.set_status(["rig"], "ERROR")
        return endpoint_list

    monkeypatch.setattr(webhook_services.registry, "load", load_before_subscription)
    await source.publish_status_changes()
    if not changes_at_once:
        webhook_services.time.advance(1)
        await states.set_status(["rig"], "ERROR")
    await source.publish_status_changes()
    [endpoint] = await webhook_services.service.list_endpoints()
    assert '"after":"ERROR"' in (await webhook_services.list_all(endpoint))[0].body


async def test_changes_of_several_documents_are_sent_in_one_run(
    webhook_services: WebhookServices, states: SqliteConnectionStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the changes of a run do not fit into one document, the run stores and publishes all of them, each once."""
    monkeypatch.setattr(catalog, "MAX_UNPUBLISHED_BYTES", 1)
    lookups = ["mill", "press", "rig"]
    source = build_connection_events(webhook_services, states, webhook_services.outbox, *lookups)
    endpoint = await webhook_services.create_endpoint(CHANGED)
    await source.publish_status_changes()
    await states.set_status(lookups, "CONNECTED")
    await source.publish_status_changes()
    deliveries = await webhook_services.list_all(endpoint)
    assert sorted(json.loads(each.body)["data"]["connection"] for each in deliveries) == lookups


class FailingOutbox:
    """Fake outbox whose store does not respond."""

    async def publish(self, events: Sequence[WebhookEvent]) -> None:
        """Fail if there are events."""
        if events:
            raise WorkspaceError(Kind.UNAVAILABLE, "WEBHOOKS_UNAVAILABLE", "The store does not respond.")


async def test_a_change_is_published_by_the_next_run_after_a_failure(
    webhook_services: WebhookServices, states: SqliteConnectionStates
) -> None:
    """If the publication of a stored change fails, the next run publishes the change."""
    endpoint = await webhook_services.create_endpoint(CHANGED)
    failing = build_connection_events(webhook_services, states, FailingOutbox())
    await failing.publish_status_changes()
    await states.set_status(["rig"], "CONNECTED")
    with pytest.raises(WorkspaceError):
        await failing.publish_status_changes()
    await build_connection_events(webhook_services, states, webhook_services.outbox).publish_status_changes()
    [delivery] = await webhook_services.list_all(endpoint)
    assert json.loads(delivery.body)["data"]["after"] == "CONNECTED"


def build_pending_event(action: str = "Catalog.WarmQuery.Updated", **members: Any) -> PendingEvent:
    """Return the pending audit event of a change to a warm query."""
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
def test_a_change_of_a_query_becomes_an_event(action: str, approval: Any, kind: str, approved_by: str | None) -> None:
    """A change of a query is announced as pending, approved or rejected, depending on its action and approval."""
    event = build_query_event(build_pending_event(action, approval=approval))
    assert event is not None
    assert (event.type, event.key, event.surfaces) == (kind, f"{kind}/e1", frozenset({"cooling"}))
    assert (event.data["lookup"], event.data["editedBy"], event.data["approvedBy"]) == ("q1", "ann", approved_by)


@pytest.mark.parametrize("members", [{"AfterState": None}, {"EntityType": "Surface"}, {CONTEXT: None}])
def test_changes_without_a_webhook_event_are_ignored(members: dict[str, Any]) -> None:
    """A deletion, a change of another item, or an audit event of an earlier version causes no webhook event."""
    assert build_query_event(build_pending_event(**members)) is None


async def test_the_outbox_is_called_only_with_events() -> None:
    """The outbox is called only if there is an event to publish."""
    published: list[list[WebhookEvent]] = []

    class Outbox:
        async def publish(self, events: list[WebhookEvent]) -> None:
            published.append(events)

    source = WarmQueryEvents(Outbox())  # type: ignore[arg-type]  # records lists
    await source.publish_query_events([build_pending_event(AfterState=None)])
    assert published == []
    await source.publish_query_events([build_pending_event(AfterState=None), build_pending_event()])
    assert [len(each) for each in published] == [1]
