"""Tests of queries during a partition split between two pages, and of timeouts of queries."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from azure.core.pipeline.transport import AioHttpTransport
from azure.cosmos.aio import CosmosClient

from emulators.cosmos import CosmosRequest, CosmosServer, FaultKind, InjectedFault
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.backends.azure.cosmos_containers import CATALOG
from shared.backends.azure.cosmos_documents import CosmosDocumentStore
from shared.backends.azure.cosmos_item_store import CosmosItemStore
from shared.data_stores.models import DocumentKey
from shared.provenance.ports import ChainKey, Filters, LookupField
from tests.unit.shared.backends.azure.cosmos_accounts import TABLES, create_tables, open_document_store
from tests.unit.shared.backends.azure.cosmos_stores import (
    CHAIN,
    DATABASE,
    MANY,
    build_batch,
    create_database,
    fill_chain,
    open_stores,
)

COUNT = 5
PAGE_SIZE = 2
LINE = TABLES["/line"]
OTHER = ChainKey(CHAIN.target, "line 2")


@dataclass
class FilledStores:
    """Cosmos DB emulator, and stores on it that contain chains, state items and documents."""

    server: CosmosServer
    chains: CosmosChainStore
    states: CosmosItemStore
    documents: CosmosDocumentStore

    async def list_all_documents(self) -> list[bytes]:
        """Return all documents from all pages of the list."""
        found: list[bytes] = []
        after = None
        while True:
            page = await self.documents.list(LINE, "l1", 3, after, all_partitions=False)
            found += page.texts
            after = page.next_position
            if after is None:
                return found


@pytest.fixture
async def filled_stores() -> AsyncIterator[FilledStores]:
    """Provide two chains, state items and documents, several of each."""
    async with CosmosServer(physical_partitions=2) as server:
        await create_database(server)
        await create_tables(server)
        async with open_stores(server) as (chains,), open_document_store(server) as kept:
            account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
            states = CosmosItemStore(account, CATALOG, "CODE", "it")
            tip = await fill_chain(chains, COUNT)
            await chains.append(OTHER, build_batch(tip, 1), await chains.read_tip(OTHER))
            for number in range(COUNT):
                assert await states.put_if_unchanged(None, {"id": f"s{number}", "scope": "s"})
                key = DocumentKey(f"d{number}", "l1")
                await kept.create(LINE, key, json.dumps({"id": key.id, "line": "l1"}).encode())
            yield FilledStores(server, chains, states, kept)
            await account.close()


READS: dict[str, Callable[[FilledStores], Awaitable[Any]]] = {
    "records": lambda plant: plant.chains.read(CHAIN, 0, limit=99, max_bytes=MANY),
    "newest": lambda plant: plant.chains.scan(CHAIN, Filters(), limit=99, max_bytes=MANY),
    "hashes": lambda plant: plant.chains.read_hashes(CHAIN, 0, limit=99),
    "append ids": lambda plant: plant.chains.find(CHAIN, LookupField.APPEND_ID, [f"e-{n + 1}" for n in range(COUNT)]),
    "state": lambda plant: plant.states.query_items("SELECT * FROM c", "s"),
    "state everywhere": lambda plant: plant.states.query_items("SELECT * FROM c"),
    "documents": lambda plant: plant.list_all_documents(),
}


@pytest.mark.parametrize("name", READS)
async def test_a_partition_split_between_two_pages_repeats_no_item(filled_stores: FilledStores, name: str) -> None:
    """If a partition is split between two pages (410/1002), each item is returned once and in order."""
    undisturbed = await READS[name](filled_stores)
    applied = 0
    for number in range(1, 12):
        gone = InjectedFault(FaultKind.STATUS, _match_nth_query(number), times=1, status=410, substatus=1002)
        filled_stores.server.faults.add_all([gone, InjectedFault(FaultKind.PARTIAL_PAGE, page_size=PAGE_SIZE)])
        assert await READS[name](filled_stores) == undisturbed, (
            f"wrong items after the partition split at query {number}"
        )
        filled_stores.server.faults.clear()
        applied += gone.applied
    assert applied > 2


async def test_each_chain_is_returned_once_despite_a_split(filled_stores: FilledStores) -> None:
    """If a partition is split while chains are listed, each chain is returned once."""
    for number in range(1, 5):
        gone = InjectedFault(FaultKind.STATUS, _match_nth_query(number), times=1, status=410, substatus=1002)
        filled_stores.server.faults.add_all([gone, InjectedFault(FaultKind.PARTIAL_PAGE, page_size=1)])
        assert sorted(
            chain.scope_key for chain in [chain async for chain, _ in filled_stores.chains.iterate_tips()]
        ) == [
            CHAIN.scope_key,
            OTHER.scope_key,
        ]
        filled_stores.server.faults.clear()
        assert gone.applied == 1


async def test_the_sdk_alone_repeats_items_after_a_split(filled_stores: FilledStores) -> None:
    """The SDK alone repeats items after a split; once this test fails, the service's workaround can be removed."""
    async with CosmosClient(filled_stores.server.endpoint, filled_stores.server.key) as client:
        container = client.get_database_client(DATABASE).get_container_client(CATALOG.name)
        gone = InjectedFault(FaultKind.STATUS, _match_nth_query(2), times=1, status=410, substatus=1002)
        filled_stores.server.faults.add_all([gone, InjectedFault(FaultKind.PARTIAL_PAGE, page_size=PAGE_SIZE)])
        given = [item["id"] async for item in container.query_items("SELECT * FROM c", partition_key="s")]
    assert given == ["s0", "s1", "s0", "s1", "s2", "s3", "s4"]


class _RecordingTransport(AioHttpTransport):  # type: ignore[misc]  # the SDK exports no type
    """HTTP transport that records the read timeout of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.timeouts: list[float | None] = []

    async def send(self, request: Any, **config: Any) -> Any:
        """Record the read timeout and send the request."""
        self.timeouts.append(config.get("read_timeout"))
        return await super().send(request, **config)


async def test_every_request_of_a_query_has_a_timeout(filled_stores: FilledStores) -> None:
    """Each request of a query over all partitions, also for its plan, has the account's read timeout."""
    transport = _RecordingTransport()
    account = CosmosAccount(
        filled_stores.server.endpoint,
        DATABASE,
        key=filled_stores.server.key,
        read_seconds=7,
        create_transport=lambda: transport,
    )
    states = CosmosItemStore(account, CATALOG, "CODE", "it")
    assert await states.read("s0", "s")
    transport.timeouts.clear()
    assert len(await states.query_items("SELECT TOP 9 * FROM c ORDER BY c.id")) == COUNT
    await account.close()
    assert len(transport.timeouts) > 2
    assert set(transport.timeouts) == {7}


async def test_the_sdk_waits_for_a_query_plan_without_a_timeout(filled_stores: FilledStores) -> None:
    """The SDK alone sets no timeout for query plans; once this test fails, the service's workaround can be removed."""
    transport = _RecordingTransport()
    async with CosmosClient(
        filled_stores.server.endpoint, filled_stores.server.key, transport=transport, read_timeout=7
    ) as client:
        container = client.get_database_client(DATABASE).get_container_client(CATALOG.name)
        query = container.query_items("SELECT TOP 9 * FROM c ORDER BY c.id")
        assert len([item async for item in query]) == COUNT
    assert None in transport.timeouts


def _match_nth_query(number: int) -> Callable[[CosmosRequest], bool]:
    seen = 0

    def is_affected(request: CosmosRequest) -> bool:
        nonlocal seen
        seen += request.operation == "query"
        return request.operation == "query" and seen == number

    return is_affected
