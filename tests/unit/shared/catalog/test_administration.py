"""Tests of concurrent changes of single catalog items, and of the order of the checks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shared.auth.rights import AccessRight
from shared.catalog.administration import NOT_FOUND, Administration, find_item
from shared.catalog.alert_rule_models import AlertRule
from shared.catalog.change_rules import Caller
from shared.catalog.diff import CatalogPlan, ItemChange
from shared.catalog.document import load_document
from shared.catalog.etags import compute_definition_etag
from shared.catalog.items import ItemKind
from shared.catalog.models import Connection, Member, Model, Surface
from shared.catalog.ports import StoredCatalog
from shared.catalog.service import CommittedPlan
from shared.conditional_requests import UNCONDITIONAL, condition_from_headers
from shared.errors import WorkspaceError
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.stores import CatalogStores, open_catalog_stores

FIRST, SECOND = "admin@plant-a.example", "second@plant-a.example"
TWO_ADMINISTRATORS = PLANT.replace(
    "team:\n", f"team:\n  - {{id: {SECOND}, name: Second, role: Admin}}\n"
)  # fmt: skip


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[list[CatalogStores]]:
    """Yield the stores of two processes for a workspace with two administrators."""
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(open_catalog_stores(tmp_path)) for _ in range(2)]
        await opened[0].service.apply(load_document(TWO_ADMINISTRATORS, "w.yaml"), "apply")
        yield opened


def build_caller(user: str = FIRST) -> Caller:
    """Return an administrator."""
    return Caller(user, frozenset(AccessRight))


def build_viewer(member_id: str) -> Any:
    """Return a function that, for any stored catalog, returns a member with the role Viewer."""
    return lambda _: Member.model_validate({"id": member_id, "name": member_id, "role": "Viewer"})


def _return_model(model: Model, _stored: object) -> Model:
    return model


async def get_error_code(call: Any) -> str:
    """Return the error code of a change, or an empty text if it succeeds."""
    try:
        await call
    except WorkspaceError as error:
        return error.code
    return ""


async def test_two_administrators_cannot_demote_each_other(processes: list[CatalogStores]) -> None:
    """If two administrators demote each other at once in two processes, one change is rejected."""
    one, two = (Administration(each.service) for each in processes)
    codes = await asyncio.gather(
        get_error_code(one.put(build_caller(FIRST), ItemKind.MEMBER, SECOND, build_viewer(SECOND), UNCONDITIONAL)),
        get_error_code(two.put(build_caller(SECOND), ItemKind.MEMBER, FIRST, build_viewer(FIRST), UNCONDITIONAL)),
    )
    assert sorted(codes) == ["", "ACCESS_RIGHT_MISSING"]


async def test_a_removed_item_is_missing_for_a_concurrent_change(processes: list[CatalogStores]) -> None:
    """If an item is removed twice at once, one removal succeeds and the other reports a missing item."""
    administrations = [Administration(each.service) for each in processes]
    codes = await asyncio.gather(
        *(get_error_code(one.delete(build_caller(), ItemKind.MEMBER, SECOND, UNCONDITIONAL)) for one in administrations)
    )
    assert sorted(codes) == ["", "MEMBER_NOT_FOUND"]


async def test_broken_rules_are_reported_before_unmet_conditions(processes: list[CatalogStores]) -> None:
    """A broken rule is reported before an unmet If-Match condition; for a missing item, each If-Match is unmet."""
    administration = Administration(processes[0].service)
    stale = condition_from_headers('"stale"', None)
    used = administration.delete(build_caller(), ItemKind.SURFACE, "cooling", stale)
    assert await get_error_code(used) == "SURFACE_IN_USE"
    without = Caller(FIRST, frozenset(AccessRight) - {AccessRight.CATALOG_MANAGE})
    assert (
        await get_error_code(administration.delete(without, ItemKind.SURFACE, "cooling", stale))
        == "ACCESS_RIGHT_MISSING"
    )
    assert (
        await get_error_code(administration.delete(build_caller(), ItemKind.SURFACE, "none", stale))
        == "PRECONDITION_FAILED"
    )
    assert await get_error_code(administration.delete(build_caller(), ItemKind.SURFACE, "none", UNCONDITIONAL)) == (
        "SURFACE_NOT_FOUND"
    )


async def test_an_equal_definition_changes_nothing(processes: list[CatalogStores]) -> None:
    """A PUT of the stored definition creates no version and no event, and does not change the last editor."""
    administration = Administration(processes[0].service)
    stored = await administration.find(ItemKind.SURFACE, "cooling")
    assert stored is not None
    surface = Surface.model_validate(stored.definition)
    before, events = await processes[0].store.load(), await processes[0].list_audited_changes()
    matching = condition_from_headers(compute_definition_etag(stored.definition), None)
    replaced = await administration.put(build_caller(), ItemKind.SURFACE, "cooling", lambda _: surface, matching)
    assert (replaced.item, replaced.is_new) == (stored, False)
    assert (await processes[0].store.load(), await processes[0].list_audited_changes()) == (before, events)


async def test_a_put_from_a_number_to_a_boolean_is_a_change(processes: list[CatalogStores]) -> None:
    """A PUT of an alert rule that only changes a parameter from 1 to true is stored; Python calls these equal."""
    administration = Administration(processes[0].service)
    rule: dict[str, Any] = {"lookup": "r", "name": "R", "severity": "info", "kind": "threshold", "query": "q1"}
    rule |= {"surface": "cooling", "condition": {"rows": "any"}, "every": "PT1M"}
    values: list[object] = []
    for value in (1, True):
        model = AlertRule.model_validate({**rule, "parameters": {"p": value}})
        build_model = partial(_return_model, model)
        stored = await administration.put(build_caller(), ItemKind.ALERT_RULE, "r", build_model, UNCONDITIONAL)
        values.append(stored.item.definition["parameters"]["p"])
    assert [str(value) for value in values] == ["1", "True"]


async def test_a_definition_without_newer_fields_equals_the_defaults(
    processes: list[CatalogStores], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored definition that lacks newer fields equals a definition in which these fields have their defaults."""
    service = processes[0].service
    catalog = await service.load()
    stored = find_item(catalog, ItemKind.CONNECTION, "rig")
    assert stored is not None
    connection = Connection.model_validate(stored.definition)
    del stored.definition["signals"]
    plans: list[Sequence[ItemChange]] = []

    async def change_items(decide: Callable[[StoredCatalog], Sequence[ItemChange]], actor: str) -> CommittedPlan:
        plans.append(decide(catalog))
        return CommittedPlan(CatalogPlan(()), catalog)

    monkeypatch.setattr(service, "commit_api_changes", change_items)
    await Administration(service).put(build_caller(), ItemKind.CONNECTION, "rig", lambda _: connection, UNCONDITIONAL)
    assert plans == [[]]


@pytest.mark.parametrize("kind", NOT_FOUND)
def test_a_not_found_error_contains_the_requested_id(kind: ItemKind) -> None:
    """A not-found error contains the requested lookup (id in URLs), cut to 64 characters."""
    assert "'pump'" in NOT_FOUND[kind]("pump").detail
    assert f"'{'x' * 64}'" in NOT_FOUND[kind]("x" * 65).detail
