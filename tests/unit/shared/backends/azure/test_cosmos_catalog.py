"""Tests of catalog changes and their audit events in Cosmos DB, by several service instances with failing requests."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from shared.backends.azure import cosmos_catalog
from shared.backends.azure.cosmos_catalog import SCOPE, CosmosCatalogStore
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.backends.azure.cosmos_containers import CATALOG
from shared.backends.azure.cosmos_item_store import CosmosItemStore
from shared.catalog.diff import ItemChange
from shared.catalog.document import load_document
from shared.catalog.items import ItemKind
from shared.catalog.ports import CatalogItem, ItemOrigin, PendingEvent, StoredCatalog
from shared.catalog.service import CatalogService
from shared.errors import WorkspaceError
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.ports import ChainKey, Target
from shared.provenance.records import parse_record
from tests.adapters.cosmos import COSMOS, FAILING, Accounts, open_accounts

DOCUMENT = "workspace: {id: plant-a, name: Plant}\npolicies: {provenance: {}}\nsurfaces: [{lookup: hall, name: Hall}]\n"
INSTANCES, CHANGES = 4, 8
MANY = 2**40


async def get_workspace_id() -> str:
    """Return the id of the workspace."""
    return "plant-a"


def build_service(account: Accounts) -> tuple[CatalogService, CosmosChainStore]:
    """Return the catalog service of one service instance."""
    client = account()
    chains = CosmosChainStore(client)
    return CatalogService(CosmosCatalogStore(client), EventLog(ChainLog(chains, get_workspace_id))), chains


async def change_catalog(changes: CatalogService, decide: Callable[[StoredCatalog], Sequence[ItemChange]]) -> bool:
    """Change the catalog; return False if the change failed because of concurrent changes."""
    try:
        await changes.commit_api_changes(decide, "editor")
    except WorkspaceError as error:
        if error.code != "CATALOG_CHANGED":
            raise
        return False
    return True


async def test_every_change_and_its_event_are_stored_once() -> None:
    """If requests of concurrent service instances fail, each change and its audit event are stored exactly once."""
    async with open_accounts(FAILING) as account:
        instances = [build_service(account) for _ in range(INSTANCES)]
        await instances[0][0].apply(load_document(DOCUMENT, "test"), "admin")
        names = [f"q-{number}" for number in range(INSTANCES * CHANGES)]

        async def change_connection(number: int) -> None:
            for name in names[number::INSTANCES]:

                def decide(_: StoredCatalog, name: str = name) -> Sequence[ItemChange]:
                    made = {"lookup": name, "name": name, "surface": "hall", "kql": "Telemetry | count"}
                    return [ItemChange(ItemKind.WARM_QUERY, name, None, made)]

                while not await change_catalog(instances[number][0], decide):
                    pass

        await asyncio.gather(*(change_connection(number) for number in range(INSTANCES)))
        changes, chains = instances[0]
        await changes.flush_and_count_pending_events()
        stored = await changes.load()
        page = await chains.read(ChainKey(Target.PLATFORM_CONFIG), 0, limit=1_000, max_bytes=MANY)
    assert sorted(item.key for item in stored.items if item.kind == ItemKind.WARM_QUERY) == sorted(names)
    entered = [parse_record(record.canonical, record.hash)["EntityID"] for record in page.records]
    assert sorted(each for each in entered if each.startswith("q-")) == sorted(names)


async def test_items_that_no_version_lists_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change deletes the items that it replaces; a later change deletes the items that a crash left behind."""
    async with open_accounts(COSMOS) as account:
        state = CosmosItemStore(account(), CATALOG, "CODE", "it")
        small = CosmosCatalogStore(account(), batch_bytes=1)
        events = [PendingEvent(f"id-{n}", "PlatformConfig", "admin", {"EntityID": str(n)}) for n in range(3)]
        await small.save([], [], events, 0)
        with pytest.raises(WorkspaceError, match="changed"):
            await small.save([], [], events, 7)
        await state.put_if_unchanged(None, {"id": "left-by-a-crash", "scope": SCOPE})
        assert len(await _list_item_ids(state)) == 5
        await small.save([], [], [], 1)
        assert "left-by-a-crash" in await _list_item_ids(state)
        monkeypatch.setattr(cosmos_catalog, "ABANDONED_SECONDS", -5)
        await small.save([], [], [], 2)
        assert len(await _list_item_ids(state)) == 4
        await small.delete_pending_events([event.append_id for event in events])
        assert await _list_item_ids(state) == {"head"}


async def test_a_change_that_takes_too_long_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that takes too long is rejected, because another change may have deleted its new items."""
    monkeypatch.setattr(cosmos_catalog, "ABANDONED_SECONDS", -1)
    async with open_accounts(COSMOS) as account:
        store = CosmosCatalogStore(account(), batch_bytes=1)
        with pytest.raises(WorkspaceError) as caught:
            await store.save([], [], [PendingEvent("id", "PlatformConfig", "admin", {})], 0)
        assert caught.value.code == "CATALOG_UNAVAILABLE"
        assert await store.read_version() == 0


async def test_an_item_that_does_not_fit_into_cosmos_db_is_refused() -> None:
    """A catalog item or an audit event that exceeds the size of a Cosmos DB item is refused; nothing is stored."""
    text, at = '"' * 700_000, datetime(2026, 3, 1, tzinfo=UTC)
    item = CatalogItem("surface", "hall", {"description": text}, ItemOrigin.API, at, at, "admin")
    event = PendingEvent("id", "PlatformConfig", "admin", {"EntityType": "Surface", "AfterState": {"text": text}})
    async with open_accounts(COSMOS) as account:
        store = CosmosCatalogStore(account())
        for puts, events, name in ([item], [], "surface 'hall'"), ([], [event], "audit event of Surface"):
            with pytest.raises(WorkspaceError, match=name) as caught:
                await store.save(puts, [], events, 0)
            assert caught.value.code == "RECORD_TOO_LARGE"
        assert await _list_item_ids(CosmosItemStore(account(), CATALOG, "CODE", "it")) == set()


async def _list_item_ids(state: CosmosItemStore) -> set[str]:
    found = await state.query_items("SELECT c.id FROM c WHERE c.scope = @scope", SCOPE, scope=SCOPE)
    return {str(item["id"]) for item in found}
