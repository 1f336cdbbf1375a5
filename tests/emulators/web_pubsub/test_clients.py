"""Tests of plain WebSocket clients and of clients with the subprotocol json.webpubsub.azure.v1."""

import asyncio
import contextlib
import json
import threading
from typing import Any

import pytest
from azure.messaging.webpubsubclient import WebPubSubClient
from azure.messaging.webpubsubclient.aio import WebPubSubClient as AsyncWebPubSubClient
from azure.messaging.webpubsubclient.models import (
    CallbackType,
    SendMessageError,
    WebPubSubDataType,
    WebPubSubProtocolType,
)
from azure.messaging.webpubsubservice.aio import WebPubSubServiceClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from emulators.web_pubsub.requests import REQUESTS
from tests.emulators.web_pubsub.serving import JSON, Connect, Running

_ALL = ["webpubsub.joinLeaveGroup", "webpubsub.sendToGroup"]


async def send_request(client: ClientConnection, **request: Any) -> dict[str, Any]:
    """Send a request over the WebSocket and return its response."""
    await client.send(json.dumps(request))
    answer: dict[str, Any] = json.loads(await asyncio.wait_for(client.recv(), 20))
    return answer


async def test_clients_with_roles_can_join_send_to_and_leave_a_group(connect_to_plain_hub: Connect) -> None:
    """With the roles for a group, a client can join it, send to it, receive from it, and leave it."""
    client = await connect_to_plain_hub(json_client=True, roles=_ALL, user_id="anna")
    assert await send_request(client, type="joinGroup", group="g", ackId=1) == {
        "type": "ack",
        "ackId": 1,
        "success": True,
    }
    message = await send_request(client, type="sendToGroup", group="g", dataType="json", data={"n": 1})
    assert message == {
        "type": "message",
        "from": "group",
        "group": "g",
        "fromUserId": "anna",
        "dataType": "json",
        "data": {"n": 1},
    }
    assert (await send_request(client, type="leaveGroup", group="g", ackId=2))["success"]
    # Only the ack is returned.
    assert (await send_request(client, type="sendToGroup", group="g", dataType="text", data="x", ackId=3))["ackId"] == 3


async def test_the_data_type_selects_text_or_binary_messages(connect_to_plain_hub: Connect) -> None:
    """Plain clients receive text and JSON as text messages, and other data as binary messages."""
    plain_frame, sender = await connect_to_plain_hub("g"), await connect_to_plain_hub("g", json_client=True, roles=_ALL)
    for ack_id, (data_type, data) in enumerate((("text", "ü"), ("json", [1, None]), ("binary", "AP8="))):
        request = {"type": "sendToGroup", "group": "g", "dataType": data_type, "data": data, "noEcho": True}
        assert (await send_request(sender, **request, ackId=ack_id))["success"]
    assert [await plain_frame.recv() for _ in range(3)] == ["ü", "[1,null]", b"\x00\xff"]


async def test_a_role_for_one_group_is_valid_only_there(connect_to_plain_hub: Connect) -> None:
    """A client with a role for one group gets the error Forbidden for requests to other groups."""
    client = await connect_to_plain_hub(
        json_client=True, roles=["webpubsub.joinLeaveGroup.a", "webpubsub.sendToGroup.b"]
    )
    assert (await send_request(client, type="joinGroup", group="a", ackId=1))["success"]
    assert (await send_request(client, type="joinGroup", group="b", ackId=2))["error"]["name"] == "Forbidden"
    assert (await send_request(client, type="sendToGroup", group="b", dataType="text", data="x", ackId=3))["success"]
    assert (await send_request(client, type="sendToGroup", group="a", dataType="text", data="x", ackId=4))[
        "success"
    ] is False


async def test_a_permission_granted_to_a_connected_client_applies_at_once(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """A permission that is granted to a connected client applies at once."""
    client = await connect_to_plain_hub(json_client=True)
    assert not (await send_request(client, type="joinGroup", group="a", ackId=1))["success"]
    (connection_id,) = running_emulator.service.get_or_create_hub("plain").connections
    await plain_hub_client.grant_permission("joinLeaveGroup", connection_id, target_name="a")
    assert (await send_request(client, type="joinGroup", group="a", ackId=2))["success"]


async def test_a_request_with_a_repeated_ack_id_is_not_executed(connect_to_plain_hub: Connect) -> None:
    """A request that repeats an earlier ackId is not executed."""
    client = await connect_to_plain_hub("g", json_client=True, roles=_ALL)
    request = {"type": "sendToGroup", "group": "g", "dataType": "text", "data": "x", "noEcho": True, "ackId": 7}
    assert (await send_request(client, **request))["success"]
    assert (await send_request(client, **request))["error"]["name"] == "Duplicate"


async def test_a_ping_of_the_subprotocol_gets_a_pong(connect_to_plain_hub: Connect) -> None:
    """A ping of the subprotocol receives a pong."""
    assert await send_request(await connect_to_plain_hub(json_client=True), type="ping") == {"type": "pong"}


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        '{"type":"sequenceAck","sequenceId":1}',
        '{"type":"joinGroup"}',
        '{"type":"joinGroup","group":" "}',
        '{"type":"joinGroup","group":"g","ackId":-1}',
        '{"type":"sendToGroup","group":"g","dataType":"protobuf","data":""}',
        '{"type":"sendToGroup","group":"g","dataType":"binary","data":"*"}',
        '{"type":"sendToGroup","group":"g","dataType":"text","data":1}',
        '{"type":"sendToGroup","group":"g","dataType":"json","data":123456789012345678901234567890}',
        '{"type":"event","event":"a b","dataType":"text","data":""}',
    ],
)
async def test_an_invalid_request_closes_the_connection(connect_to_plain_hub: Connect, text: str) -> None:
    """After an invalid request, a client gets a system message and is closed with code 1008."""
    client = await connect_to_plain_hub(json_client=True, roles=_ALL)
    await client.send(text)
    assert json.loads(await client.recv())["event"] == "disconnected"
    with pytest.raises(ConnectionClosed) as closed:
        await client.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


@given(st.one_of(st.text(), st.binary(), st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps)))
def test_any_message_is_parsed_or_rejected(message: str | bytes) -> None:
    """Each message of a client is either parsed as a request or raises a validation error."""
    with contextlib.suppress(ValidationError):
        REQUESTS.validate_json(message)


async def test_client_events_reach_the_handler_and_its_responses_the_client(running_emulator: Running) -> None:
    """The event handler gets a client's event with name and type; the handler's response becomes a server message."""
    async with connect(running_emulator.client_url(), subprotocols=[Subprotocol(JSON)]) as client:
        assert json.loads(await client.recv())["event"] == "connected"
        running_emulator.handler.set_response({"done": True}, **{"content-type": "application/json"})
        answer = await send_request(client, type="event", event="press", dataType="json", data={"a": 1}, ackId=1)
        assert answer == {"type": "message", "from": "server", "dataType": "json", "data": {"done": True}}
        assert json.loads(await client.recv()) == {"type": "ack", "ackId": 1, "success": True}
        headers, body = running_emulator.handler.told[-1]
        assert (headers["ce-type"], headers["ce-subprotocol"]) == ("azure.webpubsub.user.press", JSON)
        assert headers["content-type"] == "application/json; charset=utf-8"
        assert json.loads(body) == {"a": 1}


async def test_messages_of_plain_clients_become_the_event_message(running_emulator: Running) -> None:
    """A message of a plain client is sent to the event handler as the event ``message``.

    If the event handler rejects the event, the connection is closed.
    """
    async with connect(running_emulator.client_url()) as client:
        running_emulator.handler.status, running_emulator.handler.body = 200, b"\x01\x02"
        running_emulator.handler.headers = {"content-type": "application/octet-stream"}
        await client.send("hello")
        assert await client.recv() == b"\x01\x02"
        headers, body = running_emulator.handler.told[-1]
        assert (headers["ce-type"], body) == ("azure.webpubsub.user.message", b"hello")
        assert headers["content-type"] == "text/plain; charset=utf-8"
        running_emulator.handler.status = 500
        await client.send(b"again")
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008


async def test_messages_of_plain_clients_are_dropped_without_an_event_handler(
    plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """In a hub without an event handler, messages of plain clients are dropped."""
    client = await connect_to_plain_hub()
    await client.send("text")
    await client.send(b"binary")
    await plain_hub_client.send_to_all("still", content_type="text/plain")
    assert await client.recv() == "still"


async def test_the_official_async_client_joins_sends_and_receives(plain_hub_client: WebPubSubServiceClient) -> None:
    """The official asynchronous client can join, send with acks, receive, and read a rejection."""
    token = await plain_hub_client.get_client_access_token(
        roles=["webpubsub.joinLeaveGroup", "webpubsub.sendToGroup.g"]
    )
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with AsyncWebPubSubClient(
        token["url"], protocol_type=WebPubSubProtocolType.JSON, message_retry_total=0
    ) as client:
        await client.subscribe(CallbackType.GROUP_MESSAGE, heard.put)
        await client.join_group("g")
        await client.send_to_group("g", {"n": 1}, WebPubSubDataType.JSON)
        assert (await asyncio.wait_for(heard.get(), 20)).data == {"n": 1}
        await client.leave_group("g")
        with pytest.raises(SendMessageError):
            await client.send_to_group("other", "x", WebPubSubDataType.TEXT)


async def test_the_official_sync_client_joins_sends_and_receives(plain_hub_client: WebPubSubServiceClient) -> None:
    """The official synchronous client can join, send with acks, and receive."""
    token = await plain_hub_client.get_client_access_token(roles=_ALL)
    heard: list[Any] = []
    done = threading.Event()

    def record_message(message: Any) -> None:
        heard.append(message.data)
        done.set()

    def run() -> None:
        client = WebPubSubClient(token["url"], protocol_type=WebPubSubProtocolType.JSON)
        with client:
            client.subscribe(CallbackType.GROUP_MESSAGE, record_message)
            client.join_group("g")
            client.send_to_group("g", "hello", WebPubSubDataType.TEXT)
            assert done.wait(20)

    await asyncio.to_thread(run)
    assert heard == ["hello"]
