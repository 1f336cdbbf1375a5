"""Helpers that open document stores on the Cosmos DB emulator."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient

from emulators.cosmos import CosmosServer
from shared.backends.azure.cosmos_data_accounts import DataAccount, DataAccounts
from shared.backends.azure.cosmos_documents import CosmosDocumentStore
from shared.data_stores.models import AccountContainer, DatabaseAddress, Table

PLACE = DatabaseAddress("mes", "orders")
TABLES = {
    path: Table(PLACE, AccountContainer(name, path)) for path, name in (("/line", "wo"), ("/a/b", "ne"), ("/id", "no"))
}


async def create_tables(server: CosmosServer) -> None:
    """Create the database with a container for each of :data:`TABLES`."""
    async with CosmosClient(server.endpoint, server.key) as client:
        database = await client.create_database(PLACE.database)
        for path, table in TABLES.items():
            await database.create_container(table.container.name, PartitionKey(path))


@asynccontextmanager
async def open_document_store(server: CosmosServer, *, read_seconds: float = 10) -> AsyncIterator[CosmosDocumentStore]:
    """Open a document store on the emulator."""
    account = DataAccount(server.endpoint, key=server.key)
    store = CosmosDocumentStore(DataAccounts({PLACE.store: account}, read_seconds=read_seconds))
    try:
        yield store
    finally:
        await store.close()
