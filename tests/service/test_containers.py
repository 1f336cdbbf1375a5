"""Containers of document-store databases over HTTP."""

import sqlite3
from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem

ORDERS = "/oi-api/data-stores/orders/containers"
NEW = {"name": "made", "partitionKeyPath": "/line", "dataClass": "operational"}


@pytest.fixture(scope="module")
def plant(own_module_service: Service) -> Service:
    """A service that this module may change."""
    return own_module_service


@pytest.fixture(scope="module")
def admin(plant: Service) -> httpx.Client:
    """A caller that may manage containers."""
    return plant.caller("admin@t")


def listed(caller: httpx.Client, path: str = ORDERS) -> dict[str, dict[str, Any]]:
    """Return the containers of a database by name."""
    reply = caller.get(path)
    assert reply.status_code == 200, reply.text
    assert [one["name"] for one in reply.json()] == sorted(one["name"] for one in reply.json())
    return {one["name"]: one for one in reply.json()}


def by_others(plant: Service, name: str, path: str = "/id") -> None:
    """Create a container in the embedded account, past the workspace."""
    with closing(sqlite3.connect(plant.data_dir / "documents.sqlite")) as connection, connection:
        connection.execute("INSERT INTO containers VALUES ('mes', 'orders', ?, ?)", (name, path))


def events(caller: httpx.Client, name: str) -> list[tuple[str, dict[str, Any] | None]]:
    """Return the audit events about a container, oldest first: what was done, and the record after it."""
    reply = caller.get("/oi-api/provenance/events/query", params={"entityType": "Container", "limit": "1000"})
    records = [record for record in reply.json() if record["EntityID"] == f"orders/{name}"]
    return [(record["ActionType"], record.get("AfterState")) for record in reversed(records)]


def test_the_list_merges_account_and_records(plant: Service, admin: httpx.Client) -> None:
    """Containers with a record, containers of others, and records without a container stand in one list."""
    assert "planned" in listed(admin)
    by_others(plant, "scratch", "/x")
    found = listed(plant.caller("viewer@t"))
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
    assert set(listed(admin, "/oi-api/data-stores/samples/containers")) == {"results"}
    for lookup in ("mes", "Orders", "nowhere"):
        check_problem(admin.get(f"/oi-api/data-stores/{lookup}/containers"), 404, "DATABASE_NOT_FOUND")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_store_is_not_a_database(admin: httpx.Client, method: str) -> None:
    """The lookup of a data store where a database belongs is refused with the databases of that store."""
    reply = admin.request(method, "/oi-api/data-stores/mes/containers", json=NEW if method == "POST" else None)
    told = check_problem(reply, 404, "DATABASE_NOT_FOUND")
    assert told["databases"] == ["locked", "orders"]
    assert told["detail"] == (
        "`mes` is a data store, and this route takes the lookup of a database. Its databases: locked, orders."
    )
    assert "databases" not in check_problem(
        admin.get("/oi-api/data-stores/nowhere/containers"), 404, "DATABASE_NOT_FOUND"
    )


def test_a_container_is_made_once_and_audited(admin: httpx.Client) -> None:
    """A new container answers as the list shows it, is one audit event, and cannot be made again."""
    made = admin.post(ORDERS, json=NEW)
    assert made.status_code == 201, made.text
    assert made.json() == {**NEW, "Declared": True, "provisioned": True}
    assert listed(admin)["made"] == made.json()
    [(action, after)] = events(admin, "made")
    assert action == "Catalog.Container.Created"
    assert after is not None
    assert (after["partitionKeyPath"], after["expose"]) == ("/line", [])
    check_problem(admin.post(ORDERS, json=NEW), 409, "CONTAINER_EXISTS")
    check_problem(admin.post(ORDERS, json=NEW | {"name": "planned"}), 409, "CONTAINER_EXISTS")
    assert admin.post(ORDERS, json=NEW | {"name": "Made"}).status_code == 201
    check_problem(admin.get("/oi-api/data-stores/mes/databases/orders/tables/made"), 404, "TABLE_NOT_EXPOSED")


def test_what_others_made_is_taken_and_stays(plant: Service, admin: httpx.Client) -> None:
    """A container without a record keeps its name, publishes nothing and is not deleted here."""
    listed(admin)
    by_others(plant, "foreign")
    check_problem(admin.post(ORDERS, json=NEW | {"name": "foreign"}), 409, "CONTAINER_EXISTS")
    check_problem(admin.get("/oi-api/data-stores/mes/databases/orders/tables/foreign"), 404, "TABLE_NOT_EXPOSED")
    assert "portal" in check_problem(admin.delete(f"{ORDERS}/foreign"), 409, "CONTAINER_NOT_DECLARED")["detail"]
    assert events(admin, "foreign") == []


def test_records_go_only_without_their_container(plant: Service, admin: httpx.Client) -> None:
    """A record without a container is removed, audited; one with a container says where to delete that."""
    assert "portal" in check_problem(admin.delete(f"{ORDERS}/workorders"), 409, "CONTAINER_PROVISIONED")["detail"]
    check_problem(admin.delete(f"{ORDERS}/nothing"), 404, "CONTAINER_NOT_FOUND")
    check_problem(admin.delete("/oi-api/data-stores/nowhere/containers/planned"), 404, "DATABASE_NOT_FOUND")
    check_problem(plant.caller("editor@t").delete(f"{ORDERS}/planned"), 403, "ACCESS_RIGHT_MISSING")
    assert admin.delete(f"{ORDERS}/planned").status_code == 204
    check_problem(admin.delete(f"{ORDERS}/planned"), 404, "CONTAINER_NOT_FOUND")
    assert "planned" not in listed(admin)
    assert [action for action, _ in events(admin, "planned")][-1] == "Catalog.Container.Removed"


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
def test_bad_containers_name_every_field(admin: httpx.Client, changes: dict[str, Any], fields: list[str]) -> None:
    """Each broken rule names its field, and nothing is made."""
    body = {name: value for name, value in {**NEW, "name": "bad", **changes}.items() if value is not None}
    assert sorted(check_failing_fields(admin.post(ORDERS, json=body))) == sorted(fields)
    assert "bad" not in listed(admin)


def test_evidence_is_refused_with_the_reason(admin: httpx.Client) -> None:
    """Evidence belongs in the audit chains, and the refusal says so."""
    refused = check_problem(
        admin.post(ORDERS, json=NEW | {"name": "proof", "dataClass": "evidence"}), 400, "DATA_CLASS_REFUSED"
    )
    assert "audit chains" in refused["reason"]
    assert "proof" not in listed(admin)


def test_managing_needs_its_rights(plant: Service) -> None:
    """Listing and managing are two rights, and validation comes after them."""
    check_problem(plant.caller("editor@t").post(ORDERS, json={}), 403, "ACCESS_RIGHT_MISSING")
    narrow = plant.caller("admin@t", scopes="Workspace.DataStore.Manage")
    check_problem(narrow.get(ORDERS), 403, "ACCESS_RIGHT_MISSING")
    check_problem(narrow.post("/oi-api/data-stores/nowhere/containers", json=NEW), 404, "DATABASE_NOT_FOUND")


def test_a_repeat_under_its_key_is_answered_again(admin: httpx.Client) -> None:
    """The same Idempotency-Key gives the first answer; with another body it is refused."""
    headers = {"Idempotency-Key": "container-1"}
    first = admin.post(ORDERS, json=NEW | {"name": "once"}, headers=headers)
    again = admin.post(ORDERS, json=NEW | {"name": "once"}, headers=headers)
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    check_problem(admin.post(ORDERS, json=NEW | {"name": "twice"}, headers=headers), 422, "IDEMPOTENCY_KEY_REUSED")
    assert len(events(admin, "once")) == 1
