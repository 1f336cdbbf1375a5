"""Fixtures: Cosmos DB emulator and SDK client for each test."""

from collections.abc import AsyncIterator

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy

from emulators.cosmos import CosmosServer


@pytest.fixture
async def server() -> AsyncIterator[CosmosServer]:
    """Return a Cosmos DB emulator with three physical partitions per container."""
    async with CosmosServer(physical_partitions=3) as running:
        yield running


@pytest.fixture
async def client(server: CosmosServer) -> AsyncIterator[CosmosClient]:
    """Return a client of the azure-cosmos SDK with default options, connected to the emulator."""
    async with CosmosClient(server.endpoint, server.key) as opened:
        yield opened


@pytest.fixture
async def database(client: CosmosClient) -> DatabaseProxy:
    """Return an empty database."""
    return await client.create_database("plant")


@pytest.fixture
async def container(database: DatabaseProxy) -> ContainerProxy:
    """Return an empty container with the partition key /pk."""
    return await database.create_container("records", PartitionKey("/pk"))
