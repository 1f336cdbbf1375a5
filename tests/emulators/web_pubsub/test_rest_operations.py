"""Tests of the data plane with the official service SDK."""

import asyncio
import json
from io import BytesIO

import httpx
import pytest
from azure.core.credentials import AzureKeyCredential
from azure.messaging.webpubsubservice import WebPubSubServiceClient as SyncServiceClient
from azure.messaging.webpubsubservice.aio import WebPubSubServiceClient
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from tests.emulators.web_pubsub.serving import KEY, VERSION, Connect, Running, build_authorization


def find_connection_id(running: Running, client: ClientConnection, number: int = 0) -> str:
    """Return the connection id of a plain client, which the server does not send to such a client."""
    return list(running.service.get_or_create_hub("plain").connections)[number]


async def test_messages_arrive_as_they_were_sent(plain_frame: WebPubSubServiceClient, join: Connect) -> None:
    """Plain clients receive JSON and text as text messages, and other data as binary messages."""
    client = await join("g")
    await plain_frame.send_to_group("g", {"n": 1.5})
    # The SDK counts the characters of a str for its length in bytes.
    await plain_frame.send_to_group("g", BytesIO("grüße".encode()), content_type="text/plain")
    await plain_frame.send_to_group("g", BytesIO(b"\x00\xff"), content_type="application/octet-stream")
    assert [await client.recv() for _ in range(3)] == ['{"n": 1.5}', "grüße", b"\x00\xff"]


async def test_json_clients_receive_envelopes(plain_frame: WebPubSubServiceClient, join: Connect) -> None:
    """Clients with the subprotocol receive a message with its origin and data type."""
    client = await join("g", json_client=True)
    await plain_frame.send_to_group("g", {"n": 1})
    await plain_frame.send_to_all("t", content_type="text/plain")
    await plain_frame.send_to_all(BytesIO(b"\x00\xff"), content_type="application/octet-stream")
    assert json.loads(await client.recv()) == {
        "type": "message",
        "from": "group",
        "group": "g",
        "dataType": "json",
        "data": {"n": 1},
    }
    assert json.loads(await client.recv()) == {"type": "message", "from": "server", "dataType": "text", "data": "t"}
    assert json.loads(await client.recv())["data"] == "AP8="


async def test_users_and_connections_are_reached(
    running: Running, plain_frame: WebPubSubServiceClient, join: Connect
) -> None:
    """A message to a user reaches all of the user's connections; a message to a connection reaches only this one."""
    first, second, other = await join(user_id="anna"), await join(user_id="anna"), await join(user_id="ben")
    await plain_frame.send_to_user("anna", "to anna", content_type="text/plain")
    await plain_frame.send_to_connection(find_connection_id(running, second, 1), "to one", content_type="text/plain")
    await plain_frame.send_to_all("to all", content_type="text/plain")
    assert [await first.recv(), await first.recv()] == ["to anna", "to all"]
    assert [await second.recv(), await second.recv(), await second.recv()] == ["to anna", "to one", "to all"]
    assert await other.recv() == "to all"


async def test_excluded_connections_are_left_out(
    running: Running, plain_frame: WebPubSubServiceClient, join: Connect
) -> None:
    """Excluded connection ids receive nothing, in a group and in the whole hub."""
    left_out, reached = await join("g"), await join("g")
    excluded = [find_connection_id(running, left_out), "unknown"]
    await plain_frame.send_to_group("g", "group", content_type="text/plain", excluded=excluded)
    await plain_frame.send_to_all("all", content_type="text/plain", excluded=excluded)
    await plain_frame.send_to_all("last", content_type="text/plain")
    assert [await reached.recv() for _ in range(3)] == ["group", "all", "last"]
    assert await left_out.recv() == "last"


async def test_groups_are_changed_by_the_server(
    running: Running, plain_frame: WebPubSubServiceClient, join: Connect
) -> None:
    """The server can add, list and remove the connections and users of a group."""
    clients = [await join(user_id="anna") for _ in range(3)]
    one = find_connection_id(running, clients[0])
    await plain_frame.add_connection_to_group("a", one)
    await plain_frame.add_user_to_group("b", "anna")
    assert await plain_frame.group_exists("a")
    assert [member.connection_id async for member in plain_frame.list_connections(group="a")] == [one]
    members = [member async for member in plain_frame.list_connections(group="b", top=2)]
    assert [member.user_id for member in members] == ["anna", "anna"]
    await plain_frame.remove_connection_from_group("a", one)
    await plain_frame.remove_user_from_group("b", "anna")
    assert not await plain_frame.group_exists("a")
    await plain_frame.add_user_to_group("c", "anna")
    await plain_frame.remove_connection_from_all_groups(one)
    await plain_frame.remove_user_from_all_groups("anna")
    assert not await plain_frame.group_exists("c")


async def test_long_groups_are_listed_in_pages(
    running: Running, http: httpx.AsyncClient, plain_frame: WebPubSubServiceClient, join: Connect
) -> None:
    """The pages of a group's member list contain each member once; ``top`` limits the list."""
    for _ in range(5):
        await join("g")
    ids = sorted(running.service.get_or_create_hub("plain").connections)
    url: str | None = f"{running.url}/api/hubs/plain/groups/g/connections?{VERSION}&maxpagesize=2&top=4"
    seen = []
    while url:
        page = (await http.get(url, headers=build_authorization(url))).json()
        seen.append([member["connectionId"] for member in page["value"]])
        url = page.get("nextLink")
    assert seen == [ids[0:2], ids[2:4]]


async def test_existence_is_reported(running: Running, plain_frame: WebPubSubServiceClient, join: Connect) -> None:
    """A connection, user or group exists while one of its clients is connected."""
    client = await join("g", user_id="anna")
    assert await plain_frame.connection_exists(find_connection_id(running, client))
    assert await plain_frame.user_exists("anna")
    assert not await plain_frame.connection_exists("nobody")
    assert not await plain_frame.user_exists("ben")
    assert not await plain_frame.group_exists("h")


@pytest.mark.parametrize("close", ["connection", "user", "group", "all"])
async def test_the_server_closes_clients(
    running: Running, plain_frame: WebPubSubServiceClient, join: Connect, close: str
) -> None:
    """A connection that the server closes has code 1000 and the given reason, and is removed from the hub."""
    client = await join("g", user_id="anna")
    match close:
        case "connection":
            await plain_frame.close_connection(find_connection_id(running, client), reason="enough")
        case "user":
            await plain_frame.close_user_connections("anna", reason="enough")
        case "group":
            await plain_frame.close_group_connections("g", reason="enough")
        case _:
            await plain_frame.close_all_connections(reason="enough")
    with pytest.raises(ConnectionClosed) as closed:
        await client.recv()
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1000, "enough")
    assert not await plain_frame.user_exists("anna")


@pytest.mark.parametrize(
    "reason", ["member's gone", "a+b & c=d; 100%", "läuft ab: 期限切れ 🔒", "%27 is no apostrophe", "a,b!(c)*~'", "?/#"]
)
async def test_close_reason_is_unchanged(
    running: Running, plain_frame: WebPubSubServiceClient, join: Connect, *, reason: str
) -> None:
    """A client receives the reason of a close unchanged."""
    client = await join()
    await plain_frame.close_connection(find_connection_id(running, client), reason=reason)
    with pytest.raises(ConnectionClosed) as closed:
        await client.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.reason == reason


async def test_excluded_clients_stay_open(running: Running, plain_frame: WebPubSubServiceClient, join: Connect) -> None:
    """Clients that a close request excludes stay connected."""
    stays, goes = await join(), await join()
    await plain_frame.close_all_connections(excluded=[find_connection_id(running, stays)])
    with pytest.raises(ConnectionClosed):
        await goes.recv()
    await plain_frame.send_to_all("still", content_type="text/plain")
    assert await stays.recv() == "still"


async def test_permissions_are_granted_and_revoked(
    running: Running, plain_frame: WebPubSubServiceClient, join: Connect
) -> None:
    """A permission is valid from its grant to its revocation, for one group or for all groups."""
    one = find_connection_id(running, await join(json_client=True))
    await plain_frame.grant_permission("sendToGroup", one, target_name="g")
    assert await plain_frame.has_permission("sendToGroup", one, target_name="g")
    assert not await plain_frame.has_permission("sendToGroup", one)
    assert not await plain_frame.has_permission("joinLeaveGroup", one, target_name="g")
    await plain_frame.revoke_permission("sendToGroup", one, target_name="g")
    assert not await plain_frame.has_permission("sendToGroup", one, target_name="g")


async def test_the_official_sync_client_can_do_the_same(running: Running, join: Connect) -> None:
    """The official synchronous client can do everything that the asynchronous client can do."""
    client = await join("g")
    with SyncServiceClient(running.url, "plain", AzureKeyCredential(KEY)) as service:
        await asyncio.to_thread(service.send_to_group, "g", {"sync": True})
        assert await asyncio.to_thread(service.group_exists, "g")
    assert json.loads(await client.recv()) == {"sync": True}
