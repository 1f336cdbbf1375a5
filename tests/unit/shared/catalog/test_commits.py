"""Tests of the records that are stored in one transaction with a catalog change."""

from datetime import timedelta
from typing import Any

from shared.catalog.commits import AuditContext, build_commit, build_event, build_item
from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind
from shared.catalog.ports import CONTEXT, UNAUDITED, CatalogItem, ItemOrigin, StoredCatalog
from tests.virtual_time import START, VirtualTime

EARLIER = START - timedelta(days=1)
RIG = {"lookup": "rig", "name": "Rig"}
QUERY = ItemChange(ItemKind.WARM_QUERY, "q", None, {"lookup": "q"})
RUNTIME = VirtualTime().runtime


def build_stored(*, audited: bool) -> StoredCatalog:
    """Return a stored catalog with settings."""
    settings: dict[str, Any] = {"policies": {"provenance": {} if audited else None}}
    definitions: dict[str, dict[str, Any]] = {ItemKind.WORKSPACE: {"id": "plant-a"}, ItemKind.SETTINGS: settings}
    origin = ItemOrigin.DECLARED, EARLIER, EARLIER, "x"
    return StoredCatalog(1, tuple(CatalogItem(kind, "-", value, *origin) for kind, value in definitions.items()))


def test_a_changed_item_keeps_its_origin_and_creation_time() -> None:
    """A change preserves origin and creation time; an edit changes time and editor, but an approval does not."""
    before = CatalogItem(ItemKind.CONNECTION, "rig", {}, ItemOrigin.DECLARED, EARLIER, EARLIER, "ann")
    edit = ItemChange(ItemKind.CONNECTION, "rig", {}, RIG)
    approval = ItemChange(ItemKind.CONNECTION, "rig", {}, RIG, is_edit=False)
    edited, approved = (build_item(each, before, "bob", ItemOrigin.API, START) for each in (edit, approval))
    assert (edited.origin, edited.created_at, edited.updated_at, edited.edited_by) == (
        ItemOrigin.DECLARED,
        EARLIER,
        START,
        "bob",
    )
    assert (approved.definition, approved.updated_at, approved.edited_by) == (RIG, EARLIER, "ann")


def test_items_that_exist_once_have_the_id_of_the_workspace() -> None:
    """The audit event about the settings has the id of the workspace as its entity."""
    change = ItemChange(ItemKind.SETTINGS, "-", {"a": 1}, {"a": 2})
    event = build_event(change, "ann", "plant-a", "e1")
    assert (event.target, event.event["EntityID"], event.event["ActionType"]) == (
        "PlatformConfig",
        "plant-a",
        "Catalog.Settings.Updated",
    )


def test_members_are_recorded_in_the_chain_of_access() -> None:
    """Changes of members are recorded in the access-control chain, other changes in another chain."""
    event = build_event(ItemChange(ItemKind.MEMBER, "ann", {"id": "ann"}, None), "bob", "plant-a", "e1")
    assert (event.target, event.event["ActionType"]) == ("AccessControl", "Catalog.Member.Removed")
    assert "AfterState" not in event.event


def test_a_commit_has_items_deletions_and_an_event_each() -> None:
    """One transaction stores all changed items, all deletions, and one event for each change."""
    changes = [
        ItemChange(ItemKind.CONNECTION, "rig", None, RIG),
        ItemChange(ItemKind.SURFACE, "s", {"lookup": "s"}, None),
    ]
    commit = build_commit(changes, build_stored(audited=True), "ann", ItemOrigin.API, RUNTIME)
    assert [(item.kind, item.key, item.origin) for item in commit.puts] == [("connection", "rig", ItemOrigin.API)]
    assert list(commit.deletes) == [("surface", "s")]
    assert [event.event["ActionType"] for event in commit.events] == [
        "Catalog.Connection.Created",
        "Catalog.Surface.Removed",
    ]


def test_without_provenance_only_warm_queries_have_events() -> None:
    """Without an audit log, only changes of warm queries have events, which are sent to webhooks."""
    changes = [ItemChange(ItemKind.CONNECTION, "rig", None, RIG), QUERY]
    commit = build_commit(changes, build_stored(audited=False), "ann", ItemOrigin.API, RUNTIME)
    [event] = commit.events
    assert (commit.audited, event.target) == (False, UNAUDITED)
    assert event.event[CONTEXT] == {"editedBy": "ann", "changedAt": "2026-03-01T12:00:00.000000Z"}


def test_a_change_of_the_policy_counts_at_once() -> None:
    """The change that enables the audit log is itself recorded in the audit log."""
    on = CatalogItem(ItemKind.SETTINGS, "-", {"policies": {"provenance": {}}}, ItemOrigin.API, EARLIER, EARLIER, "ann")
    context = AuditContext.from_catalog(build_stored(audited=False), [on])
    assert context == AuditContext("plant-a", audited=True)
    assert AuditContext.from_catalog(StoredCatalog(0, ()), []) == AuditContext("", audited=False)
