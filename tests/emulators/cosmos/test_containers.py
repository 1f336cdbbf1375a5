"""Tests of databases, containers and throughput through the SDK."""

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceExistsError, CosmosResourceNotFoundError

from emulators.cosmos import CosmosServer

POLICY: Any = {  # the SDK annotates policies as dict[str, str]
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/sequence/?"}],
    "excludedPaths": [{"path": "/*"}],
}


async def test_databases_are_created_and_deleted(client: CosmosClient) -> None:
    """A database can be created, read, listed and deleted; creating an existing database is rejected."""
    await client.create_database_if_not_exists("plant")
    await client.create_database_if_not_exists("plant")
    with pytest.raises(CosmosResourceExistsError):
        await client.create_database("plant")
    assert [database["id"] async for database in client.list_databases()] == ["plant"]
    found = client.query_databases("SELECT * FROM d WHERE d.id = @id", parameters=[{"name": "@id", "value": "plant"}])
    assert [database["id"] async for database in found] == ["plant"]
    await client.delete_database("plant")
    with pytest.raises(CosmosResourceNotFoundError):
        await client.get_database_client("plant").read()


async def test_containers_are_created_and_deleted(database: DatabaseProxy) -> None:
    """A container can be created with a partition key and an index policy, listed and deleted."""
    container = await database.create_container("records", PartitionKey("/a/b"), indexing_policy=POLICY)
    again = await database.create_container_if_not_exists("records", PartitionKey("/a/b"))
    properties = await again.read()
    assert properties["partitionKey"] == {"paths": ["/a/b"], "kind": "Hash", "version": 2}
    assert properties["indexingPolicy"] == POLICY
    with pytest.raises(CosmosResourceExistsError):
        await database.create_container("records", PartitionKey("/a/b"))
    assert [one["id"] async for one in database.list_containers()] == ["records"]
    await database.delete_container(container)
    with pytest.raises(CosmosResourceNotFoundError):
        await container.read()


async def test_container_names_are_case_sensitive(database: DatabaseProxy) -> None:
    """Names of containers are case-sensitive."""
    await database.create_container("records", PartitionKey("/pk"))
    await database.create_container("Records", PartitionKey("/pk"))
    assert [one["id"] async for one in database.list_containers()] == ["records", "Records"]


async def test_index_policy_can_be_replaced(database: DatabaseProxy) -> None:
    """The index policy of a container can be changed; the partition key of a container cannot."""
    container = await database.create_container("records", PartitionKey("/pk"))
    await database.replace_container(container, PartitionKey("/pk"), indexing_policy=POLICY)
    assert (await container.read())["indexingPolicy"] == POLICY
    with pytest.raises(CosmosHttpResponseError) as caught:
        await database.replace_container(container, PartitionKey("/other"))
    assert caught.value.status_code == 400


async def test_a_container_reports_its_last_throughput(database: DatabaseProxy) -> None:
    """A container reports the throughput that was set most recently."""
    container = await database.create_container("records", PartitionKey("/pk"), offer_throughput=400)
    assert (await container.get_throughput()).offer_throughput == 400
    assert (await container.replace_throughput(800)).offer_throughput == 800
    assert (await container.get_throughput()).offer_throughput == 800


async def test_unsupported_container_properties_are_rejected(database: DatabaseProxy) -> None:
    """Unsupported container properties are rejected."""
    computed: Any = [{"name": "n", "query": "SELECT VALUE c.n FROM c"}]
    with pytest.raises(CosmosHttpResponseError, match="does not implement the container property 'computedProperties'"):
        await database.create_container("records", PartitionKey("/pk"), computed_properties=computed)


async def test_items_expire_after_their_time_to_live() -> None:
    """An item expires after its own time to live or, without one, after the default time to live of its container.

    The value -1 means never.
    """
    ticks = [1_000_000.0]
    async with CosmosServer(clock=lambda: ticks[0]) as server, CosmosClient(server.endpoint, server.key) as client:
        database = await client.create_database("plant")
        container = await database.create_container("records", PartitionKey("/pk"), default_ttl=100)
        await _check_expiry(container, ticks)


async def _check_expiry(container: ContainerProxy, ticks: list[float]) -> None:
    for item_id, own in (("default", {}), ("short", {"ttl": 10}), ("never", {"ttl": -1}), ("renewed", {"ttl": 10})):
        await container.create_item({"id": item_id, "pk": "a", **own})
    found: list[str] = []
    for later, left in ((9, 4), (10, 3), (100, 2), (10_000, 1)):
        ticks[0] = 1_000_000 + later
        found = [item["id"] async for item in container.query_items("SELECT * FROM c", partition_key="a")]
        assert len(found) == left
        if later == 9:
            await container.upsert_item({"id": "renewed", "pk": "a", "ttl": 500})
    assert found == ["never"]


async def test_a_time_to_live_of_zero_is_rejected(database: DatabaseProxy) -> None:
    """A time to live of zero is rejected."""
    with pytest.raises(CosmosHttpResponseError, match="time to live"):
        await database.create_container("records", PartitionKey("/pk"), default_ttl=0)
