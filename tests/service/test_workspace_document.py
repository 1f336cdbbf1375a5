"""Tests of the workspace document over HTTP: export, plan and apply."""

import copy
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import pytest
import yaml

from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until

DOCUMENT = "/oi-api/workspace/document"
PLAN = f"{DOCUMENT}/plan"
YAML = {"Content-Type": "application/yaml"}
APPROVED = {"approvedBy": "admin@t", "approvedAt": "2026-01-05T08:00:00Z"}


SILENT_PRESS = {
    "lookup": "press-silent",
    "name": "Press is silent",
    "severity": "info",
    "surface": "hall",
    "kind": "absence",
    "every": "P1D",
    "connections": ["press"],
    "after": "PT1H",
}


@pytest.fixture(scope="module")
def changeable_service(own_module_service: Service) -> Service:
    """Return a service that the tests of this module may change."""
    return own_module_service


@pytest.fixture(scope="module")
def admin(changeable_service: Service) -> httpx.Client:
    """Return a client with all rights."""
    return changeable_service.create_client("admin@t")


def export_document(caller: httpx.Client) -> dict[str, Any]:
    """Return the current workspace as a document."""
    reply = caller.get(DOCUMENT)
    assert reply.status_code == 200, reply.text
    document: dict[str, Any] = reply.json()
    return document


def plan_document(caller: httpx.Client, document: Any) -> dict[str, Any]:
    """Return the plan (preview of changes) of a document."""
    reply = caller.post(PLAN, json=document)
    assert reply.status_code == 200, reply.text
    planned: dict[str, Any] = reply.json()
    return planned


def apply_document(caller: httpx.Client, document: Any) -> dict[str, Any]:
    """Plan and apply a document, and return the applied plan."""
    reply = caller.put(DOCUMENT, json=document, headers={"If-Match": plan_document(caller, document)["planTag"]})
    assert reply.status_code == 200, reply.text
    applied: dict[str, Any] = reply.json()
    return applied


def find_item_by_field(items: list[dict[str, Any]], key: str, field: str = "lookup") -> dict[str, Any]:
    """Return the item of a list that has this value in a field."""
    return next(item for item in items if item[field] == key)


def list_changes(planned: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return action, kind and key of each change of a plan."""
    return [(change["action"], change["kind"], change["key"]) for change in planned["changes"]]


def list_events(caller: httpx.Client, action: str, target: str = "PlatformConfig") -> list[str]:
    """Return the ids of the items in all audit events with this action and target."""
    query = {"target": target, "actionType": action, "limit": "1000"}
    reply = caller.get("/oi-api/provenance/events/query", params=query)
    assert reply.status_code == 200, reply.text
    return [event["EntityID"] for event in reply.json()]


def test_the_plan_of_an_exported_document_has_no_changes(admin: httpx.Client) -> None:
    """The plan of an exported document, as JSON or YAML, has no changes."""
    document = export_document(admin)
    assert document["workspace"]["id"] == "plant-t"
    assert plan_document(admin, document)["changes"] == []
    text = admin.get(DOCUMENT, headers={"Accept": "application/yaml"})
    assert text.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(text.text) == document
    reply = admin.post(PLAN, content=text.content, headers=YAML)
    assert (reply.status_code, reply.json()["changes"]) == (200, [])


def test_items_of_the_api_are_exported_and_retained(changeable_service: Service, admin: httpx.Client) -> None:
    """A query that was created over the API is exported, and stays if a document without this query is applied.

    The plan does not warn about an alert rule that names this query.
    """
    body = {"name": "Of the API", "surface": "hall", "kql": "Telemetry | count"}
    assert changeable_service.create_client("editor@t").put("/oi-api/warm-queries/of-api", json=body).status_code in (
        200,
        201,
    )
    document = export_document(admin)
    assert find_item_by_field(document["warmQueries"], "of-api")["kql"] == "Telemetry | count"
    assert plan_document(admin, document)["changes"] == []
    document["warmQueries"] = [query for query in document["warmQueries"] if query["lookup"] != "of-api"]
    planned = plan_document(admin, document)
    assert planned["changes"] == []
    assert {"kind": "warmQuery", "key": "of-api", "reason": "created through the API"} in planned["kept"]
    rule: dict[str, Any] = {
        "lookup": "of-api",
        "name": "Of the API",
        "severity": "info",
        "surface": "hall",
        "kind": "threshold",
    }
    rule |= {"every": "P1D", "query": "of-api", "condition": {"rows": "any"}}
    document["alertRules"] = [*document.get("alertRules", []), rule]
    planned = plan_document(admin, document)
    assert (list_changes(planned), planned["warnings"]) == ([("added", "alertRule", "of-api")], [])


def test_a_plan_lists_only_kept_items_that_the_caller_may_see(changeable_service: Service, admin: httpx.Client) -> None:
    """`kept` has no items of kinds that the caller may neither read nor change."""
    assert admin.put("/oi-api/team/guest@t", json={"name": "Guest", "role": "Viewer"}).status_code in (200, 201)
    assert admin.put("/oi-api/connections/by-api", json={"name": "B", "type": "CLOUD_EVENT_HUB"}).is_success
    document = export_document(admin)
    document["team"] = [member for member in document["team"] if member["id"] != "guest@t"]
    document["connections"] = [each for each in document["connections"] if each["lookup"] != "by-api"]
    rights = ["Workspace.Catalog.Manage", "Workspace.Team.Read"]
    listed = []
    for held in (rights, rights[:1]):
        caller = changeable_service.create_client("admin@t", scopes=",".join(held))
        listed.append({(each["kind"], each["key"]) for each in plan_document(caller, document)["kept"]})
    assert {("member", "guest@t"), ("connection", "by-api")} <= listed[0]
    assert ("connection", "by-api") in listed[1]
    assert {kind for kind, _ in listed[1]} <= {"connection", "surface"}
    for address in ("team/guest@t", "connections/by-api"):
        assert admin.delete(f"/oi-api/{address}").status_code == 204


def test_a_plan_changes_nothing_and_apply_changes_as_planned(admin: httpx.Client) -> None:
    """A plan lists each change with the states before and after, and stores nothing.

    PUT makes exactly these changes.
    """
    document = export_document(admin)
    document["connections"].append({"lookup": "extra", "name": "Extra", "type": "CLOUD_EVENT_HUB"})
    find_item_by_field(document["surfaces"], "hall")["description"] = "The first hall"
    document["connections"] = [item for item in document["connections"] if item["lookup"] != "lathe"]
    planned = plan_document(admin, document)
    assert list_changes(planned) == [
        ("added", "connection", "extra"),
        ("changed", "surface", "hall"),
        ("removed", "connection", "lathe"),
    ]
    added, changed, removed = planned["changes"]
    assert added["before"] is None
    assert added["after"]["name"] == "Extra"
    assert (changed["before"]["description"], changed["after"]["description"]) == (None, "The first hall")
    assert removed["after"] is None
    assert export_document(admin) != document
    reply = admin.put(DOCUMENT, json=document, headers={"If-Match": planned["planTag"]})
    assert reply.status_code == 200, reply.text
    assert list_changes(reply.json()) == list_changes(planned)
    assert plan_document(admin, document)["changes"] == []
    assert plan_document(admin, export_document(admin))["changes"] == []
    for action, key in (("Connection.Created", "extra"), ("Connection.Removed", "lathe"), ("Surface.Updated", "hall")):
        assert list_events(admin, f"Catalog.{action}").count(key) == 1


def test_changes_of_members_are_audited_in_access_control(admin: httpx.Client) -> None:
    """If a document adds a member, the chain AccessControl gets an audit event."""
    document = export_document(admin)
    document["team"].append({"id": "new@t", "name": "New", "role": "Viewer"})
    assert list_changes(apply_document(admin, document)) == [("added", "member", "new@t")]
    assert list_events(admin, "Catalog.Member.Created", "AccessControl").count("new@t") == 1


def test_applying_a_document_requires_the_tag_of_a_current_plan(
    changeable_service: Service, admin: httpx.Client
) -> None:
    """PUT requires the tag of a current plan.

    It returns 428 without a tag, and 412 with the tag of another document or of an outdated plan.
    """
    document = export_document(admin)
    document["workspace"]["description"] = "Described"
    check_problem(admin.put(DOCUMENT, json=document), 428, "PRECONDITION_REQUIRED")
    check_problem(admin.put(DOCUMENT, json=document, headers={"If-Match": "*"}), 428, "PRECONDITION_REQUIRED")
    tag = plan_document(admin, document)["planTag"]
    assert tag.startswith('"')
    other = copy.deepcopy(document)
    other["workspace"]["description"] = "Described differently"
    check_problem(admin.put(DOCUMENT, json=other, headers={"If-Match": tag}), 412, "PRECONDITION_FAILED")
    body = {"name": "Between", "surface": "hall", "kql": "Telemetry | count"}
    assert changeable_service.create_client("editor@t").put("/oi-api/warm-queries/between", json=body).status_code in (
        200,
        201,
    )
    check_problem(admin.put(DOCUMENT, json=document, headers={"If-Match": tag}), 412, "PRECONDITION_FAILED")
    assert export_document(admin)["workspace"]["description"] is None


def test_the_tag_of_a_plan_does_not_depend_on_the_caller(changeable_service: Service, admin: httpx.Client) -> None:
    """The tag of a plan is the same for all callers, formats of the document, and orders of its items."""
    document = export_document(admin)
    document["workspace"]["description"] = "Same for all"
    tag = plan_document(admin, document)["planTag"]
    document["team"].reverse()
    text = yaml.safe_dump(document)
    reply = changeable_service.create_client("admin@t").post(PLAN, content=text, headers=YAML)
    assert reply.json()["planTag"] == tag


def test_the_plan_reverts_a_change_of_a_declared_item(changeable_service: Service, admin: httpx.Client) -> None:
    """If a declared item was changed over the API, the plan reverts the change, and says who made it and when."""
    document = export_document(admin)
    body = {"name": "A draft", "surface": "hall", "kql": "Telemetry | take 1"}
    assert changeable_service.create_client("editor@t").put("/oi-api/warm-queries/draft", json=body).status_code == 200
    [change] = plan_document(admin, document)["changes"]
    assert (change["action"], change["key"], change["changedBy"]) == ("changed", "draft", "editor@t")
    assert change["changedAt"].endswith("Z")
    assert (change["before"]["kql"], change["after"]["kql"]) == ("Telemetry | take 1", "Telemetry | count")
    apply_document(admin, document)
    assert find_item_by_field(export_document(admin)["warmQueries"], "draft")["kql"] == "Telemetry | count"


def test_declared_approvals_are_ignored_over_https(admin: httpx.Client) -> None:
    """A new query is stored as a draft even if the document approves it; the plan lists it under `kept`."""
    document = export_document(admin)
    query = {"lookup": "claimed", "name": "Claimed", "surface": "hall", "kql": "Telemetry", "approval": APPROVED}
    document["warmQueries"].append(query)
    planned = plan_document(admin, document)
    assert planned["changes"][0]["after"]["approval"] is None
    [note] = [kept for kept in planned["kept"] if kept["key"] == "claimed"]
    assert "draft" in note["reason"]
    apply_document(admin, document)
    assert find_item_by_field(export_document(admin)["warmQueries"], "claimed")["approval"] is None
    assert plan_document(admin, document)["changes"] == []


@pytest.mark.parametrize(
    ("changes", "drafts"),
    [
        ({"description": "text and approval are unchanged"}, []),
        ({"kql": "Telemetry | take 5"}, ["newest"]),
        ({"parameters": []}, ["newest"]),
        ({"approval": {**APPROVED, "approvedBy": "gone@t"}}, ["newest"]),
        ({"approval": {**APPROVED, "approvedAt": "2026-01-06T08:00:00Z"}}, ["newest"]),
        ({"approval": {**APPROVED, "approvedAt": "2026-01-05T09:00:00+01:00"}}, []),
        ({"approval": {**APPROVED, "approvedBy": "nobody@t"}}, ["newest"]),
    ],
)
def test_a_declared_query_stays_approved_only_with_equal_text(
    admin: httpx.Client, changes: dict[str, Any], drafts: list[str]
) -> None:
    """A declared query stays approved only if its stored text and approval equal those of the document."""
    document = export_document(admin)
    find_item_by_field(document["warmQueries"], "newest").update(changes)
    planned = plan_document(admin, document)
    approvals = [change["after"]["approval"] for change in planned["changes"] if change["key"] == "newest"]
    assert all((approval is None) is bool(drafts) for approval in approvals)
    assert [kept["key"] for kept in planned["kept"] if "draft" in kept["reason"]] == drafts


def test_tier_and_limits_are_read_only(admin: httpx.Client) -> None:
    """A document that changes the tier or limits is rejected with the positions; a document may omit them."""
    document = export_document(admin)
    text = json.dumps({**document, "limits": {"requestsPerMinute": 7, "concurrent": 7}}, indent=1)
    reply = admin.post(PLAN, content=text)
    [error] = check_problem(reply, 400, "INVALID_REQUEST")["errors"]
    assert error["field"] == "limits"
    assert text.splitlines()[error["line"] - 1].startswith(' "limits"')
    without = {name: value for name, value in document.items() if name not in ("tier", "limits")}
    assert check_failing_fields(admin.post(PLAN, json={**without, "tier": "pro"})) == ["limits", "tier"]
    assert plan_document(admin, without)["changes"] == []


def test_provenance_cannot_be_switched_off(admin: httpx.Client) -> None:
    """A document without a provenance policy is rejected with 409."""
    document = export_document(admin)
    del document["policies"]["provenance"]
    check_problem(admin.post(PLAN, json=document), 409, "PROVENANCE_REQUIRED")
    del document["policies"]
    check_problem(admin.post(PLAN, json=document), 409, "PROVENANCE_REQUIRED")


def find_declared_container(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the container with this name from the database `orders` of a document."""
    databases = [database for store in document["dataStores"] for database in store["databases"]]
    return find_item_by_field(find_item_by_field(databases, "orders")["containers"], name, "name")


def test_a_document_cannot_change_partition_keys_or_add_evidence(admin: httpx.Client) -> None:
    """A document cannot change a partition key path (409) or add the data class evidence (400)."""
    document = export_document(admin)
    find_declared_container(document, "inbox")["partitionKeyPath"] = "/id"
    check_problem(admin.post(PLAN, json=document), 409, "PARTITION_KEY_IMMUTABLE")
    headers = {"If-Match": '"x"'}
    check_problem(admin.put(DOCUMENT, json=document, headers=headers), 409, "PARTITION_KEY_IMMUTABLE")
    document = export_document(admin)
    find_declared_container(document, "inbox")["dataClass"] = "evidence"
    text = json.dumps(document, indent=1)
    for reply in (admin.post(PLAN, content=text), admin.put(DOCUMENT, content=text, headers=headers)):
        problem = check_problem(reply, 400, "DATA_CLASS_REFUSED")
        [error] = problem["errors"]
        assert error["field"].endswith(".dataClass")
        assert '"evidence"' in text.splitlines()[error["line"] - 1]
        assert problem["reason"] == error["message"]


def test_records_of_existing_containers_are_retained(admin: httpx.Client) -> None:
    """If a document omits a container, the container's record is removed only if the container does not exist."""
    document = export_document(admin)
    document["dataStores"] = []
    planned = plan_document(admin, document)
    assert list_changes(planned) == [("removed", "container", "orders/planned")]
    reasons = {(kept["kind"], kept["key"]): kept["reason"] for kept in planned["kept"]}
    assert "exists in the account" in reasons["container", "orders/inbox"]
    assert "exists in the account" in reasons["dataStore", "mes"]
    headers = {"If-Match": planned["planTag"]}
    applied = admin.put(DOCUMENT, json=document, headers=headers).json()
    assert (list_changes(applied), applied["kept"]) == (list_changes(planned), planned["kept"])
    assert find_declared_container(export_document(admin), "inbox")["expose"] == ["create"]


def test_the_document_of_another_workspace_is_rejected(admin: httpx.Client) -> None:
    """A document with the id of another workspace is rejected."""
    document = export_document(admin)
    document["workspace"]["id"] = "plant-u"
    check_problem(admin.post(PLAN, json=document), 409, "WORKSPACE_ID_FIXED")


def test_a_document_cannot_lock_out_its_caller(admin: httpx.Client) -> None:
    """A document cannot lock out its caller, remove an approver, or grant rights that the caller lacks."""
    document = export_document(admin)
    find_item_by_field(document["team"], "admin@t", "id")["enabled"] = False
    check_problem(admin.post(PLAN, json=document), 409, "SELF_LOCKOUT")
    document = export_document(admin)
    document["team"].append({"id": "later@t", "name": "Later", "role": "Viewer"})
    apply_document(admin, document)
    document["team"] = [member for member in document["team"] if member["id"] != "later@t"]
    apply_document(admin, document)
    document["team"].append({"id": "later@t", "name": "Later", "role": "Viewer"})
    check_problem(admin.post(PLAN, json=document), 409, "MEMBER_ID_RETIRED")


@pytest.mark.parametrize(
    ("member_id", "oid", "code"), [("BOB@t", "new", "MEMBER_ID_TAKEN"), ("carol@t", "ABC", "MEMBER_OID_TAKEN")]
)
def test_a_taken_id_of_a_member_has_a_position(admin: httpx.Client, member_id: str, oid: str, code: str) -> None:
    """If a member has the id or object id of a member of the API, plan and PUT name the field, line and column."""
    document = export_document(admin)
    added = admin.put("/oi-api/team/bob@t", json={"name": "Bob", "role": "Viewer", "oid": "abc"})
    assert added.is_success
    others = [member for member in document["team"] if member["id"] != "bob@t"]
    document["team"] = [*others, {"id": member_id, "name": "New", "role": "Viewer", "oid": oid}]
    text, value = json.dumps(document, indent=1), member_id if code == "MEMBER_ID_TAKEN" else oid
    for reply in (admin.post(PLAN, content=text), admin.put(DOCUMENT, content=text, headers={"If-Match": '"x"'})):
        [error] = check_problem(reply, 409, code)["errors"]
        assert error["field"].startswith(f"team[{len(document['team']) - 1}].")
        assert f'"{value}"' in text.splitlines()[error["line"] - 1][error["column"] - 1 :]


def test_a_caller_needs_the_rights_of_the_parts_that_change(changeable_service: Service, admin: httpx.Client) -> None:
    """Export and plan require rights of their own; applying a document requires a right for each part that changes."""
    document = export_document(admin)
    check_problem(
        changeable_service.create_client("admin@t", "Workspace.Catalog.Read").get(DOCUMENT), 403, "ACCESS_RIGHT_MISSING"
    )
    reader = changeable_service.create_client("admin@t", "Workspace.Catalog.Read,Workspace.Team.Read")
    assert reader.get(DOCUMENT).status_code == 200
    check_problem(reader.post(PLAN, json=document), 403, "ACCESS_RIGHT_MISSING")
    check_problem(changeable_service.create_client("editor@t").post(PLAN, json=document), 403, "ACCESS_RIGHT_MISSING")
    manager = changeable_service.create_client("admin@t", "Workspace.Catalog.Manage")
    assert plan_document(manager, document)["changes"] == []
    for change, right in (
        ({"workspace": {**document["workspace"], "name": "Other"}}, "Policy.Manage"),
        ({"policies": {"provenance": {}}}, "Policy.Manage"),
        ({"team": [*document["team"], {"id": "n@t", "name": "N", "role": "Viewer"}]}, "Team.Manage"),
        ({"warmQueries": document["warmQueries"][:0]}, "WarmQuery.Manage"),
        ({"dataStores": [*document["dataStores"], {"lookup": "more"}]}, "DataStore.Manage"),
        ({"alertRules": [*document.get("alertRules", []), SILENT_PRESS]}, "Alert.Manage"),
    ):
        problem = check_problem(manager.post(PLAN, json={**document, **change}), 403, "ACCESS_RIGHT_MISSING")
        assert problem["accessRights"] == [f"Workspace.{right}"]
        put = manager.put(DOCUMENT, json={**document, **change}, headers={"If-Match": '"x"'})
        check_problem(put, 403, "ACCESS_RIGHT_MISSING")
    team = changeable_service.create_client("admin@t", "Workspace.Catalog.Manage,Workspace.Team.Manage")
    promoted = {**document, "team": [*document["team"], {"id": "n@t", "name": "N", "role": "Admin"}]}
    check_problem(team.post(PLAN, json=promoted), 403, "RIGHT_NOT_HELD")


@pytest.mark.parametrize(
    ("text", "headers", "code", "errors"),
    [
        ("", {}, "BODY_NOT_JSON", [("body", 1, 1)]),
        ("{", {}, "BODY_NOT_JSON", [("body", 1, 2)]),
        ("[]", {}, "BODY_NOT_JSON", [("body", 1, 1)]),
        ('{"workspace": 1,\n "workspace": 2}', {}, "INVALID_REQUEST", [("workspace", 2, 2)]),
        ('{"workspace": {"id": "plant-t"}}', {}, "INVALID_REQUEST", [("workspace.name", 1, 2)]),
        ("a: [1", YAML, "BODY_NOT_YAML", [("body", 2, 1)]),
        ("workspace: {id: plant-t, name: P}\nteem: []", YAML, "INVALID_REQUEST", [("teem", 2, 1)]),
        ("1: x\nworkspace: {id: plant-t, name: P}", YAML, "INVALID_REQUEST", [("1", 1, 1)]),
        ("workspace: {id: plant-t, name: P, 1: x}", YAML, "INVALID_REQUEST", [("workspace", 1, 35)]),
        ("? [a]\n: x\nworkspace: {id: plant-t, name: P}", YAML, "INVALID_REQUEST", [("?", 1, 3)]),
        ("\xff".encode("latin-1"), YAML, "BODY_NOT_YAML", [("body", 1, 1)]),
    ],
)
def test_errors_in_a_document_have_lines_and_columns(
    admin: httpx.Client, text: str | bytes, headers: dict[str, str], code: str, errors: list[tuple[str, int, int]]
) -> None:
    """Each error in a document has field, rule, line and column; plan and PUT return the same errors."""
    for reply in (
        admin.post(PLAN, content=text, headers=headers),
        admin.put(DOCUMENT, content=text, headers={**headers, "If-Match": '"x"'}),
    ):
        found = check_problem(reply, 400, code)["errors"]
        assert [(error["field"], error["line"], error["column"]) for error in found] == errors
        assert all(error["message"] for error in found)


def test_all_errors_of_a_workspace_document_are_listed(admin: httpx.Client) -> None:
    """Errors of several items are listed together with errors about rules between items."""
    document = export_document(admin)
    document["connections"][0]["name"] = ""
    document["surfaces"][0]["connections"] = ["nowhere"]
    fields = check_failing_fields(admin.post(PLAN, json=document))
    assert fields == ["connections[0].name", "surfaces[0].connections[0]"]


def test_the_error_detail_describes_ten_errors(admin: httpx.Client) -> None:
    """For a document with many errors, `detail` describes the first ten and states how many more exist."""
    document = {**export_document(admin), **{f"unknown{number}": 1 for number in range(12)}}
    problem = check_problem(admin.post(PLAN, json=document), 400, "INVALID_REQUEST")
    assert len(problem["errors"]) == 12
    assert problem["detail"].count("is not a known field") == 10
    assert problem["detail"].endswith("; and 2 more")


def test_documents_with_exponential_aliases_are_rejected(admin: httpx.Client) -> None:
    """A document with exponentially growing YAML aliases or too deep nesting gets 400 with the position."""
    layers = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]
    for content, code in (("\n".join(layers), "INVALID_REQUEST"), ("a: " + "[" * 100_000, "BODY_NOT_YAML")):
        [error] = check_problem(admin.post(PLAN, content=content, headers=YAML), 400, code)["errors"]
        assert (error["line"], error["column"]) >= (1, 1)


def test_a_workspace_document_is_limited_to_16_mib(admin: httpx.Client) -> None:
    """A document over 1 MiB is accepted; a body over 16 MiB is rejected with 413."""
    document = export_document(admin)
    document["workspace"]["description"] = "x" * (1024 * 1024 + 300_000)
    assert list_changes(plan_document(admin, document)) == [("changed", "workspace", "-")]
    check_problem(admin.post(PLAN, content=b" " * (16 * 1024 * 1024 + 1)), 413, "BODY_TOO_LARGE")


def test_document_routes_reject_query_parameters(admin: httpx.Client) -> None:
    """The routes of the workspace document have no query parameters and reject any parameter."""
    for reply in (
        admin.get(DOCUMENT, params={"format": "yaml"}),
        admin.post(PLAN, json={}, params={"dryRun": "true"}),
        admin.put(DOCUMENT, json={}, params={"force": "true"}),
    ):
        check_problem(reply, 400, "INVALID_REQUEST")


def test_queries_of_a_document_are_validated_by_the_engine(admin: httpx.Client) -> None:
    """If the engine rejects a query, the plan has a warning, and PUT rejects the document with the query's line."""
    document = export_document(admin)
    query = {"lookup": "broken", "name": "Broken", "surface": "hall", "kql": "Telemetry | where NoColumn == 1"}
    document["warmQueries"].append(query)
    text = yaml.safe_dump(document)
    plan = admin.post(PLAN, content=text, headers=YAML).json()
    reply = admin.put(DOCUMENT, content=text, headers={**YAML, "If-Match": plan["planTag"]})
    [error] = check_problem(reply, 400, "INVALID_REQUEST")["errors"]
    assert error["field"].endswith(".kql")
    [warning] = plan["warnings"]
    assert warning["message"] == f"the query engine rejects this query, so PUT will fail: {error['message']}"
    assert (warning["field"], warning["line"]) == (error["field"], error["line"])
    assert "NoColumn" in text.splitlines()[error["line"] - 1]
    assert all(query["lookup"] != "broken" for query in export_document(admin)["warmQueries"])


def test_columns_of_a_rule_in_a_document_are_checked_by_the_engine(admin: httpx.Client) -> None:
    """If the query of a new rule lacks a column, the plan has a warning, and PUT rejects the document.

    An unknown query is rejected in the plan, with its place in the document.
    """
    document = export_document(admin)
    rule = {
        "lookup": "unfit",
        "name": "Unfit",
        "severity": "info",
        "surface": "hall",
        "kind": "threshold",
        "every": "P1D",
        "query": "draft",
        "condition": {"column": "NoColumn", "operator": "gt", "value": 1},
    }
    document["alertRules"] = [*document.get("alertRules", []), rule]
    text = yaml.safe_dump(document)
    plan = admin.post(PLAN, content=text, headers=YAML).json()
    reply = admin.put(DOCUMENT, content=text, headers={**YAML, "If-Match": plan["planTag"]})
    [error] = check_problem(reply, 400, "INVALID_REQUEST")["errors"]
    assert (error["field"].endswith(".condition.column"), "NoColumn" in text.splitlines()[error["line"] - 1]) == (
        True,
        True,
    )
    [warning] = plan["warnings"]
    assert warning["message"] == f"the alert rule does not fit its query, so PUT will fail: {error['message']}"
    assert (warning["field"], warning["line"]) == (error["field"], error["line"])
    unknown = yaml.safe_dump({**document, "alertRules": [{**rule, "query": "nowhere"}]})
    [error] = check_problem(admin.post(PLAN, content=unknown, headers=YAML), 400, "INVALID_REQUEST")["errors"]
    assert (error["field"], error["message"]) == ("alertRules[0].query", "unknown warm query: nowhere")
    assert "nowhere" in unknown.splitlines()[error["line"] - 1]


def test_an_idempotency_key_belongs_to_one_plan(admin: httpx.Client) -> None:
    """A repeated PUT with the same Idempotency-Key succeeds; another document with this Idempotency-Key is rejected."""
    document = export_document(admin)
    key = {"Idempotency-Key": "plan-once"}
    first, second = (admin.post(PLAN, json=document, headers=key) for _ in range(2))
    assert first.json() == second.json()
    document["workspace"]["description"] = "another"
    check_problem(admin.post(PLAN, json=document, headers=key), 422, "IDEMPOTENCY_KEY_REUSED")


def test_a_connection_that_a_document_enables_is_connecting_until_a_message_arrives(admin: httpx.Client) -> None:
    """A connection that a document enables again has the status CONNECTING until its next message."""

    def read_status() -> str:
        status: str = admin.get("/oi-api/connections/press").json()["status"]
        return status

    assert admin.post("/oi-api/telemetry/press", json={"value": 1}).status_code == 202
    wait_until(read_status, lambda status: status == "CONNECTED")
    document = export_document(admin)
    declared = find_item_by_field(document["connections"], "press")
    declared["enabled"] = False
    apply_document(admin, document)
    assert read_status() == "DISCONNECTED"
    declared["enabled"] = True
    apply_document(admin, document)
    assert read_status() == "CONNECTING"


def test_a_document_whose_audit_event_is_too_large_is_refused(admin: httpx.Client) -> None:
    """A document with an item that is too large for its audit event is refused; the error names the item."""
    document = export_document(admin)
    document["surfaces"].append({"lookup": "large", "name": "Large", "description": "a" * 1_500_000})
    planned = admin.post(PLAN, json=document)
    check_problem(planned, 413, "RECORD_TOO_LARGE")
    assert "Surface 'large'" in planned.json()["detail"]


def test_an_audit_event_missing_after_a_crash_is_appended(changeable_service: Service) -> None:
    """If the process dies between a change and its audit event, the event is appended after the restart."""
    caller = changeable_service.create_client("admin@t")
    document = export_document(caller)
    document["connections"].append({"lookup": "late", "name": "Late", "type": "CLOUD_EVENT_HUB"})
    headers = {"If-Match": plan_document(caller, document)["planTag"]}
    with (
        closing(sqlite3.connect(changeable_service.data_dir / "provenance.sqlite", isolation_level=None)) as chains,
        closing(sqlite3.connect(changeable_service.data_dir / "workspace.sqlite")) as catalog,
        ThreadPoolExecutor(1) as pool,
    ):
        chains.execute("BEGIN IMMEDIATE")
        sent = pool.submit(caller.put, DOCUMENT, json=document, headers=headers)
        wait_until(lambda: catalog.execute("SELECT count(*) FROM catalog_outbox").fetchone()[0], bool)
        changeable_service.kill()
        chains.execute("ROLLBACK")
        assert isinstance(sent.exception(), httpx.TransportError | RuntimeError)
    changeable_service.start()
    caller = changeable_service.create_client("admin@t")
    assert plan_document(caller, document)["changes"] == []
    wait_until(lambda: list_events(caller, "Catalog.Connection.Created").count("late"), bool)
    assert list_events(caller, "Catalog.Connection.Created").count("late") == 1
    verified = caller.post("/oi-api/provenance/events/verify", params={"target": "PlatformConfig"})
    assert verified.json()["ChainValid"] is True
