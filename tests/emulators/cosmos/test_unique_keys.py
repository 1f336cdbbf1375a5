"""Tests of the unique keys of containers."""

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosResourceExistsError


@pytest.fixture
async def container_with_unique_key(database: DatabaseProxy) -> ContainerProxy:
    """Return a container with the unique key /n."""
    unique: Any = {"uniqueKeys": [{"paths": ["/n"]}]}
    return await database.create_container("keyed", PartitionKey("/pk"), unique_key_policy=unique)


async def test_a_unique_key_value_is_unique_within_a_partition(container_with_unique_key: ContainerProxy) -> None:
    """A second item with the same value is rejected in the same logical partition, but not in another."""
    await container_with_unique_key.create_item({"id": "a", "pk": "p", "n": 1})
    with pytest.raises(CosmosResourceExistsError):
        await container_with_unique_key.create_item({"id": "b", "pk": "p", "n": 1})
    await container_with_unique_key.create_item({"id": "b", "pk": "q", "n": 1})


async def test_a_missing_unique_key_value_counts_as_null(container_with_unique_key: ContainerProxy) -> None:
    """Only one item of a partition may have no value for the unique key."""
    await container_with_unique_key.create_item({"id": "a", "pk": "p"})
    with pytest.raises(CosmosResourceExistsError):
        await container_with_unique_key.create_item({"id": "b", "pk": "p", "n": None})


async def test_a_released_unique_key_value_can_be_reused(container_with_unique_key: ContainerProxy) -> None:
    """After an item is replaced or removed, another item may use the unique key value of the old item."""
    await container_with_unique_key.create_item({"id": "a", "pk": "p", "n": 1})
    await container_with_unique_key.replace_item("a", {"id": "a", "pk": "p", "n": 1, "more": True})
    await container_with_unique_key.replace_item("a", {"id": "a", "pk": "p", "n": 2})
    await container_with_unique_key.create_item({"id": "b", "pk": "p", "n": 1})
    await container_with_unique_key.delete_item("b", "p")
    await container_with_unique_key.create_item({"id": "c", "pk": "p", "n": 1})


async def test_a_batch_with_equal_unique_key_values_is_undone(container_with_unique_key: ContainerProxy) -> None:
    """A batch with two equal unique key values is undone; a value that a batch frees can be used in the same batch."""
    await container_with_unique_key.create_item({"id": "a", "pk": "p", "n": 1})
    same: list[Any] = [("create", ({"id": name, "pk": "p", "n": 2},)) for name in ("b", "c")]
    with pytest.raises(CosmosBatchOperationError) as caught:
        await container_with_unique_key.execute_item_batch(same, "p")
    assert caught.value.status_code == 409
    moved: list[Any] = [("delete", ("a",)), ("create", ({"id": "b", "pk": "p", "n": 1},))]
    await container_with_unique_key.execute_item_batch(moved, "p")
    assert [item["id"] async for item in container_with_unique_key.read_all_items()] == ["b"]
