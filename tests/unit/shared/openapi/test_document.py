"""Tests of the OpenAPI document that a caller receives."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from functions import GROUPS
from shared.auth.principals import ANONYMOUS, CredentialKind, CredentialRestriction, Principal
from shared.auth.rights import AccessRight
from shared.auth.telemetry_binding import TelemetryBinding
from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.http.messages import Reply
from shared.http.operations import Access, Call, Group, Operation
from shared.openapi.document import (
    ACCEPT,
    EXECUTE,
    PathItems,
    build_openapi_document,
    build_openapi_document_for_caller,
    is_usable_by_caller,
)
from shared.openapi.schemas import SchemaRegistry
from tests.unit.shared.telemetry.fakes import build_connection

READ = AccessRight.CATALOG_READ
ALL_RESTRICTIONS = frozenset(CredentialRestriction)
CALLER = Principal("ann", "ann", "Ann", frozenset({READ}), CredentialKind.JWT, "t1", None)


async def handle(_: Call[Any, Any]) -> Reply:
    """Do nothing."""
    return Reply()


def build_operation(route: str = "oi-api/test", method: str = "GET", **options: Any) -> Operation:
    """Return an operation for a test, with a default route and method."""
    group = Group("test")
    group.endpoint(method, route, **options)(handle)
    return group.operations[0]


@pytest.mark.parametrize(
    ("options", "caller", "features", "expected"),
    [
        ({"access": Access.PUBLIC}, ANONYMOUS, [], True),
        ({}, ANONYMOUS, [], False),
        ({"right": READ}, CALLER, [], True),
        ({"right": AccessRight.KEYS_MANAGE}, CALLER, [], False),
        ({"right": READ, "further_rights": (AccessRight.KEYS_MANAGE,)}, CALLER, [], False),
        ({}, replace(CALLER, via=CredentialKind.API_KEY), [], False),
        ({"access": Access.KEYS}, replace(CALLER, via=CredentialKind.API_KEY), [], True),
        ({"requires_user": True}, replace(CALLER, identity=None), [], False),
        ({"rejects": ALL_RESTRICTIONS}, CALLER, [], True),
        ({"rejects": ALL_RESTRICTIONS}, replace(CALLER, client_id="dashboard"), [], False),
        ({"rejects": ALL_RESTRICTIONS}, replace(CALLER, binding=TelemetryBinding(("press",))), [], False),
        ({"rejects": frozenset({CredentialRestriction.BOUND})}, replace(CALLER, client_id="dashboard"), [], True),
        ({"feature": "provenance"}, CALLER, [], False),
        ({"feature": "provenance"}, CALLER, ["provenance"], True),
        ({"feature": "provenance", "access": Access.PUBLIC}, CALLER, [], False),
    ],
)
def test_a_caller_sees_permitted_operations(
    options: dict[str, Any], caller: Principal, features: Collection[str], *, expected: bool
) -> None:
    """The document contains only operations that the caller's credential, rights, identity and features allow."""
    assert is_usable_by_caller(build_operation(**options), caller, features) is expected


def test_the_document_has_the_tags_and_responses_of_its_operations() -> None:
    """The document has the tags and responses that its operations use, and the service's URL."""
    operations = [build_operation("oi-api/b"), build_operation("oi-api/a"), build_operation("oi-api/a", "DELETE")]
    document = build_openapi_document(operations, "Title", "", [], SchemaRegistry(), server="https://plant.example")
    assert list(document["paths"]) == ["/oi-api/a", "/oi-api/b"]
    assert set(document["paths"]["/oi-api/a"]) == {"get", "delete"}
    assert (document["servers"][0]["url"], document["info"]["title"]) == ("https://plant.example", "Title")
    assert [tag["name"] for tag in document["tags"]] == ["test"]
    assert "Problem" in document["components"]["schemas"]
    assert "webhooks" not in document


def test_openapi_path_items_are_converted_one_by_one() -> None:
    """Path items are converted one by one and stored only in converted form, to limit memory."""
    items = PathItems(",".join)
    items.add_path_item("/a", {"get": {"tags": ["x"]}, "put": {"tags": ["y"]}})
    items.add_path_item("/b", {"get": {"tags": ["x"]}})
    assert (items.converted, items.tags) == ({"/a": "get,put", "/b": "get"}, {"x", "y"})


AT = datetime(2026, 1, 5, tzinfo=UTC)
SIGNAL = {"name": "pressure", "pointer": "/p", "type": "real"}
APPROVAL = {"approvedBy": "admin@x", "approvedAt": AT}
GENERAL = [operation for group in GROUPS for operation in group.operations if operation.name in {ACCEPT, EXECUTE}]


def build_approved_query(lookup: str) -> WarmQuery:
    """Return an approved query."""
    query = {"lookup": lookup, "name": lookup, "surface": "hall", "kql": "Telemetry", "approval": APPROVAL}
    return WarmQuery.model_validate(query)


def build_catalog(*lookups: str) -> Catalog:
    """Return a catalog with a query and a connection of each lookup."""
    return Catalog(
        queries={each: CatalogEntry(build_approved_query(each), AT, AT, "e") for each in lookups},
        connections={each: CatalogEntry(build_connection(each, signals=[SIGNAL]), AT, AT, "e") for each in lookups},
    )


def list_operation_ids(caller: Principal, catalog: Catalog) -> dict[str, str]:
    """Return the operation ids in a caller's document by path."""
    paths = build_openapi_document_for_caller(GENERAL, caller, (), catalog, {})["paths"]
    return {path: operation["operationId"] for path, item in paths.items() for operation in item.values()}


def test_operation_ids_of_similar_lookups_differ() -> None:
    """Queries and connections whose lookups differ only in hyphens and underscores have different operation ids."""
    caller = replace(CALLER, rights=frozenset(AccessRight))
    ids = list_operation_ids(caller, build_catalog("x-y", "x_y", "z-1"))
    assert len(set(ids.values())) == len(ids)
    assert ids["/oi-api/warm-queries/x-y"] == "warmQuery_x_y"
    assert ids["/oi-api/warm-queries/z-1"] == "warmQuery_z_1"
    assert ids["/oi-api/telemetry/x-y"] == "telemetry_x_y"
    assert ids["/oi-api/telemetry/z-1"] == "telemetry_z_1"


def test_operation_ids_are_the_same_for_every_caller() -> None:
    """The operation id of a connection does not depend on the connections that the caller can use."""
    caller, catalog = replace(CALLER, rights=frozenset(AccessRight)), build_catalog("x-y", "x_y")
    bound = replace(caller, binding=TelemetryBinding(("x_y",)))
    path = "/oi-api/telemetry/x_y"
    assert list_operation_ids(bound, catalog)[path] == list_operation_ids(caller, catalog)[path]


def test_an_approval_does_not_change_other_operation_ids() -> None:
    """The operation id of a query does not depend on the approval of an older query with a similar lookup."""
    approved = build_catalog("x-y", "x_y")
    older = approved.queries["x-y"]
    draft = replace(older, value=older.value.model_copy(update={"approval": None}))
    with_draft = replace(approved, queries={**approved.queries, "x-y": draft})
    caller, path = replace(CALLER, rights=frozenset(AccessRight)), "/oi-api/warm-queries/x_y"
    assert list_operation_ids(caller, with_draft)[path] == list_operation_ids(caller, approved)[path]
