"""Tests that faults of the workspace's Cosmos DB account are logged with their reason."""

import logging

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient

from emulators.cosmos import CosmosServer
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CONNECTIONS
from shared.backends.azure.cosmos_item_store import CosmosItemStore
from shared.errors import WorkspaceError
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE


async def test_the_differences_of_an_unsuitable_container_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The log names the differences of a container from its definition; the store's own error does not name them."""
    async with CosmosServer() as server:
        async with CosmosClient(server.endpoint, server.key) as client:
            database = await client.create_database(DATABASE)
            await database.create_container(CONNECTIONS.name, PartitionKey("/other"), default_ttl=60)
        account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
        with pytest.raises(WorkspaceError, match="does not respond"):
            await CosmosItemStore(account, CONNECTIONS, "CODE", "it").read("n", "n")
        await account.close()
    expected = {
        "container": "connections",
        "reason": "its partition key must be /id; its items must not expire",
    }
    logged = [getattr(record, "fields", {}) for record in caplog.records if record.levelno == logging.ERROR]
    assert logged == [expected]
