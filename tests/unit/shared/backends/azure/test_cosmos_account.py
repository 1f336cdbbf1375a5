"""Tests of the client of the workspace's Cosmos DB account: log of faults, failover, background requests."""

import logging
from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient

from emulators.cosmos import AccountOptions, CosmosServer
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CONNECTIONS
from shared.backends.azure.cosmos_item_store import CosmosItemStore
from shared.errors import WorkspaceError
from tests.unit.shared.backends.azure.cosmos_stores import (
    CHAIN,
    DATABASE,
    create_database,
    fill_chain,
    open_stores,
    read_sequences,
)


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


async def test_an_account_with_per_partition_failover_is_used_like_any_other() -> None:
    """Per-partition automatic failover of an account changes no read, append or query of the service."""
    options = AccountOptions(per_partition_failover=True, read_regions=("West Europe", "North Europe"))
    async with CosmosServer(options=options) as server:
        await create_database(server)
        async with open_stores(server) as (store,):
            tip = await fill_chain(store, 2)
            assert await store.read_tip(CHAIN) == tip
            assert await read_sequences(store) == [1, 2]
            assert await store.count_records(CHAIN, ()) == 2


async def test_an_open_account_is_not_read_again() -> None:
    """After the account is opened, no request of the SDK in the background reads its properties."""
    async with CosmosServer() as server:
        await create_database(server)
        account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
        await account.open_container(CONNECTIONS.name)
        opened = len(server.requests.list_by_operation("read_account"))
        manager: Any = (await account.open_container(CONNECTIONS.name)).client_connection._global_endpoint_manager
        manager.last_refresh_time = 0
        await CosmosItemStore(account, CONNECTIONS, "CODE", "it").read("n", "n")
        assert manager.refresh_task is None
        assert len(server.requests.list_by_operation("read_account")) == opened
        await account.close()
