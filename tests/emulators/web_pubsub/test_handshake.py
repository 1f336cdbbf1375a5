"""Tests of how clients are authorized: access tokens, responses of the event handler, and rejections."""

import asyncio
import base64
import gc
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

from emulators.web_pubsub.hub import Hub
from emulators.web_pubsub.settings import SYSTEM_EVENTS, HubSettings, ServiceSettings
from emulators.web_pubsub.upstream import AsgiUpstream
from shared.timestamps import format_rfc3339, now
from tests.emulators.web_pubsub.serving import JSON, KEY, Connect, Handler, Running, run_emulator, wait_until


def issue_token_for(url: str, key: str = KEY, lifetime_seconds: float = 60, **claims: Any) -> str:
    """Return an access token for the URL at which a client connects."""
    return jwt.encode({"aud": url, "exp": int(time.time() + lifetime_seconds), **claims}, key, algorithm="HS256")


async def read_rejection(url: str, **options: Any) -> InvalidStatus:
    """Connect a client that must be rejected, and return the rejection."""
    with pytest.raises(InvalidStatus) as error:
        await connect(url, **options)
    return error.value


def has_hub_in_memory(name: str) -> bool:
    """Return whether any object of the process refers to a hub with this name."""
    gc.collect()
    return any(isinstance(each, Hub) and each.name == name for each in gc.get_objects())


@pytest.mark.parametrize(
    "changes",
    [{"key": "another key, which is long enough too"}, {"lifetime_seconds": -1}, {"aud": "http://x/client/hubs/plain"}],
)
async def test_bad_access_tokens_are_rejected_before_the_upgrade(
    running_emulator: Running, changes: dict[str, Any]
) -> None:
    """An expired token, a token for another URL or a token signed with another key gets 401 before the upgrade."""
    url = running_emulator.client_url("plain")
    audience = changes.pop("aud", url)
    error = await read_rejection(f"{url}?access_token={issue_token_for(audience, **changes)}")
    assert error.response.status_code == 401
    assert json.loads(error.response.body or b"")["code"] == "UNAUTHENTICATED"
    assert error.response.headers["www-authenticate"] == "Bearer"


async def test_a_missing_access_token_is_rejected(running_emulator: Running) -> None:
    """A client without a token gets 401, unless the hub allows anonymous clients."""
    assert (await read_rejection(running_emulator.client_url("plain"))).response.status_code == 401
    assert (await read_rejection(running_emulator.client_url("plain") + "/more")).response.status_code == 404


async def test_a_hub_that_only_rejected_clients_named_is_not_kept(running_emulator: Running) -> None:
    """A hub that only rejected clients have named does not stay in memory."""
    assert (await read_rejection(running_emulator.client_url("unused"))).response.status_code == 401
    await wait_until(lambda: not has_hub_in_memory("unused"))


async def test_the_access_token_can_be_in_the_authorization_header(running_emulator: Running) -> None:
    """A token is accepted in the Authorization header and in the query string."""
    url = running_emulator.client_url("plain")
    async with connect(url, additional_headers={"Authorization": f"Bearer {issue_token_for(url, sub='anna')}"}):
        assert len(running_emulator.service.get_or_create_hub("plain").get_user_connections("anna")) == 1


async def test_the_event_handler_receives_the_connect_event(running_emulator: Running) -> None:
    """The event handler gets a connect event as a CloudEvent, with the client's request and a signature."""
    url = running_emulator.client_url()
    token = issue_token_for(url, sub="anna", role=["r"])
    async with connect(
        f"{url}?access_token={token}&connection=a&connection=b",
        additional_headers={"X-Workspace-Authorization": "Bearer w"},
        subprotocols=[Subprotocol("one")],
    ):
        pass
    assert running_emulator.handler.probes == 1
    headers, body = running_emulator.handler.told[0]
    connection_id = headers["ce-connectionid"]
    expected = hmac.new(KEY.encode(), connection_id.encode(), hashlib.sha256).hexdigest()
    assert headers["ce-signature"] == f"sha256={expected}"
    assert headers["ce-specversion"] == "1.0"
    assert headers["ce-type"] == "azure.webpubsub.sys.connect"
    assert headers["ce-source"] == f"/hubs/live/client/{connection_id}"
    assert headers["ce-hub"] == "live"
    assert headers["ce-eventname"] == "connect"
    assert headers["ce-userid"] == "anna"
    assert headers["webhook-request-origin"] == running_emulator.url.removeprefix("http://")
    assert headers["content-type"] == "application/json; charset=utf-8"
    document = json.loads(body)
    assert document["claims"]["sub"] == ["anna"]
    assert document["claims"]["role"] == ["r"]
    assert document["query"] == {"connection": ["a", "b"]}
    assert document["headers"]["x-workspace-authorization"] == ["Bearer w"]
    assert document["subprotocols"] == ["one"]
    assert document["clientCertificates"] == []


async def test_the_event_handlers_response_sets_the_clients_identity(
    running_emulator: Running, live_hub_client: WebPubSubServiceClient
) -> None:
    """The event handler's response sets the client's user, groups, roles and subprotocol."""
    answer = {"userId": "ben", "groups": ["g"], "roles": ["webpubsub.sendToGroup"], "subprotocol": "bearer.x"}
    running_emulator.handler.set_response(answer)
    async with connect(running_emulator.client_url(), subprotocols=[Subprotocol("bearer.x")]) as client:
        assert client.subprotocol == "bearer.x"
        assert await live_hub_client.user_exists("ben")
        await live_hub_client.send_to_group("g", "hello", content_type="text/plain")
        assert await client.recv() == "hello"


async def test_a_subprotocol_that_was_not_offered_is_not_chosen(running_emulator: Running) -> None:
    """The handshake selects a subprotocol only if the client offered it (RFC 6455 section 4.2.2)."""
    running_emulator.handler.set_response({"subprotocol": "another"})
    async with connect(running_emulator.client_url(), subprotocols=[Subprotocol("one")]) as client:
        assert client.subprotocol is None
    async with connect(running_emulator.client_url(), subprotocols=[Subprotocol("one"), Subprotocol(JSON)]) as client:
        assert client.subprotocol == JSON


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
async def test_a_client_gets_the_rejection_of_the_event_handler(running_emulator: Running, status: int) -> None:
    """If the event handler rejects a client, the client gets the status, headers and body of the rejection."""
    running_emulator.handler.status = status
    running_emulator.handler.headers = {"content-type": "application/problem+json", "retry-after": "7"}
    running_emulator.handler.body = b'{"code":"NO"}'
    error = await read_rejection(running_emulator.client_url())
    assert error.response.status_code == status
    assert error.response.body == b'{"code":"NO"}'
    assert error.response.headers["content-type"] == "application/problem+json"
    assert error.response.headers["retry-after"] == "7"
    assert running_emulator.handler.events() == ["connect"]


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"groups":"g"}', b'{"userId":1}'])
async def test_a_malformed_response_of_the_event_handler_rejects_the_client(
    running_emulator: Running, body: bytes
) -> None:
    """If the response of the event handler is malformed, the client is rejected."""
    running_emulator.handler.status, running_emulator.handler.body = 200, body
    error = await read_rejection(running_emulator.client_url())
    assert error.response.status_code == 503
    assert json.loads(error.response.body or b"")["code"] == "EVENT_HANDLER_UNAVAILABLE"


@pytest.mark.parametrize("allowed", ["other.example", ""])
async def test_an_event_handler_must_allow_the_origin_of_the_emulator(running_emulator: Running, allowed: str) -> None:
    """An event handler gets no events until it has allowed the emulator's origin, or all origins, in its reply."""
    running_emulator.handler.allowed = allowed
    assert (await read_rejection(running_emulator.client_url())).response.status_code == 503
    assert running_emulator.handler.told == []
    running_emulator.handler.allowed = f"other.example, {running_emulator.url.removeprefix('http://')}"
    async with connect(running_emulator.client_url()):
        assert running_emulator.handler.events()[0] == "connect"


async def test_the_reliable_subprotocol_is_rejected(running_emulator: Running) -> None:
    """A client that offers only the reliable subprotocol is rejected."""
    error = await read_rejection(running_emulator.client_url(), subprotocols=["json.reliable.webpubsub.azure.v1"])
    assert error.response.status_code == 400


async def test_the_event_handler_gets_connected_and_disconnected_events(running_emulator: Running) -> None:
    """The event handler gets connected and disconnected events in order, with the state of the connection."""
    running_emulator.handler.set_response({"userId": "anna"}, **{"ce-connectionState": "opaque"})
    async with connect(running_emulator.client_url()):
        await wait_until(lambda: running_emulator.handler.events() == ["connect", "connected"])
    await wait_until(lambda: running_emulator.handler.events() == ["connect", "connected", "disconnected"])
    for headers, _ in running_emulator.handler.told[1:]:
        assert headers["ce-userid"] == "anna"
        assert headers["ce-connectionstate"] == "opaque"


async def test_events_of_users_with_any_id_reach_the_event_handler(running_emulator: Running) -> None:
    """The event handler gets the events of a user whose id has characters outside Latin-1; the header is UTF-8."""
    user_id = "审核😀"
    url = running_emulator.client_url()
    async with connect(f"{url}?access_token={issue_token_for(url, sub=user_id)}"):
        pass
    await wait_until(lambda: running_emulator.handler.events() == ["connect", "connected", "disconnected"])
    assert {headers["ce-userid"] for headers, _ in running_emulator.handler.told} == {user_id}


async def test_an_unexpected_failure_of_a_handshake_is_a_problem_document(running_emulator: Running) -> None:
    """A handshake that fails unexpectedly, here for a claim that is no valid text, gets a problem document."""
    url = running_emulator.client_url()
    error = await read_rejection(f"{url}?access_token={issue_token_for(url, sub='a', text='\ud800')}")
    assert error.response.status_code == 500
    assert error.response.headers["content-type"] == "application/problem+json"
    document = json.loads(error.response.body or b"")
    assert (document["code"], document["traceId"]) == ("INTERNAL_ERROR", error.response.headers["x-request-id"])


async def test_a_connection_is_closed_when_its_access_token_expires(running_emulator: Running) -> None:
    """A client is closed with code 4401 at its token's ``exp``, or at an earlier ``expires_at`` of its state."""
    url = running_emulator.client_url("plain")
    soon = format_rfc3339(now() + timedelta(seconds=0.3))
    for claims in ({"lifetime_seconds": 1.2}, {"expires_at": soon}):
        async with connect(f"{url}?access_token={issue_token_for(url, **claims)}") as client:
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), 20)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4401


async def test_the_event_handler_can_set_when_a_connection_is_closed(running_emulator: Running) -> None:
    """If the connection state has ``expiresAt``, the client is closed with code 4401 at this time."""
    state = base64.b64encode(
        json.dumps({"expiresAt": format_rfc3339(now() + timedelta(seconds=0.3))}).encode()
    ).decode()
    running_emulator.handler.set_response({}, **{"ce-connectionState": state})
    async with connect(running_emulator.client_url()) as client:
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(client.recv(), 20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4401
    await wait_until(lambda: "disconnected" in running_emulator.handler.events())
    assert json.loads(running_emulator.handler.told[-1][1])["reason"] == "The token has expired; request a new one."


async def test_the_event_handler_can_extend_a_connection(running_emulator: Running) -> None:
    """An expiry time from the event handler has priority over the expiry of the access token."""
    url = running_emulator.client_url()
    state = base64.b64encode(
        json.dumps({"expiresAt": format_rfc3339(now() + timedelta(seconds=2.5))}).encode()
    ).decode()
    running_emulator.handler.set_response({}, **{"ce-connectionState": state})
    lapses = now() + timedelta(seconds=1)
    async with connect(f"{url}?access_token={issue_token_for(url, expires_at=format_rfc3339(lapses))}") as client:
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(client.recv(), 20)
    assert now() > lapses + timedelta(seconds=1)


async def test_an_event_handler_gets_only_events_to_which_it_subscribed() -> None:
    """If an event handler has subscribed only to the event disconnected, clients connect without a request to it."""
    handler = Handler(status=403)
    settings = HubSettings(upstream=AsgiUpstream(handler, "/e"), system_events=SYSTEM_EVENTS - {"connect"})
    async with run_emulator(ServiceSettings(KEY, other_hubs=settings), handler) as running:
        url = running.client_url("any")
        async with connect(f"{url}?access_token={issue_token_for(url)}"):
            pass
        await wait_until(lambda: handler.events() == ["connected", "disconnected"])


async def test_disconnected_clients_are_removed_from_hub_and_groups(
    running_emulator: Running, connect_to_plain_hub: Connect
) -> None:
    """A client that disconnects is removed from the hub and its groups."""
    client = await connect_to_plain_hub("g", user_id="anna")
    hub = running_emulator.service.get_or_create_hub("plain")
    assert len(hub.get_group_connections("g")) == 1
    await client.close()
    await wait_until(lambda: not hub.connections)
    assert not hub.get_group_connections("g")
    assert not hub.get_user_connections("anna")
