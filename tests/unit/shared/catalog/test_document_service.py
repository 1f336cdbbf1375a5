"""Tests of planning and applying documents through the API."""

from collections.abc import Collection
from pathlib import Path

import pytest

from shared.auth.rights import AccessRight
from shared.catalog.change_rules import Caller
from shared.catalog.document import DocumentFormat, load_document, load_document_with_positions
from shared.catalog.document_plans import DocumentPlan
from shared.catalog.document_service import DocumentService
from shared.catalog.problems import DocumentError
from shared.conditional_requests import Condition, EntityTags
from shared.errors import WorkspaceError
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.stores import open_catalog_stores

CALLER = Caller("admin@plant-a.example", frozenset(AccessRight))
WITHOUT = PLANT.partition("dataStores:")[0].encode()
"""The document without its data stores."""


def list_changes(planned: DocumentPlan) -> list[tuple[str, str]]:
    """Return kind and key of each change."""
    return [(change.kind, change.key) for change in planned.plan.changes]


async def test_containers_that_exist_are_found_once_per_database(tmp_path: Path) -> None:
    """The plan reads the existing containers once for each database, and its ETag depends on them."""
    containers = {"recipes", "other"}
    asked: list[tuple[str, str]] = []

    async def list_containers(store: str, database: str) -> Collection[str]:
        asked.append((store, database))
        return sorted(containers)

    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(load_document(PLANT, "w.yaml"), "apply")
        service = DocumentService(opened.service, list_containers)
        complete = await service.load(PLANT.encode(), DocumentFormat.YAML)
        assert list_changes(await service.plan(complete, CALLER)) == []
        assert asked == []
        loaded = await service.load(WITHOUT, DocumentFormat.YAML)
        planned = await service.plan(loaded, CALLER)
        assert asked == [("mes", "orders")]
        assert list_changes(planned) == [("container", "orders/workorders")]
        condition = Condition(match=EntityTags(strong=(planned.tag,)))
        containers.add("workorders")
        with pytest.raises(WorkspaceError) as caught:
            await service.apply(loaded, CALLER, condition)
        assert caught.value.code == "PRECONDITION_FAILED"
        containers.clear()
        removed = list_changes(await service.plan(loaded, CALLER))
        assert removed == [("container", "orders/recipes"), ("container", "orders/workorders"), ("dataStore", "mes")]


async def test_only_new_members_cannot_have_reserved_ids(tmp_path: Path) -> None:
    """A document over HTTPS cannot add a member with a reserved id; a stored member keeps such an id."""
    text = PLANT.replace("id: historian", "id: apply")

    async def list_containers(_store: str, _database: str) -> Collection[str]:
        return ()

    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(load_document(PLANT, "w.yaml"), "apply")
        service = DocumentService(opened.service, list_containers)
        with pytest.raises(DocumentError) as caught:
            await service.load(text.encode(), DocumentFormat.YAML)
        assert [(problem.line, problem.field) for problem in caught.value.problems] == [(6, "team[2].id")]
        # An earlier version stored the member without this check.
        await opened.service.apply(
            load_document_with_positions(text, "w.yaml", checks_new_items=False).document, "apply"
        )
        loaded = await service.load(text.encode(), DocumentFormat.YAML)
        assert list_changes(await service.plan(loaded, CALLER)) == []
