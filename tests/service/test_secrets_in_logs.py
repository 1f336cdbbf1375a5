"""Tests that no secret is logged at the most detailed log level, even if requests and dependencies fail."""

import base64
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, wait_until
from tests.service.stream_client import decode_token_id

ACCESS_KEY = "aVerySecretAccessKeyOfTheMessageService0123456789"
CONTINUATION = "aVerySecretSecretOfContinuationTokens0123456789"
PASSWORD = "hunter2-in-a-body"
DEAD = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def logging_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service without query engine and Web PubSub that logs at the most detailed level."""
    environment = {
        "LOG_LEVEL": "DEBUG",
        "KUSTO_URI": DEAD,
        "WEB_PUBSUB_ENDPOINT": DEAD,
        "WEB_PUBSUB_ACCESS_KEY": ACCESS_KEY,
        "CONTINUATION_SECRET": CONTINUATION,
        "PYTHONASYNCIODEBUG": "0",
    }
    running = Service(tmp_path_factory.mktemp("secrets") / "data", WORKSPACE, environment).start()
    yield running
    running.stop()


def _send_failing_requests(logging_service: Service, secrets: list[str]) -> None:
    """Send failing requests that contain credentials wherever a request can contain them."""
    key, token = secrets[0], secrets[1]
    good = logging_service.create_anonymous_client(token)
    tampered = token[:-6] + ("AAAAAA" if not token.endswith("AAAAAA") else "BBBBBB")
    secrets.append(tampered)
    for credential in (key, tampered, f"{token}.x", f"{key}x", "Basic " + token):
        client = logging_service.create_anonymous_client(credential)
        for path in ("/oi-api/warm-queries/per-minute", "/workspace/api/keys/whoami", "/oi-api/mcp"):
            client.get(path)
        client.post("/v1/plant-t/graphql", json={"query": "{"})
    logging_service.create_anonymous_client().get(f"/oi-api/live-stream?token={token}")
    logging_service.create_anonymous_client().get(f"/oi-api/live-stream?access_token={token}&token={tampered}")
    logging_service.create_anonymous_client().get(f"/nowhere/{token}?sig={token}")
    logging_service.create_anonymous_client().get(
        f"/{token}", headers={"Cookie": f"session={token}", "x-request-id": "mine"}
    )
    logging_service.create_anonymous_client().get(f"/files/cold/x?exp=9999999999&file=x&sig={key}")
    good.get("/oi-api/live-stream/negotiate")
    good.get("/oi-api/warm-queries/per-minute", headers={"Idempotency-Key": key})
    good.post("/oi-api/warm-queries", json={"query": f"print '{PASSWORD}'"})
    good.post("/oi-api/warm-queries", content=f'{{"query": "{PASSWORD}'.encode())
    good.post("/workspace/api/keys", json={"name": PASSWORD, "expiresInDays": PASSWORD})
    good.post("/oi-api/provenance/events", json={"ActionType": 5, "EntityID": PASSWORD})
    good.put("/oi-api/warm-queries/broken", json={"name": "b", "surface": "hall", "kql": f"print '{PASSWORD}'"})
    good.delete(f"/workspace/api/keys/jwt/{token}")
    good.delete(f"/workspace/api/keys/{key}")
    good.post("/oi-api/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": token}})
    good.get("/readyz")


def test_no_secret_is_logged(logging_service: Service) -> None:
    """No log line contains a key, token, signature, secret setting or request content."""
    key = logging_service.read_api_key("admin@t")
    owner = logging_service.create_anonymous_client(key)
    token = owner.get("/workspace/api/keys/jwt").json()["Token"]
    secrets = [key, token]
    created = logging_service.create_anonymous_client(token).post(
        "/workspace/api/keys", json={"name": "n"}, headers={"Idempotency-Key": "of-a-new-key"}
    )
    secrets.append(created.json()["apiKey"])
    _send_failing_requests(logging_service, secrets)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    for query, headers in ({"token": token}, {}), ({}, {"Sec-WebSocket-Protocol": f"bearer.{token}"}):
        reply = logging_service.create_anonymous_client().get(
            "/oi-api/live-stream", params=query, headers=upgrade | headers
        )
        secrets.append(reply.headers["Location"].rpartition("access_token=")[2])
    log = wait_until(logging_service.read_log, lambda text: "/readyz" in text or '"route": "readyz"' in text)
    assert log.count("\n") > 50
    assert '"status": 401' in log
    assert '"status": 503' in log
    for secret in [
        *secrets,
        *_list_secret_parts(secrets),
        ACCESS_KEY,
        CONTINUATION,
        PASSWORD,
        *_list_texts_of_key((logging_service.data_dir / "files-key").read_bytes()),
    ]:
        assert secret not in log, log[max(0, log.index(secret) - 600) : log.index(secret) + 80]
    assert "-----BEGIN" not in log


def _list_secret_parts(secrets: list[str]) -> list[str]:
    """Return the secret parts of credentials, such as the secret of a key and the signature of a token."""
    return [secret[-43:] for secret in secrets]


def _list_texts_of_key(key: bytes) -> list[str]:
    """Return the texts in which a log line can contain a binary key: hexadecimal, Base64, and Python's notation."""
    return [key.hex(), base64.b64encode(key).decode(), json.dumps(repr(key))[1:-1]]


def test_error_replies_do_not_reveal_internals(logging_service: Service) -> None:
    """Error replies contain no file names, line numbers, internal addresses or library names."""
    caller = logging_service.create_client("admin@t")
    replies: list[httpx.Response] = [
        caller.post("/oi-api/warm-queries", json={"query": "T"}),
        caller.get("/readyz"),
    ]
    port = urlsplit(DEAD).netloc
    for reply in replies:
        for word in ("Traceback", ".py", port, "aiohttp", "azure", "sqlite", str(logging_service.data_dir)):
            assert word not in reply.text, reply.text


def test_ids_of_credentials_are_logged(logging_service: Service) -> None:
    """Ids of credentials, which are not secret, are logged so that operators can find them in the audit log."""
    caller = logging_service.create_client("admin@t")
    bearer = caller.headers["Authorization"].removeprefix("Bearer ")
    records = caller.get("/oi-api/provenance/events/query", params={"target": "AccessControl", "limit": "1000"}).json()
    chain = json.dumps(records)
    assert decode_token_id(bearer) in chain
    for secret in (
        bearer,
        bearer[-43:],
        logging_service.read_api_key("admin@t"),
        logging_service.read_api_key("admin@t")[-43:],
    ):
        assert secret not in chain
