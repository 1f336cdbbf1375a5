"""Tests of the plan of a document, which lists the changes that applying it makes."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from shared.catalog.diff import plan_changes, plan_changes_of_definitions
from shared.catalog.document import load_document
from shared.catalog.items import definitions_from_document
from shared.catalog.models import Quotas, WorkspaceDocument
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.errors import WorkspaceError
from tests.unit.shared.catalog.documents import PLANT, draw_valid_document

AT = datetime(2026, 1, 1, tzinfo=UTC)
DOCUMENT = load_document(PLANT, "w.yaml")


def build_catalog_with_document(document: WorkspaceDocument, *more: CatalogItem) -> StoredCatalog:
    """Return the catalog in which a document was applied and then the given items were added."""
    items = [
        CatalogItem(kind, key, found, ItemOrigin.DECLARED, AT, AT, "apply")
        for (kind, key), found in definitions_from_document(document).items()
    ]
    return StoredCatalog(1, (*items, *more))


def build_api_query(**fields: Any) -> CatalogItem:
    """Return a query that was created through the API."""
    definition = {**definitions_from_document(DOCUMENT)["warmQuery", "q2"], "lookup": "mine", "name": "Mine", **fields}
    return CatalogItem("warmQuery", definition["lookup"], definition, ItemOrigin.API, AT, AT, "editor")


def build_api_surface(lookup: str, connections: list[str]) -> CatalogItem:
    """Return a surface that was created through the API."""
    definition = {"lookup": lookup, "name": "Mine", "description": None, "connections": connections}
    return CatalogItem("surface", lookup, definition, ItemOrigin.API, AT, AT, "editor")


def load_document_without(section: str) -> WorkspaceDocument:
    """Return the valid document without one of its lists."""
    return DOCUMENT.model_copy(update={section: ()})


def test_empty_store_gets_all_items() -> None:
    """For an empty store, the plan adds each item, after the items on which it depends."""
    changes = plan_changes(DOCUMENT, StoredCatalog(0, ())).changes
    assert all(change.before is None and change.verb == "Created" for change in changes)
    assert [change.kind for change in changes][:3] == ["workspace", "settings", "member"]
    assert {(change.kind, change.key) for change in changes} == set(definitions_from_document(DOCUMENT))


def test_changed_quotas_change_the_settings() -> None:
    """A changed quota changes the settings; stored settings without quotas need no change."""
    policies = DOCUMENT.policies.model_copy(update={"quotas": Quotas(streams_per_principal=3)})
    [change] = plan_changes(
        DOCUMENT.model_copy(update={"policies": policies}), build_catalog_with_document(DOCUMENT)
    ).changes
    assert (change.kind, change.verb, change.after and change.after["policies"]["quotas"]["streamsPerPrincipal"]) == (
        "settings",
        "Updated",
        3,
    )
    before = build_catalog_with_document(DOCUMENT)
    for item in before.items:
        item.definition.get("policies", {}).pop("quotas", None)
    assert plan_changes(DOCUMENT, before).is_empty


@given(draw_valid_document())
def test_unchanged_document_gives_empty_plan(document: WorkspaceDocument) -> None:
    """If a document equals the stored items, the plan is empty, whatever their order is."""
    shuffled = document.model_copy(
        update={
            "connections": document.connections[::-1],
            "team": document.team[::-1],
            "warm_queries": document.warm_queries[::-1],
        }
    )
    assert plan_changes(shuffled, build_catalog_with_document(document)).is_empty


def test_a_change_contains_the_definitions_before_and_after() -> None:
    """Each change in a plan contains the definitions before and after."""
    changed = load_document(PLANT.replace("name: Rig,", "name: New rig,"), "w.yaml")
    (change,) = plan_changes(changed, build_catalog_with_document(DOCUMENT)).changes
    assert (change.kind, change.key, change.verb) == ("connection", "rig", "Updated")
    assert change.before is not None
    assert change.after == {**change.before, "name": "New rig"}


def test_a_boolean_instead_of_a_number_is_a_change() -> None:
    """A rule whose parameter changes from 1 to true changes; one whose parameter changes from 1 to 1.0 does not."""
    rule = """\
alertRules:
  - {lookup: hot, name: Hot, severity: info, surface: cooling, kind: threshold, query: q1, every: PT1M,
     parameters: {since: VALUE}, condition: {rows: any}}
"""
    before, changed, same = (
        load_document(PLANT + rule.replace("VALUE", value), "w.yaml") for value in ("1", "true", "1.0")
    )
    stored = build_catalog_with_document(before)
    [change] = plan_changes(changed, stored).changes
    assert (change.kind, change.key, change.verb) == ("alertRule", "hot", "Updated")
    assert plan_changes(same, stored).is_empty


def test_removals_are_last_in_a_plan() -> None:
    """Removals are last in a plan; an item is removed before the items on which it depends."""
    bare = WorkspaceDocument(workspace=DOCUMENT.workspace)
    changes = plan_changes(bare, build_catalog_with_document(DOCUMENT)).changes
    assert [change.kind for change in changes if change.after is None] == [
        *["container"] * 2, "dataStore", *["warmQuery"] * 2, "surface", *["connection"] * 2, *["member"] * 3,
    ]  # fmt: skip
    assert changes[0].kind == "settings"


def test_items_created_over_the_api_are_retained() -> None:
    """Queries and containers that were created over the API stay, and the plan lists them."""
    container = CatalogItem("container", "orders/extra", {}, ItemOrigin.API, AT, AT, "admin")
    planned = plan_changes(DOCUMENT, build_catalog_with_document(DOCUMENT, build_api_query(), container))
    assert planned.is_empty
    assert [(item.key, item.conflict) for item in planned.retained] == [
        ("mine", False),
        ("orders/extra", False),
    ]


def test_api_item_takes_precedence_over_declared_item() -> None:
    """If an item with the key of a declared item was created over the API, it stays and is listed as a conflict."""
    mine = build_api_query(lookup="q2")
    stored = build_catalog_with_document(DOCUMENT)
    items = tuple(item for item in stored.items if item.key != "q2")
    planned = plan_changes(DOCUMENT, replace(stored, items=(*items, mine)))
    assert planned.is_empty
    assert [(item.key, item.conflict) for item in planned.retained] == [("q2", True)]


def test_a_rejected_query_equals_its_declaration() -> None:
    """A rejected API query equals its declaration in a document, because documents cannot contain rejections."""
    rejection = {"rejectedBy": "admin@plant-a.example", "rejectedAt": "2026-02-01T00:00:00.000000Z", "comment": "no"}
    declared = build_catalog_with_document(DOCUMENT)
    items = (item for item in declared.items if item.key != "q2")
    rejected = build_api_query(lookup="q2", name="Second", rejection=rejection)
    [kept] = plan_changes(DOCUMENT, replace(declared, items=(*items, rejected))).retained
    assert (kept.key, kept.reason, kept.conflict) == ("q2", "created through the API", False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "Fresh"}, "has the same name"),
        ({"apiPath": "cooling/fresh"}, "has the same apiPath"),
        ({"lookup": "fresh-path"}, "has the apiPath of the declared query as its lookup"),
        ({"apiPath": "fresh"}, "has the lookup of the declared query as its apiPath"),
        ({"name": "fresh"}, "has the lookup of the declared query as its name"),
        ({"name": "cooling/fresh"}, "has the apiPath of the declared query as its name"),
        ({"lookup": "Fresh"}, "has the name of the declared query as its lookup"),
        ({"apiPath": "Fresh"}, "has the name of the declared query as its apiPath"),
    ],
)
def test_declared_query_conflicts_with_api_query(fields: dict[str, Any], message: str) -> None:
    """A declared query with the name, lookup or API path of an API query is a conflict and is not changed."""
    path = "fresh-path" if fields.get("lookup") == "fresh-path" else "cooling/fresh"
    line = f"  - {{lookup: fresh, name: Fresh, apiPath: {path}, surface: cooling, kql: T}}\ndataStores:"
    planned = plan_changes(
        load_document(PLANT.replace("dataStores:", line), "w.yaml"),
        build_catalog_with_document(DOCUMENT, build_api_query(**fields)),
    )
    assert planned.is_empty
    assert [item.reason for item in planned.retained if item.conflict and message in item.reason]


def test_name_of_retained_query_is_not_reused() -> None:
    """A query that stays in the workspace keeps its name, which no other query can use."""
    swapped = PLANT.replace("name: Second", "name: First", 1).replace("name: First", "name: Mine", 1)
    planned = plan_changes(load_document(swapped, "w.yaml"), build_catalog_with_document(DOCUMENT, build_api_query()))
    assert planned.is_empty
    reasons = {item.key: item.reason for item in planned.retained if item.conflict}
    assert reasons == {
        "q1": "warm query mine, which was created through the API, has the same name",
        "q2": "warm query q1, which is retained unchanged, has the same name",
    }


@pytest.mark.parametrize(
    ("document", "item", "kind"),
    [
        (load_document(PLANT.split("surfaces:")[0], "w.yaml"), build_api_query(), "surface"),
        (
            load_document_without("data_stores"),
            CatalogItem("container", "orders/extra", {}, ItemOrigin.API, AT, AT, "admin"),
            "dataStore",
        ),
        (
            load_document(PLANT.replace("lookup: orders", "lookup: other"), "w.yaml"),
            CatalogItem("container", "orders/extra", {}, ItemOrigin.API, AT, AT, "admin"),
            "dataStore",
        ),
    ],
)
def test_items_on_which_api_items_depend_are_retained(
    document: WorkspaceDocument, item: CatalogItem, kind: str
) -> None:
    """A surface with an API query, or a database with an API container, is not removed."""
    planned = plan_changes(document, build_catalog_with_document(DOCUMENT, item))
    assert kind not in [change.kind for change in planned.changes]
    assert [item.conflict for item in planned.retained if item.kind == kind] == [True]


def test_records_of_existing_containers_are_retained() -> None:
    """The record of a container is removed only if the container does not exist in its account."""
    declared = definitions_from_document(load_document_without("data_stores"))
    planned = plan_changes_of_definitions(
        declared, build_catalog_with_document(DOCUMENT), existing_container_keys={"orders/recipes"}
    )
    assert [(change.kind, change.key) for change in planned.changes] == [("container", "orders/workorders")]
    assert {(item.kind, item.key): item.reason for item in planned.retained} == {
        (
            "container",
            "orders/recipes",
        ): "the container exists in the account; delete it from the account first",
        ("dataStore", "mes"): "it holds container orders/recipes, which exists in the account",
    }


def load_stores(**databases: str) -> WorkspaceDocument:
    """Return the valid document with other data stores; the values are YAML lists of their databases."""
    stores = "".join(f"  - {{lookup: {lookup}, databases: {listed}}}\n" for lookup, listed in databases.items())
    return load_document(f"{PLANT.partition('dataStores:')[0]}dataStores:\n{stores}", "w.yaml")


@pytest.mark.parametrize("remainder", [{"one": "[]"}, {}])
def test_a_database_of_a_retained_data_store_is_not_added_to_another(remainder: dict[str, str]) -> None:
    """A database stays in one data store: while its data store is retained, no other data store gets it.

    A data store that is retained for this reason keeps its own databases, too.
    """
    container = CatalogItem("container", "d1/extra", {}, ItemOrigin.API, AT, AT, "admin")
    stored = build_catalog_with_document(load_stores(one="[{lookup: d1}]", two="[{lookup: d2}]"), container)
    moved = load_stores(**remainder, two="[{lookup: d1}]", three="[{lookup: d2}]", four="[{lookup: d4}]")
    planned = plan_changes(moved, stored)
    assert [(change.kind, change.key) for change in planned.changes] == [("dataStore", "four")]
    assert {item.key: item.reason for item in planned.retained if item.conflict} == {
        "one": "it holds container d1/extra, which was created through the API",
        "two": "data store one, which is retained unchanged, has the database d1",
        "three": "data store two, which is retained unchanged, has the database d2",
    }


@pytest.mark.parametrize("remainder", [{"two": "[]"}, {}])
def test_a_database_is_not_removed_before_its_new_data_store_gets_it(remainder: dict[str, str]) -> None:
    """If a data store is retained, a database that the document moves to it stays in its present data store."""
    container = CatalogItem("container", "d1/extra", {}, ItemOrigin.API, AT, AT, "admin")
    stored = build_catalog_with_document(load_stores(one="[{lookup: d1}]", two="[{lookup: d2}]"), container)
    planned = plan_changes(load_stores(one="[{lookup: d2}]", **remainder), stored)
    assert planned.is_empty
    assert {item.key: item.reason for item in planned.retained if item.conflict} == {
        "one": "data store two, which is retained unchanged, has the database d2",
        "two": "its database d2 is not added to data store one",
    }


def test_containers_of_an_omitted_database_are_not_added() -> None:
    """If a data store is retained, the containers of the databases that it does not get are not added either."""
    container = CatalogItem("container", "d1/extra", {}, ItemOrigin.API, AT, AT, "admin")
    stored = build_catalog_with_document(load_stores(one="[{lookup: d1}, {lookup: d2}]"), container)
    containers = "containers: [{name: recipes, partitionKeyPath: /id, dataClass: reference}]"
    changed = load_stores(one=f"[{{lookup: d2, {containers}}}, {{lookup: d3, {containers}}}]")
    planned = plan_changes(changed, stored)
    assert [(change.kind, change.key) for change in planned.changes] == [("container", "d2/recipes")]
    assert {item.key: item.reason for item in planned.retained if item.conflict} == {
        "one": "it holds container d1/extra, which was created through the API",
        "d3/recipes": "its database d3 is not added to data store one",
    }


def test_items_that_a_retained_query_uses_are_retained() -> None:
    """If a query is retained, its surface and the connections of this surface are not removed."""
    text = PLANT.replace("name: First", "name: Mine").replace("lookup: cooling", "lookup: other")
    text = text.replace("surface: cooling", "surface: other").replace("[rig, sim]", "[rig]")
    document = load_document(text.replace("lookup: sim", "lookup: new"), "w.yaml")
    stored = build_catalog_with_document(
        DOCUMENT, build_api_query(surface="mine"), build_api_surface("mine", connections=[])
    )
    planned = plan_changes(document, stored)
    assert [(change.verb, change.kind, change.key) for change in planned.changes] == [
        ("Created", "connection", "new"),
        ("Created", "surface", "other"),
        ("Updated", "warmQuery", "q2"),
    ]
    assert {item.key: item.reason for item in planned.retained if item.conflict} == {
        "q1": "warm query mine, which was created through the API, has the same name",
        "cooling": "it is used by warm query q1, which is retained unchanged",
        "sim": "it is used by surface cooling, which is retained unchanged",
    }


@pytest.mark.parametrize(("before", "after"), [("take 1", "take 2"), ("name: Second", "name: Renamed")])
def test_later_approval_is_retained_for_an_unchanged_query(before: str, after: str) -> None:
    """A query that a document declares as a draft keeps a later approval until the document changes the query."""
    stored = build_catalog_with_document(DOCUMENT)
    approval = {"approvedBy": "admin@plant-a.example", "approvedAt": "2026-02-01T00:00:00.000000Z"}
    items = tuple(
        replace(item, definition={**item.definition, "approval": approval}) if item.key == "q2" else item
        for item in stored.items
    )
    approved = replace(stored, items=items)
    assert plan_changes(DOCUMENT, approved).is_empty
    (change,) = plan_changes(load_document(PLANT.replace(before, after), "w.yaml"), approved).changes
    assert change.after is not None
    assert change.after["approval"] is None


def test_a_query_with_changed_text_gets_the_declared_approval() -> None:
    """If a query's text changes, its approval in the document applies."""
    (change,) = plan_changes(
        load_document(PLANT.replace("Telemetry | count", "Telemetry"), "w.yaml"), build_catalog_with_document(DOCUMENT)
    ).changes
    assert change.after is not None
    assert change.after["approval"]["approvedBy"] == "admin@plant-a.example"


def test_a_new_field_with_its_default_is_not_a_change() -> None:
    """A stored item without a newer field equals a declared item with the default of this field."""
    stored = build_catalog_with_document(DOCUMENT)
    items = tuple(
        replace(item, definition={name: value for name, value in item.definition.items() if name != "enabled"})
        for item in stored.items
    )
    assert plan_changes(DOCUMENT, replace(stored, items=items)).is_empty


def test_a_missing_timestamp_format_is_the_default() -> None:
    """A stored connection without a timestamp format has the default; only another format is a change."""
    document = load_document(PLANT.replace('["rig-*"]', '["rig-*"], timestampFormat: epochSeconds'), "w")
    assert document != DOCUMENT
    stored = build_catalog_with_document(DOCUMENT)
    items = tuple(
        replace(
            item, definition={**item.definition, "source": _remove_member(item.definition["source"], "timestampFormat")}
        )
        if item.kind == "connection"
        else item
        for item in stored.items
    )
    assert plan_changes(DOCUMENT, replace(stored, items=items)).is_empty
    [change] = plan_changes(document, replace(stored, items=items)).changes
    assert change.after is not None
    assert change.after["source"]["timestampFormat"] == "epochSeconds"


def _remove_member(members: dict[str, Any], name: str) -> dict[str, Any]:
    assert name in members
    return {key: value for key, value in members.items() if key != name}


def test_document_of_another_workspace_is_rejected() -> None:
    """A document with another workspace id is rejected, because the audit chains depend on the id."""
    other = load_document(PLANT.replace("id: plant-a,", "id: plant-b,"), "w.yaml")
    with pytest.raises(
        WorkspaceError, match=r"^This deployment serves the workspace 'plant-a', but .* 'plant-b'"
    ) as caught:
        plan_changes(other, build_catalog_with_document(DOCUMENT))
    assert caught.value.code == "WORKSPACE_ID_FIXED"
