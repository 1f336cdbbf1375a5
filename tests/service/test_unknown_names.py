"""Tests of misspelt parameters and misspelt body fields over HTTP."""

import re
from typing import Any

import pytest

from functions import GROUPS
from shared.http.operations import Operation, RawBody
from shared.http.unknown_names import UnknownNames
from tests.service.local_service import Service, check_failing_fields, check_problem
from tests.service.stream_client import build_stream_url, read_rejection, request_token

OPERATIONS = [one for group in GROUPS for one in group.operations]
REFUSING = [one for one in OPERATIONS if one.unknown is UnknownNames.REJECT]
KEYS = "/workspace/api/keys"
AD_HOC = "/oi-api/warm-queries"
DAY = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}


def group_messages_by_field(reply: Any) -> dict[str, str]:
    """Return the messages of an error reply by field."""
    return {error["field"]: error["message"] for error in check_problem(reply, 400, "INVALID_REQUEST")["errors"]}


@pytest.mark.parametrize("operation", REFUSING, ids=[f"{one.method} /{one.route}" for one in REFUSING])
def test_a_400_reply_lists_unknown_parameters_and_fields(service: Service, operation: Operation) -> None:
    """A 400 reply lists unknown parameters and unknown body fields together."""
    path = re.sub(r"\{\*?[^{}]+\}", "x1", operation.route)
    body = {"zzMember": 1} if operation.takes_body else None
    reply = service.create_client("admin@t").request(
        operation.method, f"/{path}", params={"zzParameter": "1"}, json=body
    )
    # A raw body is parsed after the parameters; the tests of workspace documents cover its fields.
    checks_body = operation.takes_body and operation.body is not RawBody
    expected = {"zzParameter", "zzMember"} if checks_body else {"zzParameter"}
    assert expected <= {
        name for name, message in group_messages_by_field(reply).items() if message.startswith("Unknown ")
    }


def test_misspelt_rights_create_no_credential(service: Service) -> None:
    """A request for a key or token is rejected if the parameter with the access rights is misspelt."""
    admin = service.create_client("admin@t")
    before = len(admin.get(KEYS).json()["keys"])
    reply = admin.post(KEYS, json={"name": "p2", "accessRights": ["Workspace.Catalog.Read"]})
    assert group_messages_by_field(reply) == {"accessRights": "Unknown field `accessRights`; did you mean `rights`?"}
    assert len(admin.get(KEYS).json()["keys"]) == before
    reply = admin.get(f"{KEYS}/jwt?scope=Workspace.Catalog.Read&Scopes=Workspace.Catalog.Read&minute=5")
    assert group_messages_by_field(reply) == {
        "scope": "Unknown parameter `scope`; did you mean `scopes`?",
        "Scopes": "Unknown parameter `Scopes`; did you mean `scopes`?",
        "minute": "Unknown parameter `minute`; did you mean `minutes`?",
    }
    reply = admin.get(f"{KEYS}/jwt?scopes=Workspace.Catalog.Read&scopes=Workspace.Keys.Manage")
    assert group_messages_by_field(reply) == {"scopes": "is repeated; send it once"}


@pytest.mark.parametrize("path", ["/oi-api/warm-queries/newest", "/api/workspaces/explorer/warm-queries/newest"])
def test_unknown_parameters_of_warm_queries_are_rejected(service: Service, path: str) -> None:
    """Parameters with the prefix `p.` belong to the query; other unknown parameters are rejected."""
    viewer = service.create_client("viewer@t")
    assert viewer.get(path, params={"p.connection": "press", "limit": 1}).status_code == 200
    assert check_failing_fields(viewer.get(path, params={"p.conection": "press"})) == ["p.conection", "p.connection"]
    reply = viewer.get(path, params={"p.connection": "press", "timerange": "PT1H", "connection": "press"})
    assert set(group_messages_by_field(reply)) == {"timerange", "connection"}


def test_aliases_of_body_fields_are_accepted(service: Service) -> None:
    """A body may contain the alias `Query`, `from` or `to`, but not together with the name that it replaces."""
    editor = service.create_client("editor@t")
    assert editor.post(AD_HOC, json={"Query": "Telemetry | take 0"}).status_code == 200
    reply = editor.post(AD_HOC, json={"Query": "Telemetry | take 0", "query": "Telemetry | take 1"})
    assert group_messages_by_field(reply) == {"Query": "repeats `query`; send only one of them"}
    reply = editor.post(AD_HOC, json={"query": "Telemetry | take 0", "format": "csv"})
    assert group_messages_by_field(reply) == {"format": "Unknown field `format`; send `format` as a query parameter."}
    path = "/oi-api/downloads/data-connections/press"
    reply = editor.post(path, json={"dateRange": {"from": DAY["start"], "to": DAY["end"]}})
    assert reply.status_code == 202
    reply = editor.post(path, json={"dateRange": {**DAY, "until": DAY["end"]}, "fromat": "csv"})
    assert group_messages_by_field(reply) == {
        "dateRange.until": "Unknown field `until`; known: `start`, `end`.",
        "fromat": "Unknown field `fromat`; did you mean `format`?",
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/oi-api/warm-queries"),
        ("PUT", "/oi-api/warm-queries/draft"),
        ("POST", "/oi-api/data-stores/orders/containers"),
        ("POST", "/workspace/api/keys"),
    ],
)
def test_many_unknown_body_fields_are_rejected(service: Service, method: str, path: str) -> None:
    """If a body has more unknown fields than an error reply can list, it is rejected."""
    body = {f"k{number}": 1 for number in range(1_000)}
    reply = service.create_client("admin@t").request(method, path, json=body)
    assert "body" in group_messages_by_field(reply) or len(group_messages_by_field(reply)) >= 1_000


@pytest.mark.parametrize("name", ["scopeKey", "ScopeKey"])
def test_rejecting_an_amendment_accepts_both_names_of_the_scope(service: Service, name: str) -> None:
    """For the rejection of an amendment, the scope in the query string may be named `scopeKey` or `ScopeKey`."""
    path = "/oi-api/provenance/amendments/000000000001/reject"
    reply = service.create_client("admin@t").post(path, params={name: "no-such-scope"}, json={"RejectedBy": "x"})
    check_problem(reply, 404, "AMENDMENT_NOT_FOUND")


async def test_misspelt_stream_filters_are_rejected(service: Service) -> None:
    """A misspelt filter is rejected before the upgrade, because the stream would return all messages without it."""
    bearer = request_token(service, "viewer@t")
    reply = await read_rejection(build_stream_url(service, conection="press"), bearer)
    assert group_messages_by_field(reply) == {"conection": "Unknown parameter `conection`; did you mean `connection`?"}
    viewer = service.create_client("viewer@t")
    assert check_failing_fields(viewer.get("/oi-api/live-stream/negotiate?surfaces=hall")) == ["surfaces"]
    assert service.create_anonymous_client().get("/oi-api/live-stream", params={"token": bearer}).status_code == 426
    assert check_failing_fields(viewer.get("/oi-api/live-stream?token=a&token=b")) == ["token"]


def test_audit_lists_report_ignored_parameters(service: Service) -> None:
    """Lists and exports of the audit log ignore unknown parameters and list them in a header."""
    admin = service.create_client("admin@t")
    for path in ("events/query", "events/export"):
        reply = admin.get(f"/oi-api/provenance/{path}", params={"actiontype": "x", "limit": "none"})
        assert (reply.status_code, reply.headers["x-provenance-ignored"]) == (200, "limit, actiontype")
    reply = admin.get("/oi-api/provenance/amendments", params={"scopeKey": "s", "EntityId": "x"})
    assert (reply.status_code, reply.headers["x-provenance-ignored"]) == (200, "EntityId")


def test_a_definition_can_be_put_unchanged(own_module_service: Service) -> None:
    """A PUT may contain fields that the service sets, with their current values; other values are rejected."""
    editor, path = own_module_service.create_client("editor@t"), "/oi-api/warm-queries/per-minute"
    [approved] = [one for one in editor.get(AD_HOC).json()["warmQueries"] if one["lookup"] == "per-minute"]
    assert approved["approval"] is not None
    read = editor.put(path, json=approved).json()
    again = editor.put(path, json=read)
    assert (again.status_code, again.json()["approval"]) == (200, None), again.text
    late = editor.put(path, json={name: value for name, value in read.items() if name != "etag"})
    assert late.status_code == 200, "updatedAt is ignored, because every write changes it"
    unread = editor.put(path, json={**late.json(), "etag": '"other"'})
    assert set(group_messages_by_field(unread)) == {"etag"}
    stale = {**late.json(), "createdAt": "2020-01-01T00:00:00Z", "editedBy": "somebody", "lookup": "other"}
    assert group_messages_by_field(editor.put(path, json=stale)) == dict.fromkeys(
        ("createdAt", "editedBy", "lookup"), "is read-only; omit it or send the stored value"
    )
    copy = {name: read[name] for name in ("name", "surface", "kql", "parameters", "approval", "createdAt")}
    assert set(group_messages_by_field(editor.put("/oi-api/warm-queries/copied", json=copy))) == {"createdAt"}
    parameters = [{"name": "device", "type": "string", "defualt": ""}]
    reply = editor.put(
        path, json={"name": "Per minute", "surface": "hall", "kql": "Telemetry", "parameters": parameters}
    )
    assert group_messages_by_field(reply) == {
        "parameters[0].defualt": "Unknown field `defualt`; did you mean `default`?"
    }


def test_event_and_telemetry_routes_ignore_unknown_names(service: Service) -> None:
    """Routes for events, telemetry, pages and API descriptions ignore unknown parameters and fields."""
    admin = service.create_client("admin@t")
    event = {"ActionType": "A", "EntityType": "T", "EntityID": "1", "RecordID": "9", "Anything": 1}
    assert admin.post("/oi-api/provenance/events?any=1", json=event).status_code == 201
    assert admin.post("/oi-api/telemetry/press?any=1", json={"any": 1}).status_code == 202
    assert admin.get("/oi-api/openapi?any=1").status_code == 200
    assert admin.get("/healthz?any=1").status_code == 200
