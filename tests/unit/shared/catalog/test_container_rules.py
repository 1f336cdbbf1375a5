"""Tests of rules for changes of declared containers."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.catalog.container_rules import check_partition_key_paths_unchanged, iterate_data_classes_changed_to_evidence
from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind
from shared.catalog.models import WorkspaceDocument
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.errors import Kind, WorkspaceError

AT = datetime(2026, 1, 1, tzinfo=UTC)
CONTAINER = {"name": "orders", "partitionKeyPath": "/line", "dataClass": "operational"}


def build_catalog_with_container(data_class: str) -> StoredCatalog:
    """Return a catalog with one container of the given data class."""
    definition = {**CONTAINER, "dataClass": data_class}
    return StoredCatalog(1, (CatalogItem("container", "db/orders", definition, ItemOrigin.API, AT, AT, "admin@p"),))


def build_document(*names: str) -> WorkspaceDocument:
    """Return a document that declares evidence containers with the given names."""
    containers: list[dict[str, Any]] = [{**CONTAINER, "name": name, "dataClass": "evidence"} for name in names]
    stores = [{"lookup": "mes", "databases": [{"lookup": "db", "containers": containers}]}]
    return WorkspaceDocument.model_validate({"workspace": {"id": "p", "name": "P"}, "dataStores": stores})


def test_a_changed_partition_key_path_is_rejected() -> None:
    """An existing container must keep its partition key path; a new container may have any path."""
    changed = ItemChange(ItemKind.CONTAINER, "db/orders", CONTAINER, {**CONTAINER, "partitionKeyPath": "/id"})
    with pytest.raises(WorkspaceError) as caught:
        check_partition_key_paths_unchanged([changed])
    assert (caught.value.kind, caught.value.code) == (Kind.CONFLICT, "PARTITION_KEY_IMMUTABLE")
    assert "/line" in caught.value.detail
    for before, after in ((CONTAINER, {**CONTAINER, "expose": ["list"]}), (None, CONTAINER), (CONTAINER, None)):
        check_partition_key_paths_unchanged([ItemChange(ItemKind.CONTAINER, "db/orders", before, after)])


def test_only_new_or_changed_evidence_containers_are_found() -> None:
    """Of the evidence containers of a document, only those are found that are new or did not hold evidence before."""
    [path] = iterate_data_classes_changed_to_evidence(
        build_document("orders", "fresh"), build_catalog_with_container("evidence")
    )
    assert path == ("dataStores", 0, "databases", 0, "containers", 1, "dataClass")
    assert (
        len(
            list(
                iterate_data_classes_changed_to_evidence(
                    build_document("orders"), build_catalog_with_container("operational")
                )
            )
        )
        == 1
    )
