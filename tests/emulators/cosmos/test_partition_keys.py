"""Tests of partition keys: types, paths and hashes."""

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue
from hypothesis import given
from hypothesis import strategies as st

from emulators.cosmos import CosmosServer
from emulators.cosmos.partition_keys import hash_partition_key, partition_key_from_document

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.text(max_size=60)
)


@given(st.lists(SCALARS, min_size=1, max_size=3))
def test_the_partition_key_hash_equals_that_of_the_sdk(values: list[Any]) -> None:
    """The emulator and the SDK compute the same hash of a partition key."""
    paths = [f"/k{index}" for index in range(len(values))]
    key = partition_key_from_document({f"k{index}": value for index, value in enumerate(values)}, paths)
    theirs = PartitionKey(paths, kind="MultiHash")._get_effective_partition_key_string(values)
    assert hash_partition_key(key) == theirs


async def _read_ids(container: ContainerProxy, partition_key: Any) -> list[Any]:
    found = container.query_items("SELECT VALUE c.id FROM c", partition_key=partition_key)
    return [item_id async for item_id in found]


async def test_partition_keys_of_different_types_are_different_partitions(container: ContainerProxy) -> None:
    """The keys 1, true, "1", null and a missing value belong to different partitions; 1 and 1.0 to the same."""
    values: dict[str, Any] = {"number": 1, "float": 1.0, "true": True, "text": "1", "null": None}
    for name, value in values.items():
        await container.create_item({"id": name, "pk": value})
    await container.create_item({"id": "none"})
    await container.create_item({"id": "object", "pk": {}})
    assert await _read_ids(container, 1) == ["number", "float"]
    assert await _read_ids(container, True) == ["true"]
    assert await _read_ids(container, "1") == ["text"]
    assert await _read_ids(container, NullPartitionKeyValue) == ["null"]
    assert await _read_ids(container, NonePartitionKeyValue) == ["none", "object"]
    assert (await container.read_item("none", NonePartitionKeyValue))["id"] == "none"
    assert (await container.read_item("null", NullPartitionKeyValue))["id"] == "null"


async def test_a_nested_property_can_be_the_partition_key(database: DatabaseProxy) -> None:
    """A path such as /a/b selects a nested property as partition key."""
    container = await database.create_container("nested", PartitionKey("/a/b"))
    await container.create_item({"id": "x", "a": {"b": "p"}})
    await container.create_item({"id": "y", "a": "p"})
    assert await _read_ids(container, "p") == ["x"]
    assert await _read_ids(container, NonePartitionKeyValue) == ["y"]


async def test_a_prefix_of_a_hierarchical_key_finds_items(server: CosmosServer, database: DatabaseProxy) -> None:
    """Items with a key of three levels are found by the complete key and by its first one or two levels."""
    container = await database.create_container("levels", PartitionKey(["/a", "/b", "/c"], kind="MultiHash"))
    for n in range(24):
        await container.create_item({"id": str(n), "a": f"a{n % 2}", "b": n % 3, "c": n % 4})
    assert await _read_ids(container, ["a0", 0, 0]) == ["0", "12"]
    assert sorted(await _read_ids(container, ["a1", 2])) == sorted(
        str(n) for n in range(24) if n % 2 == 1 and n % 3 == 2
    )
    assert len(await _read_ids(container, ["a1"])) == 12
    assert (await container.read_item("5", ["a1", 2, 1]))["id"] == "5"


async def test_a_partition_key_over_2_kb_is_rejected(container: ContainerProxy) -> None:
    """A partition key value over 2 KB is rejected."""
    await container.create_item({"id": "a", "pk": "x" * 2048})
    with pytest.raises(CosmosHttpResponseError) as caught:
        await container.create_item({"id": "a", "pk": "x" * 2049})
    assert caught.value.status_code == 400


async def test_feed_ranges_contain_each_item_once(container: ContainerProxy) -> None:
    """Each feed range is a physical partition, and together they contain each item once."""
    for n in range(30):
        await container.create_item({"id": str(n), "pk": f"p{n}"})
    found: list[Any] = []
    sizes = []
    async for feed_range in container.read_feed_ranges():
        part = [item_id async for item_id in container.query_items("SELECT VALUE c.id FROM c", feed_range=feed_range)]
        sizes.append(len(part))
        found += part
    assert sorted(found) == sorted(str(n) for n in range(30))
    assert len(sizes) == 3
    assert min(sizes) > 0
