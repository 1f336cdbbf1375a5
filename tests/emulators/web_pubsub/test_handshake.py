"""Tests of how clients are authorized: access tokens, responses of the event handler, and rejections."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from datetime import timedelta
from typing import Any

import jwt
import pytest
from azure.messaging.webpubsubservice.aio import WebPubSubServiceClient
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from emulators.web_pubsub.settings import SYSTEM_EVENTS, HubSettings, ServiceSettings
from emulators.web_pubsub.upstream import AsgiUpstream
from shared.timestamps import now, rfc3339
from tests.emulators.web_pubsub.serving import JSON, KEY, Connect, Handler, Running, serve_emulator, wait_until


def issue_token_for(url: str, key: str = KEY, lives: float = 60, **claims: Any) -> str:
    """Return an access token for the URL at which a client connects."""
    return jwt.encode({"aud": url, "exp": int(time.time() + lives), **claims}, key, algorithm="HS256")


async def expect_refusal(url: str, **options: Any) -> InvalidStatus:
    """Connect a client that must be rejected, and return the rejection."""
    with pytest.raises(InvalidStatus) as error:
        await connect(url, **options)
    return error.value


@pytest.mark.parametrize(
    "changes", [{"key": "another key, which is long enough too"}, {"lives": -1}, {"aud": "http://x/client/hubs/plain"}]
)
async def test_bad_access_tokens_are_rejected_before_the_upgrade(running: Running, changes: dict[str, Any]) -> None:
    """An expired token, a token for another URL or a token of another key gets 401 before the upgrade."""
    url = running.client_url("plain")
    audience = changes.pop("aud", url)
    error = await expect_refusal(f"{url}?access_token={issue_token_for(audience, **changes)}")
    assert error.response.status_code == 401
    assert json.loads(error.response.body or b"")["code"] == "UNAUTHENTICATED"
    assert error.response.headers["www-authenticate"] == "Bearer"


async def test_a_missing_access_token_is_rejected(running: Running) -> None:
    """A client without a token gets 401, unless the hub allows anonymous clients."""
    assert (await expect_refusal(running.client_url("plain"))).response.status_code == 401
    assert (await expect_refusal(running.client_url("plain") + "/more")).response.status_code == 404


async def test_the_access_token_may_be_a_header(running: Running) -> None:
    """A token is accepted in the Authorization header and in the query string."""
    url = running.client_url("plain")
    async with connect(url, additional_headers={"Authorization": f"Bearer {issue_token_for(url, sub='anna')}"}):
        assert len(running.service.get_or_create_hub("plain").find_user_connections("anna")) == 1


async def test_the_event_handler_receives_connect(running: Running) -> None:
    """The event handler gets a connect event as a CloudEvent, with the client's request and a signature."""
    url = running.client_url()
    token = issue_token_for(url, sub="anna", role=["r"])
    async with connect(
        f"{url}?access_token={token}&connection=a&connection=b",
        additional_headers={"X-Workspace-Authorization": "Bearer w"},
        subprotocols=[Subprotocol("one")],
    ):
        pass
    assert running.handler.probes == 1
    headers, body = running.handler.told[0]
    connection_id = headers["ce-connectionid"]
    expected = hmac.new(KEY.encode(), connection_id.encode(), hashlib.sha256).hexdigest()
    assert headers["ce-signature"] == f"sha256={expected}"
    assert headers["ce-specversion"] == "1.0"
    assert headers["ce-type"] == "azure.webpubsub.sys.connect"
    assert headers["ce-source"] == f"/hubs/live/client/{connection_id}"
    assert headers["ce-hub"] == "live"
    assert headers["ce-eventname"] == "connect"
    assert headers["ce-userid"] == "anna"
    assert headers["webhook-request-origin"] == running.url.removeprefix("http://")
    assert headers["content-type"] == "application/json; charset=utf-8"
    document = json.loads(body)
    assert document["claims"]["sub"] == ["anna"]
    assert document["claims"]["role"] == ["r"]
    assert document["query"] == {"connection": ["a", "b"]}
    assert document["headers"]["x-workspace-authorization"] == ["Bearer w"]
    assert document["subprotocols"] == ["one"]
    assert document["clientCertificates"] == []


async def test_the_response_sets_the_clients_identity(running: Running, live: WebPubSubServiceClient) -> None:
    """The event handler's response sets the client's user, groups, roles and subprotocol."""
    answer = {"userId": "ben", "groups": ["g"], "roles": ["webpubsub.sendToGroup"], "subprotocol": "bearer.x"}
    running.handler.set_response(answer)
    async with connect(running.client_url(), subprotocols=[Subprotocol("bearer.x")]) as client:
        assert client.subprotocol == "bearer.x"
        assert await live.user_exists("ben")
        await live.send_to_group("g", "hello", content_type="text/plain")
        assert await client.recv() == "hello"


async def test_a_subprotocol_that_was_not_offered_is_not_chosen(running: Running) -> None:
    """The handshake selects a subprotocol only if the client offered it (RFC 6455 section 4.2.2)."""
    running.handler.set_response({"subprotocol": "another"})
    async with connect(running.client_url(), subprotocols=[Subprotocol("one")]) as client:
        assert client.subprotocol is None
    async with connect(running.client_url(), subprotocols=[Subprotocol("one"), Subprotocol(JSON)]) as client:
        assert client.subprotocol == JSON


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
async def test_a_rejection_of_the_handler_reaches_the_client(running: Running, status: int) -> None:
    """If the event handler rejects a client, the client gets the status, headers and body of the rejection."""
    running.handler.status = status
    running.handler.headers = {"content-type": "application/problem+json", "retry-after": "7"}
    running.handler.body = b'{"code":"NO"}'
    error = await expect_refusal(running.client_url())
    assert error.response.status_code == status
    assert error.response.body == b'{"code":"NO"}'
    assert error.response.headers["content-type"] == "application/problem+json"
    assert error.response.headers["retry-after"] == "7"
    assert running.handler.events() == ["connect"]


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"groups":"g"}', b'{"userId":1}'])
async def test_a_malformed_response_rejects_clients(running: Running, body: bytes) -> None:
    """If the response of the event handler is malformed, the client is rejected."""
    running.handler.status, running.handler.body = 200, body
    error = await expect_refusal(running.client_url())
    assert error.response.status_code == 503
    assert json.loads(error.response.body or b"")["code"] == "EVENT_HANDLER_UNAVAILABLE"


@pytest.mark.parametrize("allowed", ["other.example", ""])
async def test_a_handler_must_allow_events(running: Running, allowed: str) -> None:
    """An event handler gets no events until it has allowed the emulator's origin, or all origins, in its reply."""
    running.handler.allowed = allowed
    assert (await expect_refusal(running.client_url())).response.status_code == 503
    assert running.handler.told == []
    running.handler.allowed = f"other.example, {running.url.removeprefix('http://')}"
    async with connect(running.client_url()):
        assert running.handler.events()[0] == "connect"


async def test_the_reliable_subprotocol_is_refused(running: Running) -> None:
    """A client that offers only the reliable subprotocol is rejected."""
    error = await expect_refusal(running.client_url(), subprotocols=["json.reliable.webpubsub.azure.v1"])
    assert error.response.status_code == 400


async def test_connects_and_disconnects_are_reported(running: Running) -> None:
    """The event handler gets connected and disconnected events in order, with the connection's state."""
    running.handler.set_response({"userId": "anna"}, **{"ce-connectionState": "opaque"})
    async with connect(running.client_url()):
        await wait_until(lambda: running.handler.events() == ["connect", "connected"])
    await wait_until(lambda: running.handler.events() == ["connect", "connected", "disconnected"])
    for headers, _ in running.handler.told[1:]:
        assert headers["ce-userid"] == "anna"
        assert headers["ce-connectionstate"] == "opaque"


async def test_a_connection_ends_with_its_access_token(running: Running) -> None:
    """A client is closed with code 4401 at its token's ``exp``, or at an earlier ``expires_at`` of its state."""
    url = running.client_url("plain")
    soon = rfc3339(now() + timedelta(seconds=0.3))
    for claims in ({"lives": 1.2}, {"expires_at": soon}):
        async with connect(f"{url}?access_token={issue_token_for(url, **claims)}") as client:
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), 20)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4401


async def test_the_handler_sets_when_a_connection_ends(running: Running) -> None:
    """If the connection state has ``expiresAt``, the client is closed with code 4401 at this time."""
    state = base64.b64encode(json.dumps({"expiresAt": rfc3339(now() + timedelta(seconds=0.3))}).encode()).decode()
    running.handler.set_response({}, **{"ce-connectionState": state})
    async with connect(running.client_url()) as client:
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(client.recv(), 20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4401
    await wait_until(lambda: "disconnected" in running.handler.events())
    assert json.loads(running.handler.told[-1][1])["reason"] == "the token expired"


async def test_the_handler_may_extend_a_connection(running: Running) -> None:
    """An expiry from the event handler has priority over that of the access token."""
    url = running.client_url()
    state = base64.b64encode(json.dumps({"expiresAt": rfc3339(now() + timedelta(seconds=2.5))}).encode()).decode()
    running.handler.set_response({}, **{"ce-connectionState": state})
    lapses = now() + timedelta(seconds=1)
    async with connect(f"{url}?access_token={issue_token_for(url, expires_at=rfc3339(lapses))}") as client:
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(client.recv(), 20)
    assert now() > lapses + timedelta(seconds=1)


async def test_only_selected_events_are_sent() -> None:
    """If an event handler has subscribed only to the event disconnected, clients connect without a request to it."""
    handler = Handler(status=403)
    settings = HubSettings(upstream=AsgiUpstream(handler, "/e"), system_events=SYSTEM_EVENTS - {"connect"})
    async with serve_emulator(ServiceSettings(KEY, other_hubs=settings), handler) as running:
        url = running.client_url("any")
        async with connect(f"{url}?access_token={issue_token_for(url)}"):
            pass
        await wait_until(lambda: handler.events() == ["connected", "disconnected"])


async def test_disconnected_clients_are_removed(running: Running, join: Connect) -> None:
    """A client that disconnects is removed from the hub and its groups."""
    client = await join("g", user_id="anna")
    hub = running.service.get_or_create_hub("plain")
    assert len(hub.find_group_connections("g")) == 1
    await client.close()
    await wait_until(lambda: not hub.connections)
    assert not hub.find_group_connections("g")
    assert not hub.find_user_connections("anna")
