"""Conversion of the stored catalog to a workspace document."""

from collections.abc import Mapping
from typing import Any, Final

from shared.catalog.diff import build_definition_with_defaults
from shared.catalog.items import SINGLETON_KEY, ItemKind
from shared.catalog.ports import CatalogItem, StoredCatalog
from shared.errors import Kind, WorkspaceError

SECTIONS: Final[Mapping[str, str]] = {
    ItemKind.MEMBER: "team",
    ItemKind.CONNECTION: "connections",
    ItemKind.SURFACE: "surfaces",
    ItemKind.WARM_QUERY: "warmQueries",
    ItemKind.DATA_STORE: "dataStores",
    ItemKind.ALERT_RULE: "alertRules",
    ItemKind.OAUTH_CLIENT: "oauthClients",
}
"""Names of a workspace document's lists by the kind of their items; containers are part of their data stores."""


def export_document(stored: StoredCatalog) -> dict[str, Any]:
    """Build the workspace document that declares the whole catalog, including the items that the API created.

    Applying the document to the same catalog changes nothing.

    Raises:
        WorkspaceError: UNAVAILABLE ``WORKSPACE_NOT_DECLARED`` if no document was applied yet.
    """
    singles = {item.kind: build_definition_with_defaults(item) for item in stored.items if item.key == SINGLETON_KEY}
    if ItemKind.WORKSPACE not in singles:
        detail = "No workspace document has been applied yet."
        raise WorkspaceError(Kind.UNAVAILABLE, "WORKSPACE_NOT_DECLARED", detail)
    document: dict[str, Any] = {"workspace": singles[ItemKind.WORKSPACE], **_export_settings(singles)}
    document |= {section: [] for section in SECTIONS.values()}
    for item in stored.items:
        if item.kind in SECTIONS:
            document[SECTIONS[item.kind]].append(_export_item(item))
    _add_stored_containers_to_data_stores(document["dataStores"], stored)
    return document


def _export_settings(single_items: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    settings = single_items.get(ItemKind.SETTINGS, {})
    # Without limits or a provenance policy, a document omits the property.
    exported = {name: value for name, value in settings.items() if value is not None}
    if "policies" in exported:
        exported["policies"] = {name: value for name, value in exported["policies"].items() if value is not None}
    return exported


def _export_item(item: CatalogItem) -> dict[str, Any]:
    # A document cannot declare a rejection.
    definition = {name: value for name, value in build_definition_with_defaults(item).items() if name != "rejection"}
    source = definition.get("source") if item.kind == ItemKind.CONNECTION else None
    if isinstance(source, dict) and source.get("eventHub") is None:
        # A document may name the consumer group only with an Event Hub.
        return {**definition, "source": {name: value for name, value in source.items() if name != "consumerGroup"}}
    return definition


def _add_stored_containers_to_data_stores(data_stores: list[dict[str, Any]], stored: StoredCatalog) -> None:
    by_database: dict[str, list[dict[str, Any]]] = {}
    for item in stored.items:
        if item.kind == ItemKind.CONTAINER:
            by_database.setdefault(item.key.partition("/")[0], []).append(build_definition_with_defaults(item))
    for data_store in data_stores:
        data_store["databases"] = [
            {**database, "containers": by_database.get(database["lookup"], [])} for database in data_store["databases"]
        ]
