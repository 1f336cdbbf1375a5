"""Tests of the client of the workspace's Cosmos DB account: log of faults, failover, background requests."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from azure.core.pipeline.transport import AsyncHttpTransport
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient

from emulators.cosmos import AccountOptions, CosmosServer, FaultKind, InjectedFault
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CATALOG, CONNECTIONS
from shared.backends.azure.cosmos_item_store import CosmosItemStore
from shared.backends.azure.cosmos_transport import create_single_try_transport
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


@asynccontextmanager
async def open_slow_account() -> AsyncIterator[tuple[CosmosAccount, CosmosServer]]:
    """Return an account that takes half a second to open, and its server; close both after the block."""
    async with CosmosServer() as server:
        await create_database(server)
        server.faults.add(InjectedFault(FaultKind.DELAY, lambda sent: sent.operation == "read_account", seconds=0.5))
        server.requests.clear()
        account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
        yield account, server
        await account.close()


async def test_callers_that_wait_for_an_account_share_its_failure() -> None:
    """If an account cannot be opened, all callers that wait for it fail after one attempt to open it."""
    transports: list[AsyncHttpTransport[Any, Any]] = []

    def create_transport() -> AsyncHttpTransport[Any, Any]:
        transports.append(create_single_try_transport())
        return transports[-1]

    async with CosmosServer() as server:
        server.faults.add(InjectedFault(FaultKind.STATUS, status=403))
        account = CosmosAccount(server.endpoint, DATABASE, key=server.key, create_transport=create_transport)
        names = [CONNECTIONS.name, CATALOG.name] * 3
        errors = await asyncio.gather(*map(account.open_container, names), return_exceptions=True)
        assert [getattr(error, "code", None) for error in errors] == ["PROVENANCE_UNAVAILABLE"] * len(names)
        assert len(transports) == 1
        server.faults.clear()
        await create_database(server)
        assert (await account.open_container(CONNECTIONS.name)).id == CONNECTIONS.name
        await account.close()


async def test_a_cancelled_caller_does_not_end_the_opening() -> None:
    """If a caller is cancelled while the account opens, the opening continues for the next caller."""
    async with open_slow_account() as (account, server):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await account.open_container(CONNECTIONS.name)
        assert (await account.open_container(CONNECTIONS.name)).id == CONNECTIONS.name
        assert len(server.requests.list_by_operation("read_account")) == 1


async def test_closing_an_account_ends_its_opening() -> None:
    """If an account is closed while it opens for a cancelled caller, no connection is open afterwards."""
    async with open_slow_account() as (account, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await account.open_container(CONNECTIONS.name)
        await account.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert account._client is None


async def test_callers_that_wait_for_a_container_share_its_failure() -> None:
    """If a container cannot be read, the callers that wait for it fail after one attempt; other containers open."""
    async with CosmosServer() as server:
        await create_database(server)
        server.faults.add(InjectedFault(FaultKind.STATUS, lambda sent: CATALOG.name in sent.segments, status=403))
        account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
        names = [CATALOG.name] * 3 + [CONNECTIONS.name]
        *errors, opened = await asyncio.gather(*map(account.open_container, names), return_exceptions=True)
        assert [getattr(error, "code", None) for error in errors] == ["PROVENANCE_UNAVAILABLE"] * 3
        assert isinstance(opened, ContainerProxy)
        assert len(server.requests.list_by_operation("read_container")) == 2
        await account.close()
