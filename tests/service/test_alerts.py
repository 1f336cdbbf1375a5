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
VALUES_KQL = """Telemetry
| where ConnectionLookup == "press"
| summarize arg_max(Timestamp, Payload) by DeviceId
| extend level = todouble(Payload.level), even = tolong(Payload.level) % 8 == 0, nothing = todouble(Payload.nothing)
| extend batch = todynamic(iff(DeviceId == "press-0", '"1.1"', '"1.10"')), quoted = todynamic('"9"')
| project DeviceId, level, even, text = tostring(level), nothing, nan = real(nan), endless = real(+inf), Timestamp,
    batch, quoted"""
MANY_KQL = 'range number from 1 to size step 1 | project device = strcat("d-", tostring(number)), number'
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
    return plant.create_client("editor@t")


@pytest.fixture(scope="module")
def firing_alert(plant: Service, editor: httpx.Client) -> Iterator[dict[str, Any]]:
    """Return the firing alert of a rule that evaluates an approved query, in which one device is above the limit."""
    query = {"name": "Levels", "surface": "hall", "kql": KQL}
    assert editor.put("/oi-api/warm-queries/levels", json=query).status_code == 201
    assert plant.create_client("admin@t").post("/oi-api/warm-queries/levels/approve").status_code == 200
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
    """Wait until the newest alert of a rule has the given state, and return it."""
    alerts: list[dict[str, Any]] = wait_until(
        lambda: list_alerts(client, rule), lambda found: found and found[0]["state"] == state
    )
    return alerts[0]


def test_an_alert_fires_for_a_group_above_the_limit(editor: httpx.Client, firing_alert: dict[str, Any]) -> None:
    """An alert fires only for the group whose value is above the limit.

    The rule shows its state and evaluation times.
    """
    assert (firing_alert["labels"], firing_alert["value"], firing_alert["severity"]) == (
        {"DeviceId": "press-2"},
        8.0,
        "critical",
    )
    assert (firing_alert["startedAt"], firing_alert["resolvedAt"], firing_alert["acknowledgedBy"]) == (
        firing_alert["firedAt"],
        None,
        None,
    )
    rule = editor.get("/oi-api/alert-rules/level-high").json()
    assert (rule["state"], rule["error"]) == ("firing", None)
    assert rule["lastEvaluatedAt"] < rule["nextEvaluationAt"]
    [listed] = [one for one in editor.get("/oi-api/alert-rules").json()["rules"] if one["lookup"] == "level-high"]
    assert listed["state"] == "firing"


def test_a_trial_of_an_alert_rule_shows_every_group(
    plant: Service, editor: httpx.Client, firing_alert: dict[str, Any]
) -> None:
    """A trial of a rule lists each group with its value and stores nothing; it requires the right to manage alerts."""
    reply = editor.post("/oi-api/alert-rules/level-high/evaluate")
    assert reply.status_code == 200, reply.text
    assert {one["labels"]["DeviceId"]: one["wouldFire"] for one in reply.json()["alerts"]} == {
        "press-0": False,
        "press-1": False,
        "press-2": True,
    }
    assert (reply.json()["rows"], reply.json()["error"]) == (3, None)
    assert [alert["id"] for alert in list_alerts(editor, "level-high")] == [firing_alert["id"]]
    check_problem(editor.post("/oi-api/alert-rules/none/evaluate"), 404, "ALERT_RULE_NOT_FOUND")
    viewer = plant.create_client("viewer@t")
    check_problem(viewer.post("/oi-api/alert-rules/level-high/evaluate"), 403, "ACCESS_RIGHT_MISSING")
    assert check_failing_fields(editor.post("/oi-api/alert-rules/level-high/evaluate", json={"dry": True})) == ["dry"]


def evaluate_disabled_rule(editor: httpx.Client, **changes: Any) -> dict[str, Any]:
    """Store a disabled alert rule, request one evaluation of the rule, and return the result."""
    rule = {**RULE, "enabled": False, **changes}
    assert editor.put("/oi-api/alert-rules/tried", json=rule).status_code in {200, 201}
    reply = editor.post("/oi-api/alert-rules/tried/evaluate")
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


@pytest.fixture
def approved_queries(plant: Service, editor: httpx.Client, firing_alert: dict[str, Any]) -> Iterator[None]:
    """Approve a query that returns unusual values and a query that returns many rows."""
    del firing_alert
    many: dict[str, Any] = {"kql": MANY_KQL, "parameters": [{"name": "size", "type": "long"}]}
    for lookup, definition in {"values": {"kql": VALUES_KQL}, "many": many}.items():
        query = {"name": lookup, "surface": "hall", **definition}
        assert editor.put(f"/oi-api/warm-queries/{lookup}", json=query).status_code == 201
        assert plant.create_client("admin@t").post(f"/oi-api/warm-queries/{lookup}/approve").status_code == 200
    yield
    for path in ("alert-rules/tried", "warm-queries/values", "warm-queries/many"):
        assert editor.delete(f"/oi-api/{path}").status_code == 204


@pytest.mark.usefixtures("approved_queries")
def test_only_finite_numbers_meet_a_condition(editor: httpx.Client) -> None:
    """The operators of conditions match only finite numbers, not null, text, booleans, times, NaN or infinity."""
    expected = {"gt": ["press-2"], "ge": ["press-1", "press-2"], "lt": ["press-0"], "le": ["press-0", "press-1"]}
    expected |= {"eq": ["press-1"], "ne": ["press-0", "press-2"]}
    for operator, devices in expected.items():
        condition = {"column": "level", "operator": operator, "value": 4}
        alerts = evaluate_disabled_rule(editor, query="values", condition=condition)["alerts"]
        assert sorted(one["labels"]["DeviceId"] for one in alerts if one["wouldFire"]) == devices
    for column in ("even", "text", "nothing", "nan", "endless", "Timestamp", "quoted"):
        condition = {"column": column, "operator": "ne", "value": 0.5}
        alerts = evaluate_disabled_rule(editor, query="values", condition=condition)["alerts"]
        assert [(one["value"], one["wouldFire"]) for one in alerts] == [(None, False)] * 3, column
    counted = evaluate_disabled_rule(editor, query="values", condition={"rows": "any"}, groupBy=["even"])["alerts"]
    assert {one["labels"]["even"]: one["value"] for one in counted} == {"true": 2, "false": 1}


@pytest.mark.usefixtures("approved_queries")
def test_different_texts_are_different_groups_of_alerts(editor: httpx.Client) -> None:
    """Texts in a dynamic column that read like the same number are different labels."""
    counted = evaluate_disabled_rule(editor, query="values", condition={"rows": "any"}, groupBy=["batch"])["alerts"]
    assert {one["labels"]["batch"]: one["value"] for one in counted} == {"1.1": 1, "1.10": 2}


@pytest.mark.usefixtures("approved_queries")
def test_an_alert_rule_can_have_ten_thousand_groups(editor: httpx.Client) -> None:
    """A rule with 10,000 groups is evaluated.

    With 10,001 rows the evaluation fails, because groups could be missing.
    """
    many: dict[str, Any] = {"query": "many", "timeRange": None, "groupBy": ["device"]}
    many["condition"] = {"column": "number", "operator": "gt", "value": 0}
    result = evaluate_disabled_rule(editor, **many, parameters={"size": 10_000})
    assert (len(result["alerts"]), result["rows"], result["error"]) == (10_000, 10_000, None)
    assert all(one["wouldFire"] for one in result["alerts"])
    result = evaluate_disabled_rule(editor, **many, parameters={"size": 10_001})
    assert (result["alerts"], result["rows"]) == ([], 0)
    assert "more than 10000 rows" in result["error"]


@pytest.mark.usefixtures("approved_queries")
def test_a_repeated_trial_of_an_alert_rule_is_executed_again(editor: httpx.Client) -> None:
    """A trial that is repeated with its Idempotency-Key is executed again, because its reply is not stored."""
    for limit, fires in ((0, True), (100, False)):
        evaluate_disabled_rule(editor, condition={"column": "level", "operator": "gt", "value": limit})
        reply = editor.post("/oi-api/alert-rules/tried/evaluate", headers={"Idempotency-Key": "trial"})
        assert any(one["wouldFire"] for one in reply.json()["alerts"]) is fires


def test_services_cannot_acknowledge_alerts(plant: Service, firing_alert: dict[str, Any]) -> None:
    """A service token cannot acknowledge an alert, because the acknowledgement records a person."""
    reply = plant.create_client("historian").post(f"/oi-api/alerts/{firing_alert['id']}/acknowledge")
    check_problem(reply, 401, "UNAUTHENTICATED")


def test_acknowledging_an_alert_appends_one_audit_event(
    plant: Service, editor: httpx.Client, firing_alert: dict[str, Any]
) -> None:
    """An acknowledgement appends one audit event to the scope `alerts`; repeating it changes nothing."""
    path, admin = f"/oi-api/alerts/{firing_alert['id']}/acknowledge", plant.create_client("admin@t")
    assert check_failing_fields(editor.post(path, json={"coment": "x"})) == ["coment"]
    seen = editor.post(path, json={"comment": "seen"})
    assert seen.status_code == 200, seen.text
    assert (seen.json()["acknowledgedBy"], seen.json()["comment"]) == ("editor@t", "seen")
    assert admin.post(path).json() == seen.json()
    events = admin.get("/oi-api/provenance/events/query?target=DomainEvents&scopeKey=alerts").json()
    assert [(event["ActionType"], event["EntityID"], event["UserID"]) for event in events] == [
        ("Alert.Acknowledged", firing_alert["id"], "editor@t")
    ]
    check_problem(plant.create_client("viewer@t").post(path), 403, "ACCESS_RIGHT_MISSING")
    check_problem(editor.post("/oi-api/alerts/unknown/acknowledge"), 404, "ALERT_NOT_FOUND")


def test_alerts_are_filtered_and_paged(editor: httpx.Client, firing_alert: dict[str, Any]) -> None:
    """The alert list can be filtered by state, severity and surface; a cursor is valid only with the same filters."""
    assert editor.put("/oi-api/alert-rules/silent", json=SILENT).status_code == 201
    silent = wait_for_alert(editor, "silent", "firing")
    assert silent["labels"] == {"connection": "lathe"}
    assert [alert["id"] for alert in list_alerts(editor, "silent", "&severity=info&surface=hall&state=firing")]
    assert list_alerts(editor, "silent", "&severity=critical") == []
    assert list_alerts(editor, "silent", "&surface=nowhere") == []
    first = editor.get("/oi-api/alerts?limit=1").json()
    assert [alert["id"] for alert in first["alerts"]] == [silent["id"]]
    second = editor.get(f"/oi-api/alerts?limit=1&cursor={first['cursor']}").json()
    assert [alert["id"] for alert in second["alerts"]] == [firing_alert["id"]]
    other = editor.get(f"/oi-api/alerts?limit=1&state=firing&cursor={first['cursor']}")
    assert check_failing_fields(other) == ["cursor"]
    disabled = {**SILENT, "enabled": False}
    assert editor.put("/oi-api/alert-rules/silent", json=disabled).json()["nextEvaluationAt"] is None
    wait_for_alert(editor, "silent", "resolved")
    assert editor.delete("/oi-api/alert-rules/silent").status_code == 204


@pytest.mark.parametrize("query", ["state=open", "severity=high", "surface=a%20b", "limit=0", "limit=1001", "cursor=x"])
def test_invalid_parameters_of_the_alert_list_are_named(editor: httpx.Client, query: str) -> None:
    """The error about an invalid parameter of the alert list states the parameter's name and its rule."""
    assert check_failing_fields(editor.get(f"/oi-api/alerts?{query}")) == [query.partition("=")[0]]


def test_an_invalid_cursor_is_listed_with_other_invalid_parameters(editor: httpx.Client) -> None:
    """An invalid cursor is listed with all other invalid parameters, also with invalid filters."""
    reply = editor.get("/oi-api/alerts?cursor=x&state=open&limit=0")
    assert check_failing_fields(reply) == ["state", "limit", "cursor"]


def test_a_rule_that_refers_to_a_draft_query_is_in_the_state_error(editor: httpx.Client) -> None:
    """A rule may refer to a draft query; the rule is in the state error until the query is approved."""
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


def test_a_rule_can_be_disabled_after_its_query_was_deleted(editor: httpx.Client) -> None:
    """A PUT that does not change how a rule uses its query is accepted, even if the query was deleted."""
    query = {"name": "Short-lived", "surface": "hall", "kql": "Telemetry | summarize number = count()"}
    assert editor.put("/oi-api/warm-queries/short-lived", json=query).status_code == 201
    condition = {"column": "number", "operator": "gt", "value": 1}
    rule = {**RULE, "query": "short-lived", "condition": condition, "groupBy": []}
    path = "/oi-api/alert-rules/left-behind"
    assert editor.put(path, json=rule).status_code == 201
    assert editor.delete("/oi-api/warm-queries/short-lived").status_code == 204
    stored = editor.get(path).json()
    disabled = editor.put(path, json={**stored, "enabled": False, "name": "Left behind"})
    assert (disabled.status_code, disabled.json()["enabled"]) == (200, False), disabled.text
    changed = {**rule, "condition": {**condition, "value": 2}}
    assert check_failing_fields(editor.put(path, json=changed)) == ["query"]
    assert check_failing_fields(editor.put("/oi-api/alert-rules/other", json=rule)) == ["query"]
    assert editor.delete(path).status_code == 204


def test_an_alert_is_pending_for_the_duration_in_its_rule_and_then_firing(
    editor: httpx.Client, firing_alert: dict[str, Any]
) -> None:
    """An alert of a rule with `for` is first pending, then firing under the same id; disabling the rule ends it."""
    path = "/oi-api/alert-rules/level-held"
    held = {**RULE, "for": "PT3S"}
    assert editor.put(path, json=held).status_code == 201
    [pending], _ = wait_until(
        lambda: (list_alerts(editor, "level-held"), editor.get(path).json()["state"]),
        lambda found: ([alert["state"] for alert in found[0]], found[1]) == (["pending"], "pending"),
    )
    assert (pending["labels"], pending["firedAt"]) == (firing_alert["labels"], None)
    fired = wait_for_alert(editor, "level-held", "firing")
    assert (fired["id"], fired["startedAt"]) == (pending["id"], pending["startedAt"])
    assert fired["firedAt"] > fired["startedAt"]
    assert editor.put(path, json={**held, "enabled": False}).status_code == 200
    wait_for_alert(editor, "level-held", "resolved")
    assert editor.delete(path).status_code == 204


def test_a_failing_query_does_not_resolve_alerts(
    plant: Service, editor: httpx.Client, firing_alert: dict[str, Any]
) -> None:
    """If the query of an alert rule becomes a draft or is deleted, the rule is in error.

    Its alert stays firing under the same id.
    """
    rule, query = "/oi-api/alert-rules/level-high", "/oi-api/warm-queries/levels"
    kql = {"name": "Levels", "surface": "hall", "kql": f"{KQL}, extra = 1"}
    assert editor.put(query, json=kql).status_code == 200
    wait_until(lambda: editor.get(rule).json(), lambda found: "is a draft" in (found["error"] or ""), 60)
    assert editor.delete(query).status_code == 204
    wait_until(lambda: editor.get(rule).json(), lambda found: "does not exist" in (found["error"] or ""), 60)
    [alert] = list_alerts(editor, "level-high")
    assert (alert["id"], alert["state"]) == (firing_alert["id"], "firing")
    assert editor.put(query, json=kql).status_code == 201
    assert plant.create_client("admin@t").post(f"{query}/approve").status_code == 200
    wait_until(lambda: editor.get(rule).json(), lambda found: (found["state"], found["error"]) == ("firing", None), 60)
    assert [one["id"] for one in list_alerts(editor, "level-high")] == [firing_alert["id"]]


def test_a_disabled_connection_resolves_its_alert(plant: Service, editor: httpx.Client) -> None:
    """The alert of a rule about missing data ends at once when its connection is disabled."""
    admin, path = plant.create_client("admin@t"), "/oi-api/connections/lathe"
    assert editor.put("/oi-api/alert-rules/watched", json=SILENT).status_code == 201
    wait_for_alert(editor, "watched", "firing")
    lathe = {"name": "Lathe", "type": "CLOUD_EVENT_HUB"}
    assert admin.put(path, json={**lathe, "enabled": False}).status_code == 200
    wait_for_alert(editor, "watched", "resolved")
    assert admin.put(path, json={**lathe, "enabled": True}).status_code == 200
    assert editor.delete("/oi-api/alert-rules/watched").status_code == 204


def test_a_deleted_rule_resolves_its_alerts(editor: httpx.Client, firing_alert: dict[str, Any]) -> None:
    """After a rule is deleted, its alerts are resolved and cannot be acknowledged."""
    assert editor.delete("/oi-api/alert-rules/level-high").status_code == 204
    assert wait_for_alert(editor, "level-high", "resolved")["id"] == firing_alert["id"]
    check_problem(editor.post(f"/oi-api/alerts/{firing_alert['id']}/acknowledge"), 409, "ALERT_RESOLVED")
