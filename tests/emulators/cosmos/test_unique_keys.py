"""Tests of the unique keys of containers."""

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosResourceExistsError


@pytest.fixture
async def keyed(database: DatabaseProxy) -> ContainerProxy:
    """Return a container with the unique key /n."""
    unique: Any = {"uniqueKeys": [{"paths": ["/n"]}]}
    return await database.create_container("keyed", PartitionKey("/pk"), unique_key_policy=unique)


async def test_a_value_is_unique_within_a_partition(keyed: ContainerProxy) -> None:
    """A second item with the same value is rejected in the same logical partition, but not in another."""
    await keyed.create_item({"id": "a", "pk": "p", "n": 1})
    with pytest.raises(CosmosResourceExistsError):
        await keyed.create_item({"id": "b", "pk": "p", "n": 1})
    await keyed.create_item({"id": "b", "pk": "q", "n": 1})


async def test_a_missing_value_counts_as_null(keyed: ContainerProxy) -> None:
    """Only one item of a partition may have no value for the unique key."""
    await keyed.create_item({"id": "a", "pk": "p"})
    with pytest.raises(CosmosResourceExistsError):
        await keyed.create_item({"id": "b", "pk": "p", "n": None})


async def test_a_released_value_can_be_reused(keyed: ContainerProxy) -> None:
    """After an item is replaced or removed, another item may use its value."""
    await keyed.create_item({"id": "a", "pk": "p", "n": 1})
    await keyed.replace_item("a", {"id": "a", "pk": "p", "n": 1, "more": True})
    await keyed.replace_item("a", {"id": "a", "pk": "p", "n": 2})
    await keyed.create_item({"id": "b", "pk": "p", "n": 1})
    await keyed.delete_item("b", "p")
    await keyed.create_item({"id": "c", "pk": "p", "n": 1})


async def test_a_batch_with_equal_values_is_undone(keyed: ContainerProxy) -> None:
    """A batch with two equal values is undone; if a batch frees a value, it can use it again."""
    await keyed.create_item({"id": "a", "pk": "p", "n": 1})
    same: list[Any] = [("create", ({"id": name, "pk": "p", "n": 2},)) for name in ("b", "c")]
    with pytest.raises(CosmosBatchOperationError) as caught:
        await keyed.execute_item_batch(same, "p")
    assert caught.value.status_code == 409
    moved: list[Any] = [("delete", ("a",)), ("create", ({"id": "b", "pk": "p", "n": 1},))]
    await keyed.execute_item_batch(moved, "p")
    assert [item["id"] async for item in keyed.read_all_items()] == ["b"]
