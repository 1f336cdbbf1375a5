"""Readiness: what is configured must answer."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from shared.errors import WorkspaceError
from shared.settings import Settings
from shared.wiring import Services
from tests.cosmos_server import CosmosServer
from tests.shared.backends.azure.cosmos_stores import provisioned, stores


async def answers() -> None:
    """Answer."""


@pytest.fixture
async def server() -> AsyncIterator[CosmosServer]:
    """A Cosmos DB with the containers of the chains."""
    async with CosmosServer() as running:
        await provisioned(running)
        yield running


def wired(*, audited: bool) -> Services:
    """Return the services of an Azure deployment, with stand-ins for the engine and the catalog."""
    services = Services(Settings.read({"STORES": "azure"}))
    policies = SimpleNamespace(provenance=object() if audited else None)

    async def catalog() -> SimpleNamespace:
        return SimpleNamespace(policies=policies)

    services.__dict__["engine"] = SimpleNamespace(ping=answers)
    services.__dict__["cold_blobs"] = SimpleNamespace(check=answers)
    services.__dict__["catalog"] = SimpleNamespace(current=catalog)
    return services


async def test_cosmos_must_answer_where_chains_are_kept_there(server: CosmosServer) -> None:
    """Ready while the account answers, not ready when it is gone; without provenance it is not asked."""
    services = wired(audited=True)
    async with stores(server) as (store,):
        services.__dict__["chain_store"] = store
        await services.check()
        await asyncio.to_thread(server.stop)
        with pytest.raises(WorkspaceError):
            await services.check()
        unaudited = wired(audited=False)
        unaudited.__dict__["chain_store"] = store
        await unaudited.check()
