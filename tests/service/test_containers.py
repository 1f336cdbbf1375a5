"""Tests of the containers of document databases over HTTP."""

import sqlite3
from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem

ORDERS = "/oi-api/data-stores/orders/containers"
NEW = {"name": "made", "partitionKeyPath": "/line", "dataClass": "operational"}


@pytest.fixture(scope="module")
def changeable_service(own_module_service: Service) -> Service:
    """Return a service that the tests of this module may change."""
    return own_module_service


@pytest.fixture(scope="module")
def admin(changeable_service: Service) -> httpx.Client:
    """Return a client that may manage containers."""
    return changeable_service.create_client("admin@t")


def list_containers(caller: httpx.Client, path: str = ORDERS) -> dict[str, dict[str, Any]]:
    """Return the containers of a database in a dictionary by name."""
    reply = caller.get(path)
    assert reply.status_code == 200, reply.text
    assert [one["name"] for one in reply.json()] == sorted(one["name"] for one in reply.json())
    return {one["name"]: one for one in reply.json()}


def create_undeclared_container(changeable_service: Service, name: str, path: str = "/id") -> None:
    """Create a container in the embedded database account without a declaration, as other programs do."""
    with closing(sqlite3.connect(changeable_service.data_dir / "documents.sqlite")) as connection, connection:
        connection.execute("INSERT INTO containers VALUES ('mes', 'orders', ?, ?)", (name, path))


def list_events(caller: httpx.Client, name: str) -> list[tuple[str, dict[str, Any] | None]]:
    """Return the action and the new state of each audit event about a container, oldest first."""
    reply = caller.get("/oi-api/provenance/events/query", params={"entityType": "Container", "limit": "1000"})
    records = [record for record in reply.json() if record["EntityID"] == f"orders/{name}"]
    return [(record["ActionType"], record.get("AfterState")) for record in reversed(records)]


def test_the_container_list_merges_account_and_declarations(changeable_service: Service, admin: httpx.Client) -> None:
    """The list contains declared containers, undeclared containers, and declarations whose container is missing."""
    assert "planned" in list_containers(admin)
    create_undeclared_container(changeable_service, "scratch", "/x")
    found = list_containers(changeable_service.create_client("viewer@t"))
    path = {"partitionKeyPath": "/line", "dataClass": "operational", "Declared": True, "provisioned": True}
    assert found["workorders"] == {"name": "workorders", **path}
    assert found["scratch"] == {
        "name": "scratch",
        "partitionKeyPath": "/x",
        "dataClass": None,
        "Declared": False,
        "provisioned": True,
    }
    assert (found["planned"]["Declared"], found["planned"]["provisioned"]) == (True, False)
    assert set(list_containers(admin, "/oi-api/data-stores/samples/containers")) == {"results"}
    for lookup in ("mes", "Orders", "nowhere"):
        check_problem(admin.get(f"/oi-api/data-stores/{lookup}/containers"), 404, "DATABASE_NOT_FOUND")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_data_store_in_place_of_a_database_is_rejected(admin: httpx.Client, method: str) -> None:
    """If a request names a data store instead of a database, it is rejected with the list of the store's databases."""
    reply = admin.request(method, "/oi-api/data-stores/mes/containers", json=NEW if method == "POST" else None)
    details = check_problem(reply, 404, "DATABASE_NOT_FOUND")
    assert details["databases"] == ["locked", "orders"]
    assert details["detail"] == (
        "`mes` is a data store; this route requires the lookup of a database. Its databases: locked, orders."
    )
    assert "databases" not in check_problem(
        admin.get("/oi-api/data-stores/nowhere/containers"), 404, "DATABASE_NOT_FOUND"
    )


def test_a_container_is_created_once_and_audited(admin: httpx.Client) -> None:
    """A new container is listed and has one audit event; a second request to create the container is rejected."""
    created = admin.post(ORDERS, json=NEW)
    assert created.status_code == 201, created.text
    assert created.json() == {**NEW, "Declared": True, "provisioned": True}
    assert list_containers(admin)["made"] == created.json()
    [(action, after)] = list_events(admin, "made")
    assert action == "Catalog.Container.Created"
    assert after is not None
    assert (after["partitionKeyPath"], after["expose"]) == ("/line", [])
    check_problem(admin.post(ORDERS, json=NEW), 409, "CONTAINER_EXISTS")
    check_problem(admin.post(ORDERS, json=NEW | {"name": "planned"}), 409, "CONTAINER_EXISTS")
    assert admin.post(ORDERS, json=NEW | {"name": "Made"}).status_code == 201
    check_problem(admin.get("/oi-api/data-stores/mes/databases/orders/tables/made"), 404, "TABLE_NOT_EXPOSED")


def test_undeclared_containers_cannot_be_changed_over_the_api(changeable_service: Service, admin: httpx.Client) -> None:
    """An undeclared container cannot be created, published or deleted through the API."""
    list_containers(admin)
    create_undeclared_container(changeable_service, "foreign")
    check_problem(admin.post(ORDERS, json=NEW | {"name": "foreign"}), 409, "CONTAINER_EXISTS")
    check_problem(admin.get("/oi-api/data-stores/mes/databases/orders/tables/foreign"), 404, "TABLE_NOT_EXPOSED")
    assert "portal" in check_problem(admin.delete(f"{ORDERS}/foreign"), 409, "CONTAINER_NOT_DECLARED")["detail"]
    assert list_events(admin, "foreign") == []


def test_only_declarations_without_container_are_deleted(changeable_service: Service, admin: httpx.Client) -> None:
    """Only a declaration without a container can be deleted; without one, PUT and DELETE with If-Match get 412."""
    assert "portal" in check_problem(admin.delete(f"{ORDERS}/workorders"), 409, "CONTAINER_PROVISIONED")["detail"]
    check_problem(admin.delete(f"{ORDERS}/nothing"), 404, "CONTAINER_NOT_FOUND")
    check_problem(admin.delete("/oi-api/data-stores/nowhere/containers/planned"), 404, "DATABASE_NOT_FOUND")
    check_problem(changeable_service.create_client("editor@t").delete(f"{ORDERS}/planned"), 403, "ACCESS_RIGHT_MISSING")
    stale = {"If-Match": '"stale"'}
    check_problem(admin.delete(f"{ORDERS}/planned", headers=stale), 412, "PRECONDITION_FAILED")
    check_problem(admin.delete(f"{ORDERS}/recipes", headers=stale), 409, "CONTAINER_PROVISIONED")
    assert admin.delete(f"{ORDERS}/planned").status_code == 204
    check_problem(admin.delete(f"{ORDERS}/planned"), 404, "CONTAINER_NOT_FOUND")
    for tag in ("*", '"stale"'):
        for method, body in (("DELETE", None), ("PUT", {"dataClass": "reference"})):
            reply = admin.request(method, f"{ORDERS}/planned", json=body, headers={"If-Match": tag})
            check_problem(reply, 412, "PRECONDITION_FAILED")
    check_problem(admin.put(f"{ORDERS}/planned", json={}), 404, "CONTAINER_NOT_FOUND")
    assert "planned" not in list_containers(admin)
    assert [action for action, _ in list_events(admin, "planned")][-1] == "Catalog.Container.Removed"


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"name": None, "partitionKeyPath": None, "dataClass": None}, ["name", "partitionKeyPath", "dataClass"]),
        ({"name": 5, "partitionKeyPath": [], "dataClass": "secret"}, ["name", "partitionKeyPath", "dataClass"]),
        *(({"name": name}, ["name"]) for name in ("a", "-ab", "a b", "a/b", "x" * 256, "ü1", "ab\n")),
        *(
            ({"partitionKeyPath": path}, ["partitionKeyPath"])
            for path in ("", "/", "a", "/a/", "/a/b/c", "//", "/a\n/")
        ),
        ({"name": "a", "partitionKeyPath": "a"}, ["name", "partitionKeyPath"]),
        ({"name": "a", "partitionKeyPath": "a", "dataClass": "secret"}, ["name", "partitionKeyPath", "dataClass"]),
    ],
)
def test_the_error_about_a_container_lists_every_invalid_field(
    admin: httpx.Client, changes: dict[str, Any], fields: list[str]
) -> None:
    """The reply lists each invalid field of a container definition, and no container is created."""
    body = {name: value for name, value in {**NEW, "name": "bad", **changes}.items() if value is not None}
    assert sorted(check_failing_fields(admin.post(ORDERS, json=body))) == sorted(fields)
    assert "bad" not in list_containers(admin)


def test_a_container_of_data_class_evidence_is_rejected(admin: httpx.Client) -> None:
    """A container of data class evidence is rejected, because evidence belongs in the audit chains."""
    refused = check_problem(
        admin.post(ORDERS, json=NEW | {"name": "proof", "dataClass": "evidence"}), 400, "DATA_CLASS_REFUSED"
    )
    assert "audit chains" in refused["reason"]
    assert "proof" not in list_containers(admin)


def test_listing_and_managing_containers_require_different_rights(changeable_service: Service) -> None:
    """Listing and managing containers require different rights, which are checked before the body."""
    check_problem(changeable_service.create_client("editor@t").post(ORDERS, json={}), 403, "ACCESS_RIGHT_MISSING")
    narrow = changeable_service.create_client("admin@t", scopes="Workspace.DataStore.Manage")
    check_problem(narrow.get(ORDERS), 403, "ACCESS_RIGHT_MISSING")
    check_problem(narrow.post("/oi-api/data-stores/nowhere/containers", json=NEW), 404, "DATABASE_NOT_FOUND")


def test_a_retried_container_request_gets_the_first_reply(admin: httpx.Client) -> None:
    """A retry with the same Idempotency-Key gets the first reply; with another body it is rejected."""
    headers = {"Idempotency-Key": "container-1"}
    first = admin.post(ORDERS, json=NEW | {"name": "once"}, headers=headers)
    again = admin.post(ORDERS, json=NEW | {"name": "once"}, headers=headers)
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    check_problem(admin.post(ORDERS, json=NEW | {"name": "twice"}, headers=headers), 422, "IDEMPOTENCY_KEY_REUSED")
    assert len(list_events(admin, "once")) == 1
