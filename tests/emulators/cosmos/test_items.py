"""Tests of operations on items and their errors through the SDK."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosBatchOperationError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from emulators.cosmos import CosmosServer

MEGABYTES_2 = 2 * 1024 * 1024


async def test_items_are_created_changed_and_deleted(container: ContainerProxy) -> None:
    """An item can be created, read, replaced, upserted and deleted; each write sets a new ETag."""
    created = await container.create_item({"id": "a", "pk": "p", "n": 1})
    assert await container.read_item("a", "p") == created
    replaced = await container.replace_item("a", {"id": "a", "pk": "p", "n": 2})
    upserted = await container.upsert_item({"id": "a", "pk": "p", "n": 3})
    assert len({created["_etag"], replaced["_etag"], upserted["_etag"]}) == 3
    assert (await container.read_item("a", "p"))["n"] == 3
    await container.delete_item("a", "p")
    with pytest.raises(CosmosResourceNotFoundError):
        await container.read_item("a", "p")


async def test_item_replies_have_etag_charge_and_session_token(container: ContainerProxy) -> None:
    """A reply has the ETag, the request charge, the session token and the item's system properties."""
    created = await container.create_item({"id": "a", "pk": "p"})
    headers = created.get_response_headers()
    assert headers["etag"] == created["_etag"]
    assert float(headers["x-ms-request-charge"]) > 0
    assert headers["x-ms-session-token"] == "0:0#1"
    assert {"_rid", "_self", "_ts", "_attachments"} <= created.keys()


async def test_an_existing_id_cannot_be_created(container: ContainerProxy) -> None:
    """Creating an item is rejected if its id exists in the same logical partition."""
    await container.create_item({"id": "a", "pk": "p"})
    await container.create_item({"id": "a", "pk": "q"})
    await container.create_item({"id": "A", "pk": "p"})
    with pytest.raises(CosmosResourceExistsError) as caught:
        await container.create_item({"id": "a", "pk": "p"})
    assert caught.value.status_code == 409
    assert "Conflict" in caught.value.message


type Write = Callable[[ContainerProxy, str], Awaitable[object]]

WRITES: dict[str, Write] = {
    "replace": lambda c, tag: c.replace_item(
        "a", {"id": "a", "pk": "p"}, etag=tag, match_condition=MatchConditions.IfNotModified
    ),
    "upsert": lambda c, tag: c.upsert_item(
        {"id": "a", "pk": "p"}, etag=tag, match_condition=MatchConditions.IfNotModified
    ),
    "delete": lambda c, tag: c.delete_item("a", "p", etag=tag, match_condition=MatchConditions.IfNotModified),
    "patch": lambda c, tag: c.patch_item(
        "a",
        "p",
        [{"op": "set", "path": "/n", "value": 1}],
        etag=tag,
        match_condition=MatchConditions.IfNotModified,
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_write_with_an_old_etag_is_rejected(container: ContainerProxy, write: Write) -> None:
    """A write with If-Match is rejected if the item has changed since the ETag was read."""
    old = await container.create_item({"id": "a", "pk": "p"})
    new = await container.upsert_item({"id": "a", "pk": "p"})
    with pytest.raises(CosmosAccessConditionFailedError) as caught:
        await write(container, old["_etag"])
    assert caught.value.status_code == 412
    await write(container, new["_etag"])


async def test_a_conditional_read_of_an_unchanged_item_returns_304(
    server: CosmosServer, container: ContainerProxy
) -> None:
    """A read with If-None-Match of an unchanged item returns 304; the SDK then returns an empty document."""
    item = await container.create_item({"id": "a", "pk": "p"})
    condition = {"etag": item["_etag"], "match_condition": MatchConditions.IfModified}
    assert await container.read_item("a", "p", **condition) == {}
    assert server.requests.list_by_operation("read_item")[-1].status == 304
    await container.upsert_item({"id": "a", "pk": "p"})
    assert (await container.read_item("a", "p", **condition))["id"] == "a"


async def test_operations_on_missing_items_return_404(container: ContainerProxy) -> None:
    """Reading, replacing, patching or deleting a missing item returns 404."""
    for attempt in (
        container.read_item("a", "p"),
        container.replace_item("a", {"id": "a", "pk": "p"}),
        container.patch_item("a", "p", [{"op": "add", "path": "/n", "value": 1}]),
        container.delete_item("a", "p"),
    ):
        with pytest.raises(CosmosResourceNotFoundError) as caught:
            await attempt
        assert caught.value.status_code == 404


@pytest.mark.filterwarnings("ignore:Sending a large body directly")  # aiohttp, of what the SDK hands it
async def test_a_document_over_two_megabytes_is_rejected(container: ContainerProxy) -> None:
    """A document of 2 MB is stored; one byte more is rejected with 413."""
    item = await container.upsert_item({"id": "a", "pk": "p", "s": ""})
    container_text = (
        '{"id":"a","pk":"p","s":"","_rid":"","_self":"","_etag":"\\"\\"","_attachments":"","_ts":0000000000}'
    )
    values = sum(len(item[name]) for name in ("_rid", "_self", "_attachments")) + len(item["_etag"]) - 2
    room = MEGABYTES_2 - len(container_text) - values
    await container.upsert_item({"id": "a", "pk": "p", "s": "x" * room})
    for size in (room + 1, MEGABYTES_2 + 1, 3 * MEGABYTES_2):
        with pytest.raises(CosmosHttpResponseError) as caught:
            await container.upsert_item({"id": "a", "pk": "p", "s": "x" * size})
        assert caught.value.status_code == 413


@pytest.mark.parametrize("item_id", ["a/b", "a\\b", "a?b", "a#b", "x" * 1024, "é" * 512])
async def test_invalid_item_ids_are_rejected(server: CosmosServer, container: ContainerProxy, item_id: str) -> None:
    r"""Ids with / \ ? # or over 1,023 bytes are rejected, even if the SDK accepts them."""
    with pytest.raises((ValueError, CosmosHttpResponseError)):
        await container.create_item({"id": item_id, "pk": "p"})
    with pytest.raises(CosmosBatchOperationError) as caught:
        await container.execute_item_batch([("create", ({"id": item_id, "pk": "p"},))], "p")
    assert caught.value.status_code == 400


@pytest.mark.parametrize("item_id", ["a b", "é", "%2F", "a+b", "a:b", "x" * 1023, "日本", "a=&@b", "..."])
async def test_unusual_item_ids_are_stored(container: ContainerProxy, item_id: str) -> None:
    """Item ids with all other characters, such as blanks and percent signs, are stored unchanged."""
    await container.create_item({"id": item_id, "pk": item_id})
    assert (await container.read_item(item_id, item_id))["id"] == item_id


@pytest.mark.parametrize("item_id", [".", ".."])
async def test_the_sdk_cannot_read_items_with_dots_as_ids(container: ContainerProxy, item_id: str) -> None:
    """The SDK cannot read items with the ids `.` and `..`, because it resolves them in URLs; queries find them."""
    await container.create_item({"id": item_id, "pk": "p"})
    with pytest.raises(CosmosHttpResponseError) as caught:
        await container.read_item(item_id, "p")
    assert caught.value.status_code == 401
    found: list[Any] = [one async for one in container.query_items("SELECT VALUE c.id FROM c", partition_key="p")]
    assert found == [item_id]


async def test_the_partition_key_of_a_write_must_match_the_document(container: ContainerProxy) -> None:
    """A write gets 400/1001 if the partition key of the request differs from that of the document."""
    await container.create_item({"id": "a", "pk": "p"})
    with pytest.raises(CosmosBatchOperationError) as caught:
        await container.execute_item_batch([("create", ({"id": "b", "pk": "q"},))], "p")
    assert caught.value.status_code == 400


async def test_large_integers_are_rounded(container: ContainerProxy) -> None:
    """An integer above 2^53 is rounded to a double."""
    await container.create_item({"id": "a", "pk": "p", "n": 9007199254740993, "m": [9007199254740992]})
    item = await container.read_item("a", "p")
    assert (item["n"], item["m"]) == (9007199254740992, [9007199254740992])


async def test_client_values_of_system_fields_are_ignored(container: ContainerProxy) -> None:
    """Values that a client sets for _etag, _ts, _rid and _self are ignored."""
    item = await container.create_item({"id": "a", "pk": "p", "_etag": "mine", "_ts": 1, "_rid": "r", "_self": "s"})
    assert (item["_etag"] != "mine", item["_ts"] != 1, item["_rid"] != "r", item["_self"] != "s") == (True,) * 4


async def test_with_no_response_a_write_returns_no_document(container: ContainerProxy) -> None:
    """With the option no_response, a write returns headers without a document."""
    item = await container.create_item({"id": "a", "pk": "p"}, no_response=True)
    assert item == {}
    assert item.get_response_headers()["etag"]


async def test_patch_operations_have_the_documented_results(container: ContainerProxy) -> None:
    """Patch operations, conditional or not, have the results of the REST reference."""
    await container.create_item({"id": "a", "pk": "p", "n": 1, "list": [1, 3], "old": {"x": 1}, "gone": 1})
    operations: list[dict[str, Any]] = [
        {"op": "incr", "path": "/n", "value": 2},
        {"op": "add", "path": "/list/1", "value": 2},
        {"op": "add", "path": "/list/-", "value": 4},
        {"op": "replace", "path": "/old/x", "value": 9},
        {"op": "move", "from": "/old", "path": "/new"},
        {"op": "remove", "path": "/gone"},
    ]
    item = await container.patch_item("a", "p", operations, filter_predicate="FROM c WHERE c.n = 1")
    kept = {name: value for name, value in item.items() if not name.startswith("_")}
    assert kept == {"id": "a", "pk": "p", "n": 3, "list": [1, 2, 3, 4], "new": {"x": 9}}
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.patch_item("a", "p", operations, filter_predicate="FROM c WHERE c.n = 1")
