"""Tests of the signals (declared message fields) of data connections over HTTP."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until

PRESSURE: dict[str, Any] = {"name": "pressure", "pointer": "/p", "type": "real", "unit": "bar", "min": 1, "max": 6}
RUNNING: dict[str, Any] = {"name": "running", "pointer": "/motor/on", "type": "bool"}
DEFAULTS: dict[str, Any] = {"unit": None, "description": None, "min": None, "max": None}
RIG: dict[str, Any] = {"name": "Signal rig", "type": "CLOUD_EVENT_HUB", "signals": [PRESSURE, RUNNING]}
PATH = "/oi-api/connections/signal-rig"


@pytest.fixture(scope="module")
def admin(service: Service) -> Iterator[httpx.Client]:
    """Return a client of the administrator; during the test, the workspace has a connection with signals."""
    client = service.create_client("admin@t")
    assert client.put(PATH, json=RIG).status_code == 201
    yield client
    assert client.delete(PATH).status_code == 204


def test_signals_are_declared_and_listed(admin: httpx.Client) -> None:
    """A connection's signals are in its definition, in the list of signals, and in the exported document."""
    declared = [{**DEFAULTS, **PRESSURE}, {**DEFAULTS, **RUNNING}]
    assert admin.get(PATH).json()["signals"] == declared
    assert admin.get(f"{PATH}/signals").json() == {"signals": declared}
    document = admin.get("/oi-api/workspace/document", headers={"Accept": "application/json"}).json()
    assert next(one for one in document["connections"] if one["lookup"] == "signal-rig")["signals"] == declared
    unchanged = admin.put(PATH, json=RIG)
    assert (unchanged.status_code, unchanged.json()["etag"]) == (200, admin.get(PATH).json()["etag"])
    [event] = admin.get("/oi-api/provenance/events/query?target=PlatformConfig&limit=1").json()
    assert (event["ActionType"], event["EntityID"]) == ("Catalog.Connection.Created", "signal-rig")


def test_invalid_signals_are_rejected(admin: httpx.Client) -> None:
    """The error about a PUT names each invalid field of each signal, and each unknown field."""
    wrong = [PRESSURE, {**PRESSURE, "max": 0}, {"name": "", "pointer": "p", "type": "int", "colour": "red"}]
    fields = check_failing_fields(admin.put(PATH, json={**RIG, "signals": wrong}))
    assert {"signals[2].name", "signals[2].pointer", "signals[2].type"} <= set(fields)
    rules = check_failing_fields(admin.put(PATH, json={**RIG, "signals": wrong[:2]}))
    assert sorted(rules) == ["signals[1].min", "signals[1].name", "signals[1].pointer"]


def test_too_many_signals_are_not_validated(admin: httpx.Client) -> None:
    """A list of too many signals is one error; the signals beyond the limit are not validated."""
    reply = admin.put(PATH, json={**RIG, "signals": [PRESSURE] * 1_000 + [{}] * 50_000})
    rule = "must have at most 1000 items"
    assert (check_problem(reply, 400, "INVALID_REQUEST")["errors"]) == [{"field": "signals", "message": rule}]


def test_values_of_another_type_than_declared_are_counted(admin: httpx.Client) -> None:
    """If a value has another type than its signal declares, the message is accepted, stored unchanged, and counted."""
    messages = [{"p": 4.5, "motor": {"on": True}}, {"p": "high"}, {"p": None, "motor": {"on": 1}}, {"q": []}]
    assert admin.post("/oi-api/telemetry/signal-rig", json=messages).json() == {"accepted": 4}
    stats = wait_until(lambda: admin.get(PATH).json()["stats"], lambda found: found["messagesReceived"] >= 4)
    assert stats["typeMismatches"] == 2
    query = {"query": "Telemetry | where ConnectionLookup == 'signal-rig' | project Payload"}
    rows = wait_until(
        lambda: admin.post("/oi-api/warm-queries", json=query).json()["results"], lambda found: len(found) >= 4
    )
    assert [row["Payload"] for row in rows if row["Payload"].get("p") == "high"] == [{"p": "high"}]


def test_signals_are_inferred_from_stored_messages(admin: httpx.Client) -> None:
    """The service infers signals from the stored messages of a connection, without storing the inferred signals."""
    lookup = "/oi-api/connections/inferred-rig"
    assert admin.put(lookup, json={**RIG, "signals": []}).status_code == 201
    try:
        assert admin.post(f"{lookup}/signals/infer").json() == {"messages": 0, "signals": []}
        messages = [{"timestamp": f"2026-01-05T08:00:0{n}Z", "t": n + 0.5, "s": "on"} for n in range(2)]
        messages.append({"timestamp": "2026-01-05T08:00:09Z", "t": 7})
        admin.post("/oi-api/telemetry/inferred-rig", json=messages)
        inferred = wait_until(
            lambda: admin.post(f"{lookup}/signals/infer").json(), lambda found: found["messages"] == 3
        )
        assert inferred["signals"] == [
            {"name": "s", "pointer": "/s", "type": "string", "share": 0.6667, "min": None, "max": None},
            {"name": "t", "pointer": "/t", "type": "real", "share": 1.0, "min": 0.5, "max": 7},
        ]
        assert admin.get(lookup).json()["signals"] == []
    finally:
        admin.delete(lookup)


def test_signal_requests_require_a_connection_and_a_right(service: Service, admin: httpx.Client) -> None:
    """Requests for the signals of an unknown connection get 404.

    Inferring signals requires the right to manage the catalog.
    """
    check_problem(admin.get("/oi-api/connections/none/signals"), 404, "CONNECTION_NOT_FOUND")
    check_problem(admin.post("/oi-api/connections/none/signals/infer"), 404, "CONNECTION_NOT_FOUND")
    viewer = service.create_client("viewer@t")
    assert viewer.get(f"{PATH}/signals").status_code == 200
    check_problem(viewer.post(f"{PATH}/signals/infer"), 403, "ACCESS_RIGHT_MISSING")
    check_failing_fields(admin.get(f"{PATH}/signals?limit=3"))


def test_signals_are_part_of_the_openapi_document(admin: httpx.Client) -> None:
    """The OpenAPI document has a path for each connection with signals, whose schema has their types and units."""
    paths = admin.get("/oi-api/openapi").json()["paths"]
    content = paths["/oi-api/telemetry/signal-rig"]["post"]["requestBody"]["content"]["application/json"]
    message = content["schema"]["oneOf"][0]["properties"]
    assert (message["p"]["type"], message["p"]["x-unit"]) == ("number", "bar")
    assert message["motor"]["properties"]["on"]["type"] == "boolean"
    assert "/oi-api/telemetry/press" not in paths


def test_the_openapi_document_of_a_bound_key_has_only_its_connections(service: Service, admin: httpx.Client) -> None:
    """The OpenAPI document for a bound credential has no path for the telemetry of another connection."""
    for lookup, is_listed in (("press", False), ("signal-rig", True)):
        body = {"name": "device", "connections": [lookup]}
        key = service.create_client("editor@t").post("/workspace/api/keys", json=body).json()["apiKey"]
        token = service.create_anonymous_client(key).get("/workspace/api/keys/jwt").json()["Token"]
        paths = service.create_anonymous_client(token).get("/oi-api/openapi").json()["paths"]
        assert ("/oi-api/telemetry/signal-rig" in paths) is is_listed
        assert "/oi-api/telemetry/{lookup}" in paths
    assert "/oi-api/telemetry/signal-rig" in admin.get("/oi-api/openapi").json()["paths"]
