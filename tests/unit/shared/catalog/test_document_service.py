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


RULE = """\
alertRules:
  - {lookup: silent, name: S, severity: info, surface: cooling, kind: absence, connections: [rig], after: PT5M,
     every: PT1M}
  - {lookup: hot, name: H, severity: info, surface: cooling, kind: threshold, query: q2, every: PT1M,
     condition: {rows: any}}
"""


async def test_a_new_rule_must_fit_its_query(tmp_path: Path) -> None:
    """A rule that does not fit its query is rejected with its place in the document, before a missing right.

    If the caller may not read queries, the error suggests no name of a parameter.
    """

    async def list_containers(_store: str, _database: str) -> Collection[str]:
        return ()

    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(load_document(PLANT + RULE, "w.yaml"), "apply")
        service = DocumentService(opened.service, list_containers)
        new = RULE.replace("lookup: hot", "lookup: other")
        for text, field, message in (
            (new.replace("query: q2", "query: gone"), "query", "unknown warm query: gone"),
            (
                new.replace("query: q2", "query: q1, parameters: {since: 2026-01-01T00:00:00Z, devise: a}"),
                "parameters.devise",
                "is not a parameter of this query",
            ),
        ):
            loaded = await service.load((PLANT + text).encode(), DocumentFormat.YAML)
            with pytest.raises(DocumentError) as caught:
                await service.plan(loaded, Caller(CALLER.user_id, frozenset()))
            [problem] = caught.value.problems
            assert (problem.field, problem.message) == (f"alertRules[1].{field}", message)
            assert problem.line == len((PLANT + RULE).splitlines()) - 1


async def test_a_document_with_a_stored_rule_over_a_deleted_query_plans_empty(tmp_path: Path) -> None:
    """A stored rule whose query was deleted is no error, so that an exported document always plans empty."""

    async def list_containers(_store: str, _database: str) -> Collection[str]:
        return ()

    async with open_catalog_stores(tmp_path) as opened:
        text = PLANT + RULE.replace("query: q2", "query: gone")
        await opened.service.apply(load_document(text, "w.yaml"), "apply")
        service = DocumentService(opened.service, list_containers)
        planned = await service.plan(await service.load(text.encode(), DocumentFormat.YAML), CALLER)
        assert (list_changes(planned), planned.query_uses) == ([], [])
