"""Tests of API keys that are bound to connections and devices, over HTTP."""

from typing import Any

import httpx
import jwt
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem

WRITE = "Workspace.Telemetry.Write"


def create_key(service: Service, **properties: Any) -> dict[str, Any]:
    """Create an API key for the editor and return the reply."""
    reply = service.create_client("editor@t").post("/workspace/api/keys", json={"name": "device", **properties})
    assert reply.status_code == 201, reply.text
    created: dict[str, Any] = reply.json()
    return created


def sign_in(service: Service, key: str) -> httpx.Client:
    """Return a client with a token that was issued with the API key."""
    reply = service.create_anonymous_client(key).get("/workspace/api/keys/jwt")
    assert reply.status_code == 200, reply.text
    return service.create_anonymous_client(reply.json()["Token"])


def test_a_bound_key_writes_only_its_connections_and_devices(service: Service) -> None:
    """A request with a bound key is rejected as a whole if one message belongs to another connection or device."""
    key = create_key(service, connections=["press"], devices=["press-*"])
    assert (key["accessRights"], key["connections"], key["devices"]) == ([WRITE], ["press"], ["press-*"])
    client = sign_in(service, key["apiKey"])
    claims = jwt.decode(client.headers["authorization"].split()[1], options={"verify_signature": False})
    assert (claims["Connections"], claims["Devices"], claims["AccessRights"]) == (["press"], ["press-*"], [WRITE])
    assert client.post("/oi-api/telemetry/press", json={"deviceId": "press-1"}).status_code == 202
    for lookup in ("pump-rig", "unknown"):
        reply = client.post(f"/oi-api/telemetry/{lookup}", content=b"not json", headers={"Idempotency-Key": ""})
        check_problem(reply, 403, "CONNECTION_NOT_ALLOWED")
    batch = [{"deviceId": "press-1"}, {"deviceId": "other"}]
    reply = client.post("/oi-api/telemetry/press", json=batch)
    check_problem(reply, 403, "DEVICE_NOT_ALLOWED")
    assert "[1]" in reply.json()["detail"]
    check_problem(client.post("/oi-api/telemetry/press", json={}), 403, "DEVICE_NOT_ALLOWED")


def test_repeated_rights_of_a_key_are_stored_once(service: Service) -> None:
    """A right that a request for a key repeats is granted once."""
    assert create_key(service, connections=["press"], rights=[WRITE, WRITE])["accessRights"] == [WRITE]
    assert create_key(service, rights=[WRITE, WRITE])["accessRights"] == [WRITE]


def test_a_bound_credential_gets_no_stored_reply_with_a_key(service: Service) -> None:
    """A bound token that repeats the creation of an unbound key is rejected instead of getting the stored reply."""
    headers = {"Idempotency-Key": "unbound-key-1"}
    member = service.create_client("editor@t", WRITE)
    assert member.post("/workspace/api/keys", json={"name": "unbound"}, headers=headers).status_code == 201
    client = sign_in(service, create_key(service, connections=["press"])["apiKey"])
    reply = client.post("/workspace/api/keys", json={"name": "unbound"}, headers=headers)
    check_problem(reply, 403, "CREDENTIAL_BOUND")


def test_a_bound_credential_can_only_send_telemetry(service: Service) -> None:
    """A bound token cannot read data or manage credentials, and each token that is issued with it is bound, too."""
    key = create_key(service, connections=["press"])
    client = sign_in(service, key["apiKey"])
    check_problem(client.get("/oi-api/warm-queries"), 403, "ACCESS_RIGHT_MISSING")
    for request in (
        client.post("/workspace/api/keys", json={"name": "x"}),
        client.get("/workspace/api/keys"),
        client.delete(f"/workspace/api/keys/{key['keyId']}"),
        client.delete("/workspace/api/keys/jwt/any"),
        client.get("/oauth2/grants"),
        client.delete("/oauth2/grants/any"),
    ):
        check_problem(request, 403, "CREDENTIAL_BOUND")
    listed = client.get("/oi-api/openapi").json()["paths"]
    assert [path for path in listed if path.startswith(("/workspace/api/keys", "/oauth2/authorize"))] == [
        "/oauth2/authorize",
        "/workspace/api/keys/jwt",
        "/workspace/api/keys/whoami",
    ]
    assert listed["/oauth2/authorize"].keys() == {"get"}
    minted = service.create_anonymous_client(client.get("/workspace/api/keys/jwt?minutes=5").json()["Token"])
    check_problem(minted.post("/oi-api/telemetry/pump-rig", json={}), 403, "CONNECTION_NOT_ALLOWED")
    assert minted.get("/workspace/api/keys/whoami").json()["connections"] == ["press"]


@pytest.mark.parametrize(
    ("properties", "field"),
    [
        ({"connections": []}, "connections"),
        ({"connections": ["press"], "devices": []}, "devices"),
        ({"devices": ["a"]}, "body"),
        ({"connections": None}, "connections"),
        ({"connections": ["press"], "devices": None}, "devices"),
        ({"connections": ["press", "press"]}, "connections"),
        ({"connections": ["press"], "devices": [f"{number:0120}" for number in range(100)]}, "devices"),
        ({"connections": ["press"], "rights": []}, "body"),
        ({"connections": ["unknown"]}, "connections[0]"),
        ({"connections": ["press"], "rights": [WRITE, "Workspace.Catalog.Read"]}, "rights"),
    ],
)
def test_invalid_telemetry_bindings_are_rejected(service: Service, properties: dict[str, Any], field: str) -> None:
    """A binding is rejected if a list is invalid or too large, a connection is unknown, or the key has more rights."""
    reply = service.create_client("editor@t").post("/workspace/api/keys", json={"name": "device", **properties})
    assert check_failing_fields(reply, 400, "INVALID_REQUEST") == [field]


def test_timestamps_far_in_the_future_are_rejected(service: Service) -> None:
    """A timestamp more than five minutes ahead of the service's clock is rejected."""
    reply = service.create_client("editor@t").post(
        "/oi-api/telemetry/press", json=[{}, {"timestamp": "2999-01-01T00:00:00Z"}]
    )
    assert check_failing_fields(reply, 400, "INVALID_REQUEST") == ["[1].timestamp"]
