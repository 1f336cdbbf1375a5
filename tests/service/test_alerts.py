"""Tests of alert rules and alerts over HTTP."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until

KQL = """Telemetry
| where ConnectionLookup == "press"
| summarize arg_max(Timestamp, Payload) by DeviceId
| project DeviceId, level = todouble(Payload.level)"""
RULE: dict[str, Any] = {
    "name": "Level too high",
    "severity": "critical",
    "surface": "hall",
    "kind": "threshold",
    "every": "PT15S",
    "query": "levels",
    "timeRange": "PT1H",
    "condition": {"column": "level", "operator": "gt", "value": 5},
    "groupBy": ["DeviceId"],
}
SILENT: dict[str, Any] = {
    "name": "Lathe is silent",
    "severity": "info",
    "surface": "hall",
    "kind": "absence",
    "every": "P1D",
    "connections": ["lathe"],
    "after": "PT0.001S",
}


@pytest.fixture(scope="module")
def plant(own_module_service: Service) -> Service:
    """Return a service that the tests of this module may change."""
    return own_module_service


@pytest.fixture(scope="module")
def editor(plant: Service) -> httpx.Client:
    """Return a client with a token of an editor."""
    return plant.caller("editor@t")


@pytest.fixture(scope="module")
def firing(plant: Service, editor: httpx.Client) -> Iterator[dict[str, Any]]:
    """Return the firing alert of a rule over an approved query with one device above its limit."""
    query = {"name": "Levels", "surface": "hall", "kql": KQL}
    assert editor.put("/oi-api/warm-queries/levels", json=query).status_code == 201
    assert plant.caller("admin@t").post("/oi-api/warm-queries/levels/approve").status_code == 200
    now = datetime.now(UTC).isoformat()
    messages = [{"timestamp": now, "deviceId": f"press-{n}", "level": 4 * n} for n in range(3)]
    assert editor.post("/oi-api/telemetry/press", json=messages).status_code == 202
    rows = wait_until(lambda: editor.get("/oi-api/warm-queries/levels").json()["results"], lambda rows: len(rows) == 3)
    assert rows
    assert editor.put("/oi-api/alert-rules/level-high", json=RULE).status_code == 201
    yield wait_for_alert(editor, "level-high", "firing")
    editor.delete("/oi-api/alert-rules/level-high")


def list_alerts(client: httpx.Client, rule: str, query: str = "") -> list[dict[str, Any]]:
    """Return the alerts of a rule."""
    alerts: list[dict[str, Any]] = client.get(f"/oi-api/alerts?limit=1000{query}").json()["alerts"]
    return [alert for alert in alerts if alert["rule"] == rule]


def wait_for_alert(client: httpx.Client, rule: str, state: str) -> dict[str, Any]:
    """Return the newest alert of a rule once it has a state."""
    alerts: list[dict[str, Any]] = wait_until(
        lambda: list_alerts(client, rule), lambda found: found and found[0]["state"] == state
    )
    return alerts[0]


def test_a_value_above_its_limit_fires(editor: httpx.Client, firing: dict[str, Any]) -> None:
    """Only the group above the limit has an alert; the rule shows its state and times."""
    assert (firing["labels"], firing["value"], firing["severity"]) == ({"DeviceId": "press-2"}, 8.0, "critical")
    assert (firing["startedAt"], firing["resolvedAt"], firing["acknowledgedBy"]) == (firing["firedAt"], None, None)
    rule = editor.get("/oi-api/alert-rules/level-high").json()
    assert (rule["state"], rule["error"]) == ("firing", None)
    assert rule["lastEvaluatedAt"] < rule["nextEvaluationAt"]
    [listed] = [one for one in editor.get("/oi-api/alert-rules").json()["rules"] if one["lookup"] == "level-high"]
    assert listed["state"] == "firing"


def test_a_trial_shows_every_group(plant: Service, editor: httpx.Client, firing: dict[str, Any]) -> None:
    """A trial evaluation lists the groups with their values and stores nothing; it needs the right to manage."""
    reply = editor.post("/oi-api/alert-rules/level-high/evaluate")
    assert reply.status_code == 200, reply.text
    assert {one["labels"]["DeviceId"]: one["wouldFire"] for one in reply.json()["alerts"]} == {
        "press-0": False,
        "press-1": False,
        "press-2": True,
    }
    assert (reply.json()["rows"], reply.json()["error"]) == (3, None)
    assert [alert["id"] for alert in list_alerts(editor, "level-high")] == [firing["id"]]
    check_problem(editor.post("/oi-api/alert-rules/none/evaluate"), 404, "ALERT_RULE_NOT_FOUND")
    viewer = plant.caller("viewer@t")
    check_problem(viewer.post("/oi-api/alert-rules/level-high/evaluate"), 403, "ACCESS_RIGHT_MISSING")
    assert check_failing_fields(editor.post("/oi-api/alert-rules/level-high/evaluate", json={"dry": True})) == ["dry"]


def test_an_acknowledgement_is_one_audit_event(plant: Service, editor: httpx.Client, firing: dict[str, Any]) -> None:
    """The first acknowledgement is stored and audited in the scope `alerts`; a repetition changes nothing."""
    path, admin = f"/oi-api/alerts/{firing['id']}/acknowledge", plant.caller("admin@t")
    assert check_failing_fields(editor.post(path, json={"coment": "x"})) == ["coment"]
    seen = editor.post(path, json={"comment": "seen"})
    assert seen.status_code == 200, seen.text
    assert (seen.json()["acknowledgedBy"], seen.json()["comment"]) == ("editor@t", "seen")
    assert admin.post(path).json() == seen.json()
    events = admin.get("/oi-api/provenance/events/query?target=DomainEvents&scopeKey=alerts").json()
    assert [(event["ActionType"], event["EntityID"], event["UserID"]) for event in events] == [
        ("Alert.Acknowledged", firing["id"], "editor@t")
    ]
    check_problem(plant.caller("viewer@t").post(path), 403, "ACCESS_RIGHT_MISSING")
    check_problem(editor.post("/oi-api/alerts/unknown/acknowledge"), 404, "ALERT_NOT_FOUND")


def test_alerts_are_filtered_and_paged(editor: httpx.Client, firing: dict[str, Any]) -> None:
    """Filters select by state, severity and surface; a cursor belongs to its filters."""
    assert editor.put("/oi-api/alert-rules/silent", json=SILENT).status_code == 201
    silent = wait_for_alert(editor, "silent", "firing")
    assert silent["labels"] == {"connection": "lathe"}
    assert [alert["id"] for alert in list_alerts(editor, "silent", "&severity=info&surface=hall&state=firing")]
    assert list_alerts(editor, "silent", "&severity=critical") == []
    assert list_alerts(editor, "silent", "&surface=nowhere") == []
    first = editor.get("/oi-api/alerts?limit=1").json()
    assert [alert["id"] for alert in first["alerts"]] == [silent["id"]]
    second = editor.get(f"/oi-api/alerts?limit=1&cursor={first['cursor']}").json()
    assert [alert["id"] for alert in second["alerts"]] == [firing["id"]]
    other = editor.get(f"/oi-api/alerts?limit=1&state=firing&cursor={first['cursor']}")
    assert check_failing_fields(other) == ["cursor"]
    disabled = {**SILENT, "enabled": False}
    assert editor.put("/oi-api/alert-rules/silent", json=disabled).json()["nextEvaluationAt"] is None
    wait_for_alert(editor, "silent", "resolved")
    assert editor.delete("/oi-api/alert-rules/silent").status_code == 204


@pytest.mark.parametrize("query", ["state=open", "severity=high", "surface=a%20b", "limit=0", "limit=1001", "cursor=x"])
def test_invalid_parameters_are_named(editor: httpx.Client, query: str) -> None:
    """The error about an invalid parameter of the list names the parameter and its rule."""
    assert check_failing_fields(editor.get(f"/oi-api/alerts?{query}")) == [query.partition("=")[0]]


def test_a_rule_over_a_draft_is_in_error(editor: httpx.Client) -> None:
    """A draft is accepted at PUT, and the rule is in error until the query is approved."""
    rule = {**RULE, "query": "draft", "condition": {"rows": "any"}, "groupBy": []}
    assert editor.put("/oi-api/alert-rules/over-draft", json=rule).status_code == 201
    stored = wait_until(
        lambda: editor.get("/oi-api/alert-rules/over-draft").json(), lambda found: found["state"] == "error"
    )
    assert "is a draft" in stored["error"]
    trial = editor.post("/oi-api/alert-rules/over-draft/evaluate").json()
    assert (trial["alerts"], trial["error"]) == ([], stored["error"])
    assert list_alerts(editor, "over-draft") == []
    assert editor.delete("/oi-api/alert-rules/over-draft").status_code == 204


def test_a_deleted_rule_resolves_its_alerts(editor: httpx.Client, firing: dict[str, Any]) -> None:
    """After the deletion of its rule an alert is resolved and cannot be acknowledged."""
    assert editor.delete("/oi-api/alert-rules/level-high").status_code == 204
    assert wait_for_alert(editor, "level-high", "resolved")["id"] == firing["id"]
    check_problem(editor.post(f"/oi-api/alerts/{firing['id']}/acknowledge"), 409, "ALERT_RESOLVED")
