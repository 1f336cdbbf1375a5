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


def find_connection_id(running_emulator: Running, client: ClientConnection, position: int = 0) -> str:
    """Return the connection id of a plain client, which the server does not send to such a client."""
    return list(running_emulator.service.get_or_create_hub("plain").connections)[position]


async def test_plain_clients_receive_messages_as_they_were_sent(
    plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """Plain clients receive JSON and text as text messages, and other data as binary messages."""
    client = await connect_to_plain_hub("g")
    await plain_hub_client.send_to_group("g", {"n": 1.5})
    # The SDK counts the characters of a str for its length in bytes.
    await plain_hub_client.send_to_group("g", BytesIO("grüße".encode()), content_type="text/plain")
    await plain_hub_client.send_to_group("g", BytesIO(b"\x00\xff"), content_type="application/octet-stream")
    assert [await client.recv() for _ in range(3)] == ['{"n": 1.5}', "grüße", b"\x00\xff"]


async def test_json_clients_receive_messages_with_origin_and_type(
    plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """Clients with the subprotocol receive a message with its origin and data type."""
    client = await connect_to_plain_hub("g", json_client=True)
    await plain_hub_client.send_to_group("g", {"n": 1})
    await plain_hub_client.send_to_all("t", content_type="text/plain")
    await plain_hub_client.send_to_all(BytesIO(b"\x00\xff"), content_type="application/octet-stream")
    assert json.loads(await client.recv()) == {
        "type": "message",
        "from": "group",
        "group": "g",
        "dataType": "json",
        "data": {"n": 1},
    }
    assert json.loads(await client.recv()) == {"type": "message", "from": "server", "dataType": "text", "data": "t"}
    assert json.loads(await client.recv())["data"] == "AP8="


async def test_messages_reach_the_users_and_connections_they_address(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """A message to a user reaches all of the user's connections; a message to a connection reaches only this one."""
    first, second, other = (
        await connect_to_plain_hub(user_id="anna"),
        await connect_to_plain_hub(user_id="anna"),
        await connect_to_plain_hub(user_id="ben"),
    )
    await plain_hub_client.send_to_user("anna", "to anna", content_type="text/plain")
    await plain_hub_client.send_to_connection(
        find_connection_id(running_emulator, second, 1), "to one", content_type="text/plain"
    )
    await plain_hub_client.send_to_all("to all", content_type="text/plain")
    assert [await first.recv(), await first.recv()] == ["to anna", "to all"]
    assert [await second.recv(), await second.recv(), await second.recv()] == ["to anna", "to one", "to all"]
    assert await other.recv() == "to all"


async def test_excluded_connections_get_no_message(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """Excluded connections do not receive a message to a group or to the whole hub."""
    left_out, reached = await connect_to_plain_hub("g"), await connect_to_plain_hub("g")
    excluded = [find_connection_id(running_emulator, left_out), "unknown"]
    await plain_hub_client.send_to_group("g", "group", content_type="text/plain", excluded=excluded)
    await plain_hub_client.send_to_all("all", content_type="text/plain", excluded=excluded)
    await plain_hub_client.send_to_all("last", content_type="text/plain")
    assert [await reached.recv() for _ in range(3)] == ["group", "all", "last"]
    assert await left_out.recv() == "last"


async def test_the_server_can_add_and_remove_members_of_groups(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """The server can add, list and remove the connections and users of a group."""
    clients = [await connect_to_plain_hub(user_id="anna") for _ in range(3)]
    one = find_connection_id(running_emulator, clients[0])
    await plain_hub_client.add_connection_to_group("a", one)
    await plain_hub_client.add_user_to_group("b", "anna")
    assert await plain_hub_client.group_exists("a")
    assert [member.connection_id async for member in plain_hub_client.list_connections(group="a")] == [one]
    members = [member async for member in plain_hub_client.list_connections(group="b", top=2)]
    assert [member.user_id for member in members] == ["anna", "anna"]
    await plain_hub_client.remove_connection_from_group("a", one)
    await plain_hub_client.remove_user_from_group("b", "anna")
    assert not await plain_hub_client.group_exists("a")
    await plain_hub_client.add_user_to_group("c", "anna")
    await plain_hub_client.remove_connection_from_all_groups(one)
    await plain_hub_client.remove_user_from_all_groups("anna")
    assert not await plain_hub_client.group_exists("c")


async def test_members_of_large_groups_are_listed_in_pages(
    running_emulator: Running,
    http: httpx.AsyncClient,
    plain_hub_client: WebPubSubServiceClient,
    connect_to_plain_hub: Connect,
) -> None:
    """The pages of a group's member list contain each member once; ``top`` limits the list."""
    for _ in range(5):
        await connect_to_plain_hub("g")
    ids = sorted(running_emulator.service.get_or_create_hub("plain").connections)
    url: str | None = f"{running_emulator.url}/api/hubs/plain/groups/g/connections?{VERSION}&maxpagesize=2&top=4"
    seen = []
    while url:
        page = (await http.get(url, headers=build_authorization(url))).json()
        seen.append([member["connectionId"] for member in page["value"]])
        url = page.get("nextLink")
    assert seen == [ids[0:2], ids[2:4]]


async def test_the_existence_of_connections_users_and_groups_is_reported(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """A connection, user or group exists while one of its clients is connected."""
    client = await connect_to_plain_hub("g", user_id="anna")
    assert await plain_hub_client.connection_exists(find_connection_id(running_emulator, client))
    assert await plain_hub_client.user_exists("anna")
    assert not await plain_hub_client.connection_exists("nobody")
    assert not await plain_hub_client.user_exists("ben")
    assert not await plain_hub_client.group_exists("h")


@pytest.mark.parametrize("close", ["connection", "user", "group", "all"])
async def test_the_server_can_close_connections(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect, close: str
) -> None:
    """A connection that the server closes has code 1000 and the given reason, and is removed from the hub."""
    client = await connect_to_plain_hub("g", user_id="anna")
    match close:
        case "connection":
            await plain_hub_client.close_connection(find_connection_id(running_emulator, client), reason="enough")
        case "user":
            await plain_hub_client.close_user_connections("anna", reason="enough")
        case "group":
            await plain_hub_client.close_group_connections("g", reason="enough")
        case _:
            await plain_hub_client.close_all_connections(reason="enough")
    with pytest.raises(ConnectionClosed) as closed:
        await client.recv()
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1000, "enough")
    assert not await plain_hub_client.user_exists("anna")


@pytest.mark.parametrize(
    "reason", ["member's gone", "a+b & c=d; 100%", "läuft ab: 期限切れ 🔒", "%27 is no apostrophe", "a,b!(c)*~'", "?/#"]
)
async def test_close_reason_is_unchanged(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect, *, reason: str
) -> None:
    """A client receives the reason of a close request unchanged."""
    client = await connect_to_plain_hub()
    await plain_hub_client.close_connection(find_connection_id(running_emulator, client), reason=reason)
    with pytest.raises(ConnectionClosed) as closed:
        await client.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.reason == reason


async def test_clients_that_a_close_request_excludes_stay_connected(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """Clients that a close request excludes stay connected."""
    stays, goes = await connect_to_plain_hub(), await connect_to_plain_hub()
    await plain_hub_client.close_all_connections(excluded=[find_connection_id(running_emulator, stays)])
    with pytest.raises(ConnectionClosed):
        await goes.recv()
    await plain_hub_client.send_to_all("still", content_type="text/plain")
    assert await stays.recv() == "still"


async def test_permissions_are_granted_and_revoked(
    running_emulator: Running, plain_hub_client: WebPubSubServiceClient, connect_to_plain_hub: Connect
) -> None:
    """A permission is valid from its grant to its revocation, for one group or for all groups."""
    one = find_connection_id(running_emulator, await connect_to_plain_hub(json_client=True))
    await plain_hub_client.grant_permission("sendToGroup", one, target_name="g")
    assert await plain_hub_client.has_permission("sendToGroup", one, target_name="g")
    assert not await plain_hub_client.has_permission("sendToGroup", one)
    assert not await plain_hub_client.has_permission("joinLeaveGroup", one, target_name="g")
    await plain_hub_client.revoke_permission("sendToGroup", one, target_name="g")
    assert not await plain_hub_client.has_permission("sendToGroup", one, target_name="g")


async def test_the_official_sync_client_can_do_all_rest_operations(
    running_emulator: Running, connect_to_plain_hub: Connect
) -> None:
    """The official synchronous client can do everything that the asynchronous client can do."""
    client = await connect_to_plain_hub("g")
    with SyncServiceClient(running_emulator.url, "plain", AzureKeyCredential(KEY)) as service:
        await asyncio.to_thread(service.send_to_group, "g", {"sync": True})
        assert await asyncio.to_thread(service.group_exists, "g")
    assert json.loads(await client.recv()) == {"sync": True}
