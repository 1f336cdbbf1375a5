"""Tests that warm query names stay unique during concurrent changes, with every catalog store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from shared.auth.principals import CredentialKind, Principal
from shared.backends.azure.cosmos_catalog import CosmosCatalogStore
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.catalog.document import load_document
from shared.catalog.models import WarmQuery
from shared.catalog.service import CatalogService
from shared.errors import WorkspaceError
from shared.provenance.chain_log import ChainLog, EventLog
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.definitions import QueryDefinitions
from shared.warm_queries.ports import Column, EngineQuery, EngineResult
from tests.adapters.cosmos import KINDS, open_accounts
from tests.unit.shared.catalog.stores import get_workspace_id, open_catalog_stores

DOCUMENT = "workspace: {id: plant-a, name: Plant}\npolicies: {provenance: {}}\nsurfaces: [{lookup: hall, name: Hall}]\n"
EDITOR = Principal("editor", "editor", "editor", frozenset(), CredentialKind.JWT, "", None)
CONTRADICTIONS = [
    ({"lookup": "pressure", "name": "Pressure"}, {"lookup": "other", "name": "pressure"}),
    ({"lookup": "a", "apiPath": "hall/flow", "name": "Flow"}, {"lookup": "b", "name": "hall/flow"}),
    ({"lookup": "c", "name": "Level"}, {"lookup": "Level", "name": "Other level"}),
    ({"lookup": "d", "name": "hall/heat"}, {"lookup": "e", "apiPath": "hall/heat", "name": "Heat"}),
]
"""Pairs of queries of which one's name is the other's lookup or API path."""


class Engine:
    """Fake query engine that accepts every query and returns an empty result."""

    async def execute(self, _: EngineQuery) -> EngineResult:
        """Return an empty result for every query."""
        return EngineResult((Column("n", "long"),), [], 1.0)

    async def ping(self) -> None:
        """Do nothing: this fake query engine is always available."""


@pytest.fixture(params=["sqlite", *KINDS])
async def instances(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[CatalogService]]:
    """Return two instances of the catalog service over one store."""
    async with AsyncExitStack() as stack:
        if request.param == "sqlite":
            opened_stores = [await stack.enter_async_context(open_catalog_stores(tmp_path)) for _ in range(2)]
            services = [each.service for each in opened_stores]
        else:
            account = await stack.enter_async_context(open_accounts(request.param))
            services = [
                CatalogService(
                    CosmosCatalogStore(client), EventLog(ChainLog(CosmosChainStore(client), get_workspace_id))
                )
                for client in (account(), account())
            ]
        await services[0].apply(load_document(DOCUMENT, "w.yaml"), "admin")
        yield services


async def store_query(service: CatalogService, fields: dict[str, str]) -> str:
    """Store a query and return the error code, or an empty text on success."""
    query = WarmQuery.model_validate({"surface": "hall", "kql": "Telemetry | count", **fields})
    while True:
        try:
            await QueryDefinitions(service, QueryColumns(Engine())).store_draft(EDITOR, query)
        except WorkspaceError as error:
            if error.code != "CATALOG_CHANGED":
                return error.code
        else:
            return ""


@pytest.mark.parametrize("pair", CONTRADICTIONS, ids=lambda pair: pair[1]["name"])
async def test_one_of_two_queries_with_conflicting_names_is_stored(
    instances: list[CatalogService], pair: tuple[dict[str, str], dict[str, str]]
) -> None:
    """If two instances store queries with conflicting names at the same time, one succeeds."""
    codes = await asyncio.gather(
        *(store_query(service, fields) for service, fields in zip(instances, pair, strict=True))
    )
    assert sorted(codes) == ["", "WARM_QUERY_NAME_TAKEN"]
