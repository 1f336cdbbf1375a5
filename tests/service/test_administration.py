"""Tests of the administration of single items over HTTPS."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until

MEMBER: dict[str, Any] = {"name": "New member", "role": "Viewer"}
CONNECTION: dict[str, Any] = {"name": "New rig", "type": "CLOUD_EVENT_HUB", "source": {"devices": ["new-*"]}}
SURFACE: dict[str, Any] = {"name": "New surface", "connections": ["lathe"]}
RULE: dict[str, Any] = {
    "name": "New rule",
    "severity": "warning",
    "enabled": False,
    "surface": "hall",
    "kind": "threshold",
    "every": "PT1M",
    "query": "per-minute",
    "condition": {"column": "Pressure", "operator": "gt", "value": 6.5},
}
BODIES = {"team": MEMBER, "connections": CONNECTION, "surfaces": SURFACE, "alert-rules": RULE}
KEYS = {"team": "id", "connections": "lookup", "surfaces": "lookup", "alert-rules": "lookup"}
LISTS = {"team": "members", "connections": "connections", "surfaces": "surfaces", "alert-rules": "rules"}
NOT_FOUND = {
    "team": "MEMBER_NOT_FOUND",
    "connections": "CONNECTION_NOT_FOUND",
    "surfaces": "SURFACE_NOT_FOUND",
    "alert-rules": "ALERT_RULE_NOT_FOUND",
}
RECORD = "/oi-api/data-stores/orders/containers/recipes"


@pytest.fixture(scope="module")
def changeable_service(own_module_service: Service) -> Service:
    """Return a service that the tests of this module may change."""
    return own_module_service


@pytest.fixture(scope="module")
def admin(changeable_service: Service) -> httpx.Client:
    """Return a client with a token of the administrator."""
    return changeable_service.create_client("admin@t")


def build_path(kind: str, key: str) -> str:
    """Return the URL path of an item of this kind."""
    return f"/oi-api/{kind}/{quote(key, safe='')}"


def put_definition(
    client: httpx.Client, kind: str, key: str, headers: dict[str, str] | None = None, /, **changes: Any
) -> Any:
    """Send the example definition of an item kind by PUT.

    The given properties replace properties of the example; the value None removes a property.
    """
    body = {name: value for name, value in {**BODIES[kind], **changes}.items() if value is not None}
    return client.put(build_path(kind, key), json=body, headers=headers)


def list_events(client: httpx.Client, target: str, entity: str) -> list[dict[str, Any]]:
    """Return the audit events about an item, oldest first."""
    events = client.get(f"/oi-api/provenance/events/query?target={target}&limit=1000").json()
    return [event for event in reversed(events) if event["EntityID"] == entity]


def create_caller(changeable_service: Service, admin: httpx.Client, member: str, **definition: Any) -> httpx.Client:
    """Add a member with the given definition, and return a client with a token of this member."""
    assert put_definition(admin, "team", member, **definition).status_code == 201
    key = admin.post("/workspace/api/keys", json={"name": "test", "principal": member}).json()["apiKey"]
    token = changeable_service.create_anonymous_client(key).get("/workspace/api/keys/jwt").json()["Token"]
    return changeable_service.create_anonymous_client(token)


@pytest.mark.parametrize("kind", BODIES)
def test_an_item_is_created_replaced_and_removed(admin: httpx.Client, kind: str) -> None:
    """Creating, replacing and removing an item each succeed, change its ETag and append an audit event."""
    key = f"cycle-{kind}"
    created = put_definition(admin, kind, key)
    assert created.status_code == 201, created.text
    assert created.json()[KEYS[kind]] == key
    read = admin.get(build_path(kind, key))
    assert (read.status_code, read.json(), read.headers["etag"]) == (200, created.json(), created.headers["etag"])
    listed = admin.get(f"/oi-api/{kind}").json()[LISTS[kind]]
    assert next(item for item in listed if item[KEYS[kind]] == key) == read.json()
    replaced = put_definition(admin, kind, key, name="Renamed")
    assert (replaced.status_code, replaced.json()["name"], replaced.json()["editedBy"]) == (200, "Renamed", "admin@t")
    assert replaced.json()["etag"] == replaced.headers["etag"] != created.headers["etag"]
    assert admin.delete(build_path(kind, key)).status_code == 204
    check_problem(admin.get(build_path(kind, key)), 404, NOT_FOUND[kind])
    check_problem(admin.delete(build_path(kind, key)), 404, NOT_FOUND[kind])
    events = list_events(admin, "AccessControl" if kind == "team" else "PlatformConfig", key)
    entity = {"team": "Member", "connections": "Connection", "surfaces": "Surface", "alert-rules": "AlertRule"}[kind]
    assert [event["ActionType"] for event in events] == [
        f"Catalog.{entity}.{verb}" for verb in ("Created", "Updated", "Removed")
    ]
    states = [("BeforeState" in event, "AfterState" in event) for event in events]
    assert states == [(False, True), (True, True), (True, False)]
    assert (events[1]["BeforeState"]["name"], events[1]["AfterState"]["name"]) == (BODIES[kind]["name"], "Renamed")
    assert {event["UserID"] for event in events} == {"admin@t"}


def test_a_change_that_is_too_large_for_its_audit_event_is_refused(admin: httpx.Client) -> None:
    """A change whose event, with the states before and after it, exceeds a record is refused and not stored."""
    assert put_definition(admin, "surfaces", "large", description="a" * 800_000).status_code == 201
    refused = put_definition(admin, "surfaces", "large", description="b" * 800_000)
    check_problem(refused, 413, "RECORD_TOO_LARGE")
    assert "Surface 'large'" in refused.json()["detail"]
    assert admin.get(build_path("surfaces", "large")).json()["description"][0] == "a"
    assert put_definition(admin, "surfaces", "large", description="b" * 600_000).status_code == 200
    assert admin.delete(build_path("surfaces", "large")).status_code == 204
    actions = [event["ActionType"] for event in list_events(admin, "PlatformConfig", "large")]
    assert actions == [f"Catalog.Surface.{verb}" for verb in ("Created", "Updated", "Removed")]


def test_a_query_that_is_too_large_for_its_approval_is_not_approved(
    changeable_service: Service, admin: httpx.Client
) -> None:
    """The approval of a query whose event would exceed a record is refused; a shorter query can be approved."""
    editor = changeable_service.create_client("editor@t")
    path = "/oi-api/warm-queries/large"
    body = {"name": "Large", "surface": "hall", "kql": "Telemetry | count", "description": "a" * 800_000}
    assert editor.put(path, json=body).status_code == 201
    check_problem(admin.post(f"{path}/approve"), 413, "RECORD_TOO_LARGE")
    assert editor.put(path, json={**body, "description": "short"}).status_code == 200
    assert admin.post(f"{path}/approve").status_code == 200
    assert admin.delete(path).status_code == 204


def test_repeated_rights_of_a_member_are_stored_once(admin: httpx.Client) -> None:
    """If a request repeats a right, the right is stored once, and the audit event shows the stored rights."""
    rights = ["Workspace.Mcp.Use", "Workspace.Keys.Manage", "Workspace.Mcp.Use"]
    created = put_definition(admin, "team", "repeated@t", rights=rights)
    assert (created.status_code, created.json()["rights"]) == (201, rights[:2])
    assert put_definition(admin, "team", "repeated@t", rights=rights).headers["etag"] == created.headers["etag"]
    [event] = list_events(admin, "AccessControl", "repeated@t")
    assert event["AfterState"]["rights"] == rights[:2]


def test_a_right_of_a_newer_version_is_not_removed_from_a_member(
    changeable_service: Service, admin: httpx.Client
) -> None:
    """A member has no right that only a newer version knows, and is not replaced, because no caller has this right."""
    assert put_definition(admin, "team", "newer@t", rights=["Workspace.Mcp.Use"]).status_code == 201
    with closing(sqlite3.connect(changeable_service.data_dir / "workspace.sqlite")) as file, file:
        file.execute(
            "UPDATE catalog_items SET definition = json_set(definition, '$.rights[#]', 'Workspace.Newer.Use', "
            "'$.name', 'Newer') WHERE key = 'newer@t'"
        )
        file.execute("UPDATE catalog_version SET version = version + 1")
    path = build_path("team", "newer@t")
    read = wait_until(lambda: admin.get(path).json(), lambda member: member.get("name") == "Newer")
    assert read["rights"] == ["Workspace.Mcp.Use"]
    refused = admin.put(path, json={**read, "name": "Renamed"})
    check_problem(refused, 403, "RIGHT_NOT_HELD")
    assert refused.json()["accessRights"] == ["Workspace.Newer.Use"]


@pytest.mark.parametrize("kind", BODIES)
def test_sending_an_unchanged_item_back_changes_nothing(admin: httpx.Client, kind: str) -> None:
    """If a client sends the reply to a GET back with PUT, nothing changes and no audit event is written."""
    key = f"same-{kind}"
    read = put_definition(admin, kind, key).json()
    again = admin.put(build_path(kind, key), json=read, headers={"If-Match": read["etag"]})
    assert (again.status_code, again.json()) == (200, read)
    target = "AccessControl" if kind == "team" else "PlatformConfig"
    assert len(list_events(admin, target, key)) == 1


@pytest.mark.parametrize("kind", BODIES)
def test_changes_with_unmet_conditions_are_rejected(admin: httpx.Client, kind: str) -> None:
    """A change is rejected if its ETag is old, the item is missing, or `If-None-Match: *` meets an existing item."""
    key = f"conditional-{kind}"
    for method in ("PUT", "DELETE"):
        body = BODIES[kind] if method == "PUT" else None
        missing = admin.request(method, build_path(kind, key), json=body, headers={"If-Match": "*"})
        check_problem(missing, 412, "PRECONDITION_FAILED")
    created = put_definition(admin, kind, key, {"If-None-Match": "*"})
    assert created.status_code == 201
    check_problem(put_definition(admin, kind, key, {"If-None-Match": "*"}), 412, "PRECONDITION_FAILED")
    read = created.json()
    assert put_definition(admin, kind, key, {"If-Match": read["etag"]}, name="Second").status_code == 200
    stale = {"If-Match": read["etag"]}
    check_problem(put_definition(admin, kind, key, stale, name="Lost"), 412, "PRECONDITION_FAILED")
    check_problem(admin.put(build_path(kind, key), json=read, headers=stale), 412, "PRECONDITION_FAILED")
    check_problem(admin.delete(build_path(kind, key), headers=stale), 412, "PRECONDITION_FAILED")
    gone = admin.put(build_path(kind, f"deleted-{kind}"), json=read, headers=stale)
    check_problem(gone, 412, "PRECONDITION_FAILED")
    invalid = put_definition(admin, kind, key, {"If-Match": "1a"}, colour="red")
    assert set(check_failing_fields(invalid)) == {"colour", "If-Match"}
    assert admin.get(build_path(kind, key), headers={"If-None-Match": read["etag"]}).status_code == 200


@pytest.mark.parametrize("kind", BODIES)
def test_pages_of_an_item_list_contain_each_item_once(admin: httpx.Client, kind: str) -> None:
    """The pages of a list contain each item once, sorted by key; only the last page has no cursor."""
    for key in ("page-1", "page-2", "page-3"):
        assert put_definition(admin, kind, key).status_code in (200, 201)
    whole = admin.get(f"/oi-api/{kind}").json()
    assert set(whole) == {LISTS[kind]}
    keys, query = [], "limit=2"
    for _ in range(len(whole[LISTS[kind]])):
        page = admin.get(f"/oi-api/{kind}?{query}").json()
        assert 1 <= len(page[LISTS[kind]]) <= 2
        keys += [item[KEYS[kind]] for item in page[LISTS[kind]]]
        if "cursor" not in page:
            break
        query = f"limit=2&cursor={page['cursor']}"
    assert keys == sorted(keys) == [item[KEYS[kind]] for item in whole[LISTS[kind]]]
    for other in {"team", "connections"} - {kind}:
        cursor = admin.get(f"/oi-api/{other}?limit=1").json()["cursor"]
        assert check_failing_fields(admin.get(f"/oi-api/{kind}?cursor={cursor}")) == ["cursor"]
        assert check_failing_fields(admin.get(f"/oi-api/{kind}?limit=0&cursor={cursor}")) == ["limit", "cursor"]
    for bad in ("limit=0", "limit=1001", "limit=x", "cursor=x", "cursor="):
        assert check_failing_fields(admin.get(f"/oi-api/{kind}?{bad}")) == [bad.partition("=")[0]]


@pytest.mark.parametrize("key", ["a/b", "a+b c", "müller@t", "数@t", "100%", "?#&", "a%20b", "%25E4", "a%2Fb"])
def test_member_ids_are_percent_encoded(admin: httpx.Client, key: str) -> None:
    """A member id may contain characters that have a meaning in URLs, if the client percent-encodes them."""
    created = put_definition(admin, "team", key)
    assert (created.status_code, created.json()["id"]) == (201, key)
    assert admin.get(build_path("team", key)).json()["id"] == key
    assert admin.delete(build_path("team", key)).status_code == 204


def test_an_escaped_slash_in_a_member_id_is_not_a_slash(admin: httpx.Client) -> None:
    """The members `p/q` and `p%2Fq` are two members, and a change of one does not affect the other."""
    for key in ("p/q", "p%2Fq"):
        assert put_definition(admin, "team", key, name=key).status_code == 201
    assert admin.delete("/oi-api/team/p%252Fq").status_code == 204
    assert admin.get("/oi-api/team/p%2Fq").json()["name"] == "p/q"
    assert admin.delete("/oi-api/team/p%2Fq").status_code == 204


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/oi-api/%FF", 404),
        ("GET", "/workspace/api/keys/jwt/%ff", 405),
        ("GET", "/oi-api/connections/%FF", 401),
        ("POST", "/v1/%FF/graphql", 401),
    ],
)
def test_a_path_that_is_not_utf_8_is_checked_last(admin: httpx.Client, method: str, path: str, status: int) -> None:
    """A path that is not UTF-8 gets 400 only after the checks of route, method and credential."""
    anonymous = {"Authorization": ""}
    assert admin.request(method, path, headers=anonymous).status_code == status
    assert check_failing_fields(admin.get("/oi-api/connections/%FF")) == ["path"]


@pytest.mark.parametrize("encoded", ["%2E", "%2e%2e", "%2E."])
def test_member_ids_that_consist_of_dots_are_rejected(admin: httpx.Client, encoded: str) -> None:
    """The member ids `.` and `..` are rejected, because HTTP clients remove them from the path of a URL."""
    assert check_failing_fields(admin.put(f"/oi-api/team/{encoded}", json=BODIES["team"])) == ["id"]


def test_only_new_members_cannot_have_reserved_ids(changeable_service: Service, admin: httpx.Client) -> None:
    """A new member cannot have a reserved id; a stored member keeps such an id and can change."""
    assert check_failing_fields(put_definition(admin, "team", "System")) == ["id"]
    assert put_definition(admin, "team", "early@t").status_code == 201
    with closing(sqlite3.connect(changeable_service.data_dir / "workspace.sqlite")) as file, file:
        file.execute(
            "UPDATE catalog_items SET key = 'system', definition = json_set(definition, '$.id', 'system') "
            "WHERE key = 'early@t'"
        )
        file.execute("UPDATE catalog_version SET version = version + 1")
    path = build_path("team", "system")
    wait_until(lambda: admin.get(path).status_code, lambda status: status == 200)
    assert put_definition(admin, "team", "system", name="Other").status_code == 200
    assert admin.delete(path).status_code == 204


@pytest.mark.parametrize(
    ("kind", "key", "changes", "fields"),
    [
        ("team", " x", {}, ["id"]),
        ("team", "x\u200b", {}, ["id"]),
        ("team", "e\u0301", {}, ["id"]),
        ("team", "x" * 257, {}, ["id"]),
        ("team", "x", {"role": "Boss", "name": None}, ["name", "role"]),
        ("team", "x", {"rights": ["Workspace.Nothing"], "enabled": "yes"}, ["rights[0]", "enabled"]),
        ("team", "x", {"id": "y"}, ["id"]),
        ("team", "viewer@t", {"accessRights": ["Workspace.Keys.Manage"]}, ["accessRights"]),
        ("connections", "bad lookup", {"type": "PLC"}, ["lookup", "type"]),
        ("connections", "x", {"type": "SIMULATOR", "source": None}, ["simulator"]),
        ("connections", "x", {"type": "CLOUD_IOT_HUB", "source": {"eventHub": "h"}}, ["source.eventHub"]),
        ("connections", "x", {"source": {"consumerGroup": "g"}}, ["source.consumerGroup"]),
        ("connections", "x", {"source": {"timestamp_pointer": "/ts"}}, ["source.timestamp_pointer"]),
        ("surfaces", "x", {"connections": ["lathe", "nowhere", "lathe"]}, ["connections[1]", "connections[2]"]),
        ("surfaces", "x", {"queries": ["draft"]}, ["queries"]),
        ("alert-rules", "bad lookup", {"every": "PT1S", "kind": "level"}, ["lookup", "every", "kind"]),
        ("alert-rules", "x", {"surface": "nowhere", "query": "nothing"}, ["surface", "query"]),
        ("alert-rules", "x", {"condition": {"column": "Presure", "operator": "gt", "value": 1}}, ["condition.column"]),
        (
            "alert-rules",
            "x",
            {"groupBy": ["Pressure", "Device"], "parameters": {"d": 1}},
            ["groupBy[1]", "parameters.d"],
        ),
    ],
)
def test_invalid_item_definitions_are_rejected(
    admin: httpx.Client, kind: str, key: str, changes: dict[str, Any], fields: list[str]
) -> None:
    """The error reply to an invalid definition lists every failing field, and nothing is stored."""
    assert sorted(check_failing_fields(put_definition(admin, kind, key, **changes))) == sorted(fields)
    if key != "viewer@t":
        check_problem(admin.get(build_path(kind, key)), 404, NOT_FOUND[kind])


@pytest.mark.parametrize(
    ("kind", "misspelt", "suggestion"), [("team", "enable", "enabled"), ("surfaces", "conections", "")]
)
def test_errors_about_misspelt_fields_suggest_the_nearest_field(
    admin: httpx.Client, kind: str, misspelt: str, suggestion: str
) -> None:
    """The error about a misspelt field of the body suggests the most similar valid field."""
    reply = admin.put(build_path(kind, "x"), json={**BODIES[kind], misspelt: True})
    errors = check_problem(reply, 400, "INVALID_REQUEST")["errors"]
    [message] = [error["message"] for error in errors if error["field"] == misspelt]
    assert f"did you mean `{suggestion or 'connections'}`?" in message


@pytest.mark.parametrize(
    ("variable", "messages"),
    [
        ({"kind": "sine", "max": "x"}, {"min": "is required", "max": "should be a valid number"}),
        ({"kind": "sine", "min": 1, "max": 2, "nois": 1}, {"nois": "Unknown field `nois`; did you mean `noise`?"}),
        ({"kind": "choice", "values": []}, {"values": "must have at least 1 item"}),
        ({}, {"kind": "is required"}),
        ({"kind": "wave"}, {"kind": "must be one of 'constant', 'sine',"}),
    ],
)
def test_errors_about_simulator_variables_name_the_fields_of_the_body(
    admin: httpx.Client, variable: dict[str, Any], messages: dict[str, str]
) -> None:
    """Each error about a variable of a simulator names a field of the variable, and the list counts as not empty."""
    simulator = {"variables": [{"name": "level", "periodSec": 60, **variable}]}
    reply = put_definition(admin, "connections", "x", type="SIMULATOR", simulator=simulator)
    errors = {each["field"]: each["message"] for each in check_problem(reply, 400, "INVALID_REQUEST")["errors"]}
    errors = {field: message for field, message in errors.items() if not field.endswith(".periodSec")}
    assert list(errors) == [f"simulator.variables[0].{field}" for field in messages]
    assert all(map(str.startswith, errors.values(), messages.values())), errors


def test_a_simulator_variable_must_be_an_object(admin: httpx.Client) -> None:
    """The error about a variable of a simulator that is a text says that it must be an object."""
    reply = put_definition(admin, "connections", "x", type="SIMULATOR", simulator={"variables": ["level"]})
    [error] = check_problem(reply, 400, "INVALID_REQUEST")["errors"]
    assert error == {"field": "simulator.variables[0]", "message": "must be an object"}


def test_a_put_without_enabled_or_oid_keeps_the_stored_values(admin: httpx.Client) -> None:
    """If a PUT of a team member omits `enabled` or `oid`, the stored value stays; `oid: null` removes the account."""
    assert put_definition(admin, "team", "kept@t", enabled=False, oid="1234").status_code == 201
    kept = put_definition(admin, "team", "kept@t", name="Other").json()
    assert (kept["enabled"], kept["oid"], kept["name"]) == (False, "1234", "Other")
    removed = admin.put("/oi-api/team/kept@t", json={**MEMBER, "oid": None}).json()
    assert (removed["enabled"], removed["oid"]) == (False, None)


def test_taken_object_ids_and_lookalike_member_ids_are_rejected(admin: httpx.Client) -> None:
    """A member is rejected if another member has the same Entra ID account or an id that looks alike."""
    assert put_definition(admin, "team", "one@t", oid="ABC-1").status_code == 201
    check_problem(put_definition(admin, "team", "two@t", oid="abc-1"), 409, "MEMBER_OID_TAKEN")
    check_problem(put_definition(admin, "team", "ONE@t"), 409, "MEMBER_ID_TAKEN")


def test_a_caller_cannot_give_rights_that_the_caller_lacks(changeable_service: Service, admin: httpx.Client) -> None:
    """Callers cannot grant a right that their token lacks, and cannot change a member who has such a right."""
    rights = ["Workspace.Team.Manage"]
    manager = create_caller(changeable_service, admin, "manager@t", role="Viewer", rights=rights)
    assert put_definition(manager, "team", "colleague@t", rights=rights).status_code == 201
    refused = check_problem(put_definition(manager, "team", "editor2@t", role="Editor"), 403, "RIGHT_NOT_HELD")
    assert "Workspace.WarmQuery.Manage" in refused["accessRights"]
    for reply in (
        put_definition(manager, "team", "editor2@t", role="Editor", enabled=False),
        put_definition(manager, "team", "editor@t"),
        manager.delete("/oi-api/team/gone@t"),
        manager.delete("/oi-api/team/editor@t"),
    ):
        check_problem(reply, 403, "RIGHT_NOT_HELD")
    narrow = changeable_service.create_client("admin@t", scopes="Workspace.Team.Manage,Workspace.Team.Read")
    check_problem(put_definition(narrow, "team", "viewer@t"), 403, "RIGHT_NOT_HELD")
    check_problem(
        put_definition(changeable_service.create_client("editor@t"), "team", "x"), 403, "ACCESS_RIGHT_MISSING"
    )
    check_problem(put_definition(manager, "team", "manager@t"), 409, "SELF_LOCKOUT")
    check_problem(put_definition(manager, "team", "manager@t", rights=rights, enabled=False), 409, "SELF_LOCKOUT")
    check_problem(manager.delete("/oi-api/team/manager@t"), 409, "SELF_LOCKOUT")


def test_the_last_administrator_cannot_be_demoted(changeable_service: Service, admin: httpx.Client) -> None:
    """The last enabled person with the role Admin cannot be demoted, even if a service is also an Admin."""
    everything = admin.get("/oi-api/team/admin@t").json()["accessRights"]
    robot = create_caller(changeable_service, admin, "robot@t", role="Admin", service=True)
    deputy = create_caller(changeable_service, admin, "deputy@t", role="Editor", rights=everything)
    for caller in (robot, deputy):
        check_problem(put_definition(caller, "team", "admin@t", role="Editor"), 409, "LAST_ADMINISTRATOR")
        check_problem(put_definition(caller, "team", "admin@t", role="Admin", enabled=False), 409, "LAST_ADMINISTRATOR")
    check_problem(
        put_definition(admin, "team", "admin@t", role="Editor", rights=["Workspace.Team.Manage"]),
        409,
        "LAST_ADMINISTRATOR",
    )
    assert put_definition(robot, "team", "by-robot@t").json()["editedBy"] == "robot@t"


def test_two_administrators_cannot_demote_each_other(changeable_service: Service, admin: httpx.Client) -> None:
    """If two administrators demote each other at the same time, only one of the demotions succeeds."""
    other = create_caller(changeable_service, admin, "second@t", role="Admin")
    for _ in range(3):
        with ThreadPoolExecutor(2) as pool:
            replies = [
                pool.submit(put_definition, admin, "team", "second@t", role="Viewer"),
                pool.submit(put_definition, other, "team", "admin@t", role="Viewer"),
            ]
            statuses = sorted(reply.result().status_code for reply in replies)
        assert statuses[0] == 200
        assert statuses[1] in (403, 409)
        demoted = changeable_service.create_client("admin@t").get("/oi-api/team/admin@t").json()["role"] == "Viewer"
        winner, loser = (other, "admin@t") if demoted else (admin, "second@t")
        assert put_definition(winner, "team", loser, role="Admin").status_code == 200


def test_a_referenced_item_cannot_be_removed(changeable_service: Service, admin: httpx.Client) -> None:
    """An item that other items use cannot be removed, and the reply names these items."""
    used = check_problem(admin.delete("/oi-api/connections/press"), 409, "CONNECTION_IN_USE")
    assert used["usedBy"] == ["hall"]
    assert put_definition(admin, "alert-rules", "of-hall").status_code in {200, 201}
    used = check_problem(admin.delete("/oi-api/surfaces/hall"), 409, "SURFACE_IN_USE")
    assert "of-hall" in used["alertRules"]
    assert used["usedBy"] == ["draft", "newest", "per-minute", *used["alertRules"]]
    second = create_caller(changeable_service, admin, "leaver@t", role="Admin")
    assert check_problem(second.delete("/oi-api/team/admin@t"), 409, "MEMBER_IN_USE")["usedBy"] == [
        "newest",
        "per-minute",
    ]
    assert admin.delete("/oi-api/team/leaver@t").status_code == 204


def test_connections_list_surfaces_and_surfaces_list_queries(admin: httpx.Client) -> None:
    """The definition of a connection lists its surfaces, and that of a surface lists its queries.

    A change of these lists does not change the ETag.
    """
    before = admin.get("/oi-api/connections/stopped").json()
    assert put_definition(admin, "surfaces", "yard", connections=["stopped"]).json()["queries"] == []
    after = admin.get("/oi-api/connections/stopped").json()
    assert (before["surfaces"], after["surfaces"]) == ([], ["yard"])
    assert before["etag"] == after["etag"]
    assert (after["status"], after["statusReason"]) == ("DISCONNECTED", None)
    assert admin.get("/oi-api/surfaces/hall").json()["queries"] == ["draft", "newest", "per-minute"]
    assert admin.delete("/oi-api/surfaces/yard").status_code == 204


def test_a_new_connection_receives_telemetry(changeable_service: Service, admin: httpx.Client) -> None:
    """A connection that was created over HTTPS accepts telemetry until it is removed."""
    assert put_definition(admin, "connections", "fresh").json()["status"] == "CONNECTING"
    message = {"timestamp": "2026-01-05T08:00:00Z", "deviceId": "new-1", "payload": {"value": 1}}
    assert changeable_service.create_client("editor@t").post("/oi-api/telemetry/fresh", json=message).status_code == 202
    assert admin.delete("/oi-api/connections/fresh").status_code == 204
    gone = changeable_service.create_client("editor@t").post("/oi-api/telemetry/fresh", json=message)
    check_problem(gone, 404, "CONNECTION_NOT_FOUND")


def test_a_connection_whose_event_hub_has_no_trigger_has_the_status_error(
    changeable_service: Service, admin: httpx.Client
) -> None:
    """If no trigger reads a connection's Event Hub, the connection has the status ERROR and a reason."""
    source = {"eventHub": "press-hub", "consumerGroup": "oi"}
    created = put_definition(admin, "connections", "unread", source=source).json()
    assert created["status"] == "ERROR"
    assert "EVENT_HUB_SOURCES" in created["statusReason"]
    query = {"query": '{ connection(id: "unread") { status } }'}
    assert admin.post("/v1/plant-t/graphql", json=query).json()["data"]["connection"]["status"] == "ERROR"
    disabled = put_definition(admin, "connections", "unread", source=source, enabled=False).json()
    assert (disabled["status"], disabled["statusReason"]) == ("DISCONNECTED", None)
    assert put_definition(admin, "connections", "unread", source=source).json()["enabled"] is False


def test_the_workspace_has_tier_limits_policies_and_counts(changeable_service: Service, admin: httpx.Client) -> None:
    """GET of the workspace returns its identity, its tier with limits, its policies, and item counts."""
    shown = changeable_service.create_client("viewer@t").get("/oi-api/workspace")
    body = shown.json()
    assert shown.headers["etag"] == body["etag"]
    assert (body["id"], body["tier"]) == ("plant-t", "enterprise")
    assert body["limits"] == {"requestsPerMinute": 1_000_000, "concurrent": 1_000}
    assert len(body["policies"]["provenance"]["reasonCategories"]) == 7
    assert body["stats"]["surfaceCount"] == len(admin.get("/oi-api/surfaces").json()["surfaces"])
    assert body["stats"]["memberCount"] == len(admin.get("/oi-api/team").json()["members"])


def test_one_put_changes_name_and_policies_of_the_workspace(admin: httpx.Client) -> None:
    """One PUT changes the name and the policies of the workspace; each changed part has an audit event."""
    before = admin.get("/oi-api/workspace").json()
    provenance = {"requireApproval": True, "reasonCategories": ["drift"]}
    body = {"name": "Renamed plant", "policies": {"provenance": provenance, "quotas": {"jobsPerPrincipal": 3}}}
    changed = admin.put("/oi-api/workspace", json=body, headers={"If-Match": before["etag"]})
    assert changed.status_code == 200, changed.text
    assert (changed.json()["name"], changed.json()["description"]) == ("Renamed plant", None)
    assert changed.json()["policies"]["quotas"]["jobsPerPrincipal"] == 3
    assert admin.get("/oi-api/provenance/reason-categories").json() == {"categories": ["drift"]}
    actions = [event["ActionType"] for event in list_events(admin, "PlatformConfig", "plant-t")]
    assert actions[-2:] == ["Catalog.Workspace.Updated", "Catalog.Settings.Updated"]
    check_problem(
        admin.put("/oi-api/workspace", json=body, headers={"If-Match": before["etag"]}), 412, "PRECONDITION_FAILED"
    )
    whole = {**changed.json(), "name": before["name"], "policies": before["policies"]}
    restored = admin.put("/oi-api/workspace", json=whole)
    assert restored.status_code == 200, restored.text
    whole = restored.json()
    for name, value in (("id", "other"), ("tier", "free"), ("limits", {"requestsPerMinute": 1, "concurrent": 1})):
        assert check_failing_fields(admin.put("/oi-api/workspace", json={**whole, name: value})) == [name]
    for policies, field in (
        ({"provenance": {"reasonCategories": ["a", "a"]}}, "policies.provenance.reasonCategories[1]"),
        ({"provenance": {}, "quotas": {"jobsPerPrincipal": 100_000}}, "policies.quotas.jobsPerPrincipal"),
        ({"provenence": {}}, "policies.provenence"),
    ):
        assert check_failing_fields(admin.put("/oi-api/workspace", json={**whole, "policies": policies})) == [field]
    off = admin.put("/oi-api/workspace", json={"name": "x", "policies": {"provenance": None}})
    check_problem(off, 409, "PROVENANCE_REQUIRED")


def test_all_declared_data_stores_are_listed(changeable_service: Service) -> None:
    """The list of data stores contains every store with its databases and declared containers."""
    stores = changeable_service.create_client("viewer@t").get("/oi-api/data-stores").json()["dataStores"]
    assert [store["lookup"] for store in stores] == ["lab", "mes"]
    orders, locked = stores[1]["databases"]
    assert (orders["lookup"], orders["access"], locked["access"]) == ("orders", "granted", "refused")
    recipes = next(one for one in orders["containers"] if one["name"] == "recipes")
    assert (recipes["partitionKeyPath"], recipes["dataClass"], recipes["provisioned"]) == ("/id", "reference", True)


def test_put_changes_data_class_and_exposure_of_a_container(changeable_service: Service, admin: httpx.Client) -> None:
    """A PUT changes the data class and the exposed operations of a container, but not its partition key path."""
    documents = "/oi-api/data-stores/mes/databases/orders/tables/recipes"
    read = admin.get(RECORD)
    assert read.headers["etag"] == read.json()["etag"]
    check_problem(admin.post(documents, json={"id": "1"}), 403, "OPERATION_NOT_EXPOSED")
    changed = admin.put(RECORD, json={"expose": ["create", "list"]}, headers={"If-Match": read.headers["etag"]})
    assert changed.status_code == 200, changed.text
    assert (changed.json()["expose"], changed.json()["dataClass"]) == (["create", "list"], "reference")
    assert admin.post(documents, json={"id": "1"}).status_code == 201
    check_problem(admin.put(RECORD, json={}, headers={"If-Match": read.headers["etag"]}), 412, "PRECONDITION_FAILED")
    assert admin.put(RECORD, json=changed.json()).json() == changed.json()
    check_problem(admin.put(RECORD, json={"partitionKeyPath": "/line"}), 409, "PARTITION_KEY_IMMUTABLE")
    assert check_failing_fields(admin.put(RECORD, json={"dataClass": "evidence"}), code="DATA_CLASS_REFUSED") == [
        "dataClass"
    ]
    assert check_failing_fields(admin.put(RECORD, json={"expose": ["drop"], "name": "x"})) == ["name", "expose[0]"]
    for path, code in (("orders/containers/none", "CONTAINER_NOT_FOUND"), ("none/containers/x", "DATABASE_NOT_FOUND")):
        for method in ("GET", "PUT"):
            body: dict[str, Any] | None = {} if method == "PUT" else None
            check_problem(admin.request(method, f"/oi-api/data-stores/{path}", json=body), 404, code)
    check_problem(changeable_service.create_client("editor@t").put(RECORD, json={}), 403, "ACCESS_RIGHT_MISSING")
    events = list_events(admin, "PlatformConfig", "orders/recipes")
    assert [event["ActionType"] for event in events][-1] == "Catalog.Container.Updated"
    admin.put(RECORD, json={"expose": ["list", "read"]})


def test_a_rejected_draft_cannot_be_approved(changeable_service: Service, admin: httpx.Client) -> None:
    """After a rejection, the draft shows the rejection and cannot be approved until the next PUT."""
    editor, path = changeable_service.create_client("editor@t"), "/oi-api/warm-queries/rejected"
    body = {"name": "Rejected", "surface": "hall", "kql": "Telemetry | count"}
    draft = editor.put(path, json=body).json()
    assert draft["rejection"] is None
    assert check_failing_fields(admin.post(f"{path}/reject", json={"comment": " "})) == ["comment"]
    assert check_failing_fields(admin.post(f"{path}/reject", json={"coment": "x"})) == ["coment", "comment"]
    comment = {"comment": "Wrong unit"}
    stale = admin.post(f"{path}/reject", json=comment, headers={"If-Match": '"x"'})
    check_problem(stale, 412, "PRECONDITION_FAILED")
    headers = {"If-Match": draft["etag"], "Idempotency-Key": "reject-1"}
    rejected = admin.post(f"{path}/reject", json=comment, headers=headers)
    assert rejected.status_code == 200, rejected.text
    assert admin.post(f"{path}/reject", json=comment, headers=headers).json() == rejected.json()
    rejection = rejected.json()["rejection"]
    assert (rejection["rejectedBy"], rejection["comment"]) == ("admin@t", "Wrong unit")
    assert rejected.json()["etag"] == rejected.headers["etag"] != draft["etag"]
    check_problem(admin.post(f"{path}/approve"), 409, "WARM_QUERY_REJECTED")
    edited = editor.put(path, json={**rejected.json(), "description": "in bar"})
    assert (edited.status_code, edited.json()["rejection"]) == (200, None)
    assert admin.post(f"{path}/approve").status_code == 200
    check_problem(admin.post(f"{path}/reject", json=comment), 409, "WARM_QUERY_APPROVED")
    actions = [event["ActionType"] for event in list_events(admin, "PlatformConfig", "rejected")]
    verbs = ["Created", "Rejected", "Updated", "Approved"]
    assert actions == [f"Catalog.WarmQuery.{verb}" for verb in verbs]
    assert admin.put(path, json=body).status_code == 200
    check_problem(admin.post(f"{path}/reject", json=comment), 403, "MAKER_CHECKER_VIOLATION")
    check_problem(admin.post("/oi-api/warm-queries/nothing/reject", json=comment), 404, "WARM_QUERY_NOT_FOUND")
    assert editor.delete(path).status_code == 204


def create_key(client: httpx.Client, member: str) -> dict[str, Any]:
    """Create an API key for the given member and return the reply."""
    created: dict[str, Any] = client.post("/workspace/api/keys", json={"name": "key", "principal": member}).json()
    return created


def request_whoami_status(client: httpx.Client) -> int:
    """Send a whoami request, which requires only a valid credential, and return the status."""
    return client.get("/workspace/api/keys/whoami").status_code


def test_an_enabled_connection_is_connecting_until_a_message_arrives(admin: httpx.Client) -> None:
    """A connection that is enabled or created again has the status CONNECTING until its next message."""

    def send_message() -> None:
        assert admin.post("/oi-api/telemetry/reused", json={"value": 1}).status_code == 202
        wait_until(
            lambda: admin.get("/oi-api/connections/reused").json()["status"], lambda status: status == "CONNECTED"
        )

    put_definition(admin, "connections", "reused")
    send_message()
    assert put_definition(admin, "connections", "reused", enabled=False).json()["status"] == "DISCONNECTED"
    assert put_definition(admin, "connections", "reused", enabled=True).json()["status"] == "CONNECTING"
    send_message()
    assert put_definition(admin, "connections", "reused", name="Reused again").json()["status"] == "CONNECTED"
    assert admin.delete("/oi-api/connections/reused").status_code == 204
    assert put_definition(admin, "connections", "reused").json()["status"] == "CONNECTING"


def test_credentials_of_a_disabled_member_are_rejected(changeable_service: Service, admin: httpx.Client) -> None:
    """API keys and tokens of a disabled member are rejected.

    After the member is enabled again, only the API keys work.
    """
    assert put_definition(admin, "team", "paused@t").status_code == 201
    by_key = changeable_service.create_anonymous_client(create_key(admin, "paused@t")["apiKey"])
    by_token = changeable_service.create_anonymous_client(by_key.get("/workspace/api/keys/jwt").json()["Token"])
    assert (request_whoami_status(by_key), request_whoami_status(by_token)) == (200, 200)
    assert put_definition(admin, "team", "paused@t", enabled=False).status_code == 200
    for client in (by_key, by_token):
        wait_until(lambda client=client: request_whoami_status(client), lambda status: status == 401, 15)  # type: ignore[misc]
    assert put_definition(admin, "team", "paused@t", enabled=True).status_code == 200
    wait_until(lambda: request_whoami_status(by_key), lambda status: status == 200, 15)
    assert request_whoami_status(by_token) == 401
    fresh = changeable_service.create_anonymous_client(by_key.get("/workspace/api/keys/jwt").json()["Token"])
    assert request_whoami_status(fresh) == 200


def test_credentials_of_a_removed_member_are_rejected(changeable_service: Service, admin: httpx.Client) -> None:
    """Keys and tokens of a removed member are rejected for ever; no new member can get the id in any spelling."""
    assert put_definition(admin, "team", "former@t").status_code == 201
    key = create_key(admin, "former@t")
    by_token = changeable_service.create_anonymous_client(
        changeable_service.create_anonymous_client(key["apiKey"]).get("/workspace/api/keys/jwt").json()["Token"]
    )
    assert admin.delete("/oi-api/team/former@t").status_code == 204
    for client in (changeable_service.create_anonymous_client(key["apiKey"]), by_token):
        wait_until(lambda client=client: request_whoami_status(client), lambda status: status == 401, 15)  # type: ignore[misc]
    for again in ("former@t", "FORMER@t"):
        check_problem(put_definition(admin, "team", again), 409, "MEMBER_ID_RETIRED")
    listed = admin.get("/workspace/api/keys").json()["keys"]
    assert next(each for each in listed if each["keyId"] == key["keyId"])["revokedAt"] is not None


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PUT", "/oi-api/team/n@t", MEMBER, "name"),
        ("PUT", "/oi-api/connections/n", CONNECTION, "name"),
        ("PUT", "/oi-api/surfaces/n", SURFACE, "name"),
        ("PUT", "/oi-api/alert-rules/n", RULE, "name"),
        ("PUT", "/oi-api/warm-queries/n", {"surface": "hall", "kql": "Telemetry | count"}, "name"),
        ("POST", "/workspace/api/keys", {}, "name"),
        ("PUT", "/oi-api/team/a%E2%80%8Bb", MEMBER, "id"),
    ],
    ids=["member", "connection", "surface", "alert rule", "query", "key", "member id"],
)
def test_names_with_invisible_characters_are_rejected(
    admin: httpx.Client, method: str, path: str, body: dict[str, Any], field: str
) -> None:
    """A name or member id is rejected if it contains a format character or is not in Unicode form NFC."""
    for name in ("a\u200bb", "Ku\u0308hlung", " a"):
        reply = admin.request(method, path, json={**body, **({"name": name} if field == "name" else {})})
        assert check_failing_fields(reply) == [field]
    if method == "PUT":
        assert admin.get(path).status_code in (400, 404)


def test_the_creator_of_a_key_cannot_decide_about_own_edits(changeable_service: Service, admin: httpx.Client) -> None:
    """An editor who created an API key of another member cannot use it to approve or reject the editor's own edits."""
    maker = create_caller(changeable_service, admin, "maker@t", role="Admin")
    assert put_definition(admin, "team", "checker@t", role="Admin").status_code == 201
    by_maker = changeable_service.create_anonymous_client(create_key(maker, "checker@t")["apiKey"])
    checker = changeable_service.create_anonymous_client(by_maker.get("/workspace/api/keys/jwt").json()["Token"])
    body = {"name": "Own work", "surface": "hall", "kql": "Telemetry | count"}
    assert maker.put("/oi-api/warm-queries/own-work", json=body).status_code == 201
    path = "/oi-api/warm-queries/own-work"
    check_problem(checker.post(f"{path}/approve"), 403, "MAKER_CHECKER_VIOLATION")
    check_problem(checker.post(f"{path}/reject", json={"comment": "x"}), 403, "MAKER_CHECKER_VIOLATION")
    amendment = {
        "ScopeKey": "keys",
        "EntityType": "T",
        "EntityID": "1",
        "OriginalRecord": {"a": 1},
        "AmendedRecord": {"a": 2},
        "ChangedFields": ["a"],
        "ReasonCategory": "other",
        "ReasonText": "x",
    }
    created = maker.post("/oi-api/provenance/amendments", json=amendment).json()
    decide = f"/oi-api/provenance/amendments/{created['RecordID']}"
    for action in ("approve", "reject"):
        check_problem(checker.post(f"{decide}/{action}?scopeKey=keys"), 403, "MAKER_CHECKER_VIOLATION")
    by_admin = changeable_service.create_anonymous_client(create_key(admin, "checker@t")["apiKey"])
    independent = changeable_service.create_anonymous_client(by_admin.get("/workspace/api/keys/jwt").json()["Token"])
    assert independent.post(f"{path}/approve").status_code == 200
    assert independent.post(f"{decide}/approve?scopeKey=keys").status_code == 200


def test_the_creator_of_a_service_key_cannot_decide_about_edits_of_the_service(
    changeable_service: Service, admin: httpx.Client
) -> None:
    """The person who created a service's API key cannot approve or reject the edits that the service makes with it.

    This is also true after the service became a person.
    """
    service = create_caller(changeable_service, admin, "deployer", role="Admin", service=True)
    body = {"name": "Work of a service", "surface": "hall", "kql": "Telemetry | count"}
    path = "/oi-api/warm-queries/work-of-a-service"
    assert service.put(path, json=body).status_code == 201
    check_problem(admin.post(f"{path}/approve"), 403, "MAKER_CHECKER_VIOLATION")
    check_problem(admin.post(f"{path}/reject", json={"comment": "x"}), 403, "MAKER_CHECKER_VIOLATION")
    other = create_caller(changeable_service, admin, "other-checker@t", role="Admin")
    check_problem(other.post(f"{path}/approve"), 403, "MAKER_CHECKER_VIOLATION")
    independent = changeable_service.create_anonymous_client(create_key(other, "other-checker@t")["apiKey"])
    check_problem(
        changeable_service.create_anonymous_client(independent.get("/workspace/api/keys/jwt").json()["Token"]).post(
            f"{path}/approve"
        ),
        403,
        "MAKER_CHECKER_VIOLATION",
    )
    assert put_definition(admin, "team", "deployer", role="Admin", service=False).status_code == 200
    check_problem(admin.post(f"{path}/approve"), 403, "MAKER_CHECKER_VIOLATION")
    editor = {"name": "Editor", "role": "Editor"}
    assert (
        put_definition(admin, "team", "editor@t", **editor, rights=["Workspace.WarmQuery.Approve"]).status_code == 200
    )
    assert changeable_service.create_client("editor@t").post(f"{path}/approve").status_code == 200
    assert put_definition(admin, "team", "editor@t", **editor, rights=[]).status_code == 200


def test_a_service_token_can_neither_approve_nor_reject(changeable_service: Service, admin: httpx.Client) -> None:
    """The token of a service member can neither approve nor reject a draft query."""
    service = create_caller(changeable_service, admin, "decider", role="Admin", service=True)
    for action, body in (("approve", None), ("reject", {"comment": "x"})):
        check_problem(service.post(f"/oi-api/warm-queries/draft/{action}", json=body), 401, "UNAUTHENTICATED")
