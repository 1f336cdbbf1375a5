"""Tests of the list of all audit chains and of pending amendments in all scopes, over HTTP."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_failing_fields, wait_until
from tests.service.test_amendments import approve_amendment, create_amendment, reject_amendment

SCOPES, PENDING, EVENTS = "/oi-api/provenance/scopes", "/oi-api/provenance/pending", "/oi-api/provenance/events"


def list_all_items(client: httpx.Client, address: str, member: str, **query: Any) -> list[dict[str, Any]]:
    """Return the items of all pages of a list."""
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        reply = client.get(address, params=query | ({"cursor": cursor} if cursor else {}))
        assert reply.status_code == 200, reply.text
        assert set(reply.json()) == {member, "cursor"}
        items += reply.json()[member]
        cursor = reply.json()["cursor"]
        if cursor is None:
            return items


def find_chain_entry(client: httpx.Client, target: str, scope: str | None) -> dict[str, Any]:
    """Return the entry of a chain in the list of scopes."""
    rows = list_all_items(client, SCOPES, "scopes", target=target)
    return next(row for row in rows if row["scopeKey"] == scope)


def test_listed_scopes_have_the_counts_of_their_chains(service: Service) -> None:
    """Each entry of the list has the counts, times and checkpoint of its chain.

    Chains of the workspace have no scope.
    """
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    scope = "overview/ü 1"
    event = {"ScopeKey": scope, "ActionType": "A", "EntityType": "T", "EntityID": "1"}
    written = [editor.post(EVENTS, json=event).json() for _ in range(3)]
    created = [create_amendment(editor, scope).json() for _ in range(3)]
    assert approve_amendment(admin, scope, created[0]["RecordID"]).status_code == 200
    decided = reject_amendment(admin, scope, created[1]["RecordID"]).json()
    row = wait_until(
        lambda: find_chain_entry(admin, "DomainEvents", scope), lambda row: row["checkpointSize"] == 3, seconds=60
    )
    assert row == {
        "scopeKey": scope,
        "target": "DomainEvents",
        "records": 3,
        "firstAt": written[0]["Timestamp"],
        "lastAt": written[2]["Timestamp"],
        "lastRecordID": "000000000003",
        "checkpointSize": 3,
        "pendingAmendments": 0,
        "lastVerifiedAt": None,
        "lastVerdict": None,
    }
    row = find_chain_entry(admin, "DomainAmendments", scope)
    assert (row["records"], row["pendingAmendments"], row["lastAt"]) == (5, 1, decided["RejectedAt"])
    assert find_chain_entry(admin, "PlatformConfig", None)["records"] > 0


def test_scopes_are_listed_in_pages(service: Service) -> None:
    """All pages of the list together contain each chain once, for any page size, and a viewer may read the list."""
    viewer = service.create_client("viewer@t")
    create_amendment(service.create_client("editor@t"), "overview-page")
    names = [(row["target"], row["scopeKey"]) for row in list_all_items(viewer, SCOPES, "scopes")]
    assert len(set(names)) == len(names) >= 2
    assert [(row["target"], row["scopeKey"]) for row in list_all_items(viewer, SCOPES, "scopes", limit=1)] == names


def test_pending_amendments_of_all_scopes_are_listed(service: Service) -> None:
    """The list contains the pending amendments of all scopes, oldest first, and no decided amendment."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    created = [create_amendment(editor, f"overview-pending-{number % 2}").json() for number in range(4)]
    mine = {one["ScopeKey"] for one in created}

    def list_own_amendments(**query: Any) -> list[dict[str, Any]]:
        return [one for one in list_all_items(admin, PENDING, "amendments", **query) if one["ScopeKey"] in mine]

    assert list_own_amendments() == list_own_amendments(limit=1) == created
    assert approve_amendment(admin, created[1]["ScopeKey"], created[1]["RecordID"]).status_code == 200
    assert list_own_amendments() == [created[0], *created[2:]]


@pytest.mark.parametrize("address", [SCOPES, PENDING])
def test_invalid_parameters_of_audit_lists_are_rejected(service: Service, address: str) -> None:
    """An invalid limit, cursor or target, or an unknown parameter, is rejected with 400 and the field's name."""
    admin = service.create_client("admin@t")
    for field, value in (
        ("limit", "0"),
        ("limit", "1001"),
        ("limit", "x"),
        ("cursor", "x"),
        ("cursor", ""),
        ("x", "1"),
    ):
        assert check_failing_fields(admin.get(address, params={field: value})) == [field]
    other = admin.get(SCOPES if address == PENDING else PENDING, params={"limit": "1"}).json()["cursor"]
    if other is not None:
        assert check_failing_fields(admin.get(address, params={"cursor": other})) == ["cursor"]


def test_an_unknown_audit_target_is_rejected(service: Service) -> None:
    """An unknown target is rejected with its own error code; so is a cursor that belongs to another target's list."""
    admin = service.create_client("admin@t")
    assert check_failing_fields(admin.get(SCOPES, params={"target": "x"}), code="TARGET_UNKNOWN") == ["target"]
    cursor = admin.get(SCOPES, params={"limit": "1"}).json()["cursor"]
    reply = admin.get(SCOPES, params={"cursor": cursor, "target": "DomainEvents"})
    assert check_failing_fields(reply) == ["cursor"]
    reply = admin.get(SCOPES, params={"cursor": "x", "target": "x", "verdict": "x"})
    assert check_failing_fields(reply, code="INVALID_REQUEST") == ["verdict", "target", "cursor"]


@pytest.fixture
def verifying_service(tmp_path: Path) -> Iterator[Service]:
    """Return a stopped service that verifies all chains with new records every second once it runs."""
    own = Service(tmp_path / "data", WORKSPACE, {"VERIFY_SCHEDULE": "*/1 * * * * *"})
    yield own
    own.stop()


def test_chains_are_verified_in_the_background(verifying_service: Service) -> None:
    """The background verification marks a chain as valid.

    After a restart it finds a record that was changed in the file, and marks the chain as broken.
    """
    admin = verifying_service.start().create_client("admin@t")
    event = {"ScopeKey": "verified", "ActionType": "A", "EntityType": "T", "EntityID": "1"}
    for _ in range(3):
        assert admin.post(EVENTS, json=event).status_code == 201
    before = wait_until(
        lambda: find_chain_entry(admin, "DomainEvents", "verified"), lambda row: row["lastVerdict"] == "valid"
    )
    verifying_service.kill()
    with closing(sqlite3.connect(verifying_service.data_dir / "provenance.sqlite")) as file, file:
        changed = file.execute("UPDATE records SET entity_id = 'x' WHERE entity_id = '1' AND sequence = 2").rowcount
    assert changed == 1
    admin = verifying_service.start().create_client("admin@t")
    assert find_chain_entry(admin, "DomainEvents", "verified")["lastVerdict"] == "valid"
    assert admin.post(EVENTS, json=event).status_code == 201
    after = wait_until(
        lambda: find_chain_entry(admin, "DomainEvents", "verified"), lambda row: row["lastVerdict"] == "broken"
    )
    assert after["lastVerifiedAt"] > before["lastVerifiedAt"]
    assert [row["scopeKey"] for row in list_all_items(admin, SCOPES, "scopes", verdict="broken")] == ["verified"]


def test_a_deleted_chain_with_a_checkpoint_is_listed_as_broken(tmp_path: Path) -> None:
    """If all rows of a chain are deleted, its checkpoint makes the background verification list it as broken."""
    schedules = {"VERIFY_SCHEDULE": "*/1 * * * * *", "CHECKPOINT_SCHEDULE": "*/1 * * * * *"}
    own = Service(tmp_path / "data", WORKSPACE, schedules)
    try:
        admin = own.start().create_client("admin@t")
        event = {"ScopeKey": "deleted/ü", "ActionType": "A", "EntityType": "T", "EntityID": "1"}
        assert admin.post(EVENTS, json=event).status_code == 201
        wait_until(lambda: find_chain_entry(admin, "DomainEvents", "deleted/ü"), lambda row: row["checkpointSize"] == 1)
        own.kill()
        with closing(sqlite3.connect(own.data_dir / "provenance.sqlite")) as file, file:
            sql = "SELECT chain FROM chains WHERE scope = 'deleted/ü'"
            [[chain]] = file.execute(sql).fetchall()
            for table in ("records", "chain_summaries", "chains"):
                file.execute(f"DELETE FROM {table} WHERE chain = ?", (chain,))
        admin = own.start().create_client("admin@t")
        [row] = wait_until(lambda: list_all_items(admin, SCOPES, "scopes", verdict="broken"), bool)
    finally:
        own.stop()
    assert (row["scopeKey"], row["records"], row["checkpointSize"], row["firstAt"]) == ("deleted/ü", 0, 1, None)
    assert row["lastRecordID"] is None


def test_a_requested_verification_is_shown_in_the_list(service: Service) -> None:
    """After a client verifies a complete chain, the list of scopes shows the result of this verification."""
    editor = service.create_client("editor@t")
    event = {"ScopeKey": "verified-now", "ActionType": "A", "EntityType": "E", "EntityID": "1"}
    assert editor.post("/oi-api/provenance/events", json=event).status_code == 201
    assert editor.post("/oi-api/provenance/events/verify", json={"ScopeKey": "verified-now"}).json()["ChainValid"]
    scopes = editor.get("/oi-api/provenance/scopes?target=DomainEvents&limit=1000").json()["scopes"]
    [row] = [each for each in scopes if each["scopeKey"] == "verified-now"]
    assert (row["lastVerdict"], row["records"]) == ("valid", 1)
    assert row["lastVerifiedAt"] >= row["lastAt"]
