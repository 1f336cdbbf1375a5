"""Tests that damaged items in Cosmos DB are reported and all other items can be read."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.cosmos.aio import ContainerProxy, CosmosClient

from emulators.cosmos import CosmosServer
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.backends.azure.cosmos_chain_items import HEAD_ID, compute_partition_key, record_to_item
from shared.errors import WorkspaceError, is_permanent
from shared.provenance.amendments import Amendments
from shared.provenance.chain_log import ChainLog
from shared.provenance.decisions import find_decisions
from shared.provenance.hash_rule import format_record_id
from shared.provenance.ports import ChainRecord, Filters, LookupField
from shared.provenance.queries import query_records
from shared.provenance.records import build_event_draft, seal_record
from shared.provenance.verifier import ChainVerifier
from tests.unit.shared.backends.azure.cosmos_stores import (
    CHAIN,
    DATABASE,
    EVENT,
    MANY,
    create_database,
    fill_chain,
    get_workspace_id,
    open_stores,
)
from tests.unit.shared.provenance.test_amendments import CHAIN as CORRECTIONS
from tests.unit.shared.provenance.test_amendments import STRICT, build_body, catch_rejection

COUNT = 5
KEY = compute_partition_key(CHAIN, 1)


@pytest.fixture
async def server() -> AsyncIterator[CosmosServer]:
    """Provide an emulator with the containers of the chains."""
    async with CosmosServer() as running:
        await create_database(running)
        yield running


@pytest.fixture
async def store(server: CosmosServer) -> AsyncIterator[CosmosChainStore]:
    """Provide a store with a chain of five records."""
    async with open_stores(server) as (opened,):
        await fill_chain(opened, COUNT)
        yield opened


@pytest.fixture
async def container(server: CosmosServer) -> AsyncIterator[ContainerProxy]:
    """Provide the container for changes that bypass the store."""
    async with CosmosClient(server.endpoint, server.key) as client:
        yield client.get_database_client(DATABASE).get_container_client(CHAIN.target)


DAMAGE: dict[str, tuple[dict[str, Any], bool]] = {
    "no content": ({"text": None}, True),
    "a number": ({"text": 5}, True),
    "an object": ({"text": {"RecordID": format_record_id(3)}}, True),
    "a list as text": ({"text": "[]"}, True),
    "bad base64": ({"text": None, "base64": "***"}, True),
    "no hash": ({"hash": None}, False),
    "a hash that ends its string": ({"hash": '","x":"'}, True),
    "a hash of another type": ({"hash": [1]}, False),
    "no filter fields": ({"p": None}, False),
    "a digest of a number": (
        {"text": '{"EntityID":5,"RecordID":"000000000003"}', "p": {"EntityID": "sha256:00"}},
        False,
    ),
    "filter fields of other types": ({"p": {"Timestamp": 5, "UserID": None, "EntityID": ["x"]}}, False),
}


@pytest.mark.parametrize("name", DAMAGE)
async def test_a_damaged_item_is_reported_and_hides_no_other_item(
    store: CosmosChainStore, container: ContainerProxy, name: str
) -> None:
    """Verification fails at a damaged item; queries return all other records, or a placeholder if there are none."""
    changes, damaged = DAMAGE[name]
    sound = json.loads((await query_records(store, CHAIN, Filters())).to_json_array())
    item = await container.read_item(format_record_id(3), KEY)
    await container.upsert_item({**item, **changes})
    for named in (None, 3):
        verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN, named)
        assert (verdict.chain_valid, verdict.broken_at) == (False, format_record_id(3))
    answer = await query_records(store, CHAIN, Filters())
    shown = json.loads(answer.to_json_array())
    assert [record for record in shown if record["RecordID"] != format_record_id(3)] == [*sound[:2], *sound[3:]]
    assert list(answer.damaged) == ([format_record_id(3)] if damaged else [])


async def _store_forged_record(
    store: CosmosChainStore, container: ContainerProxy, sequence: int, previous: str
) -> ChainRecord:
    forged = seal_record(
        build_event_draft("u", EVENT), sequence, "2026-01-05T09:00:00.000000Z", previous, f"forged-{sequence}"
    )
    await container.create_item(record_to_item(KEY, forged))
    return forged


async def test_records_and_forks_after_the_head_item_are_reported(
    store: CosmosChainStore, container: ContainerProxy
) -> None:
    """A record after the chain's head item is reported by its RecordID, and a fork of the chain by its Hash."""
    records = (await store.read(CHAIN, 0, limit=9, max_bytes=MANY)).records
    forged = await _store_forged_record(store, container, COUNT + 4, json.loads(records[1].canonical)["PreviousHash"])
    verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN)
    assert (verdict.chain_valid, verdict.fork_detected, verdict.broken_at) == (False, True, forged.hash)
    await _store_forged_record(store, container, COUNT + 1, records[-1].hash)
    verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN)
    assert (verdict.fork_detected, verdict.broken_at) == (True, format_record_id(COUNT + 1))


async def _require_rejected_append(log: ChainLog) -> None:
    """Append an event and check that it is rejected with an error for which no retry can succeed."""
    with pytest.raises(WorkspaceError, match="an operator must verify the chain") as refusal:
        await log.append(CHAIN, build_event_draft("u", EVENT))
    assert is_permanent(refusal.value)


async def test_a_record_after_the_head_item_rejects_appends(store: CosmosChainStore, container: ContainerProxy) -> None:
    """If a record follows the head item with a gap, appends are rejected at once, and none is stored before the gap."""
    await _store_forged_record(store, container, COUNT + 3, "")
    await _require_rejected_append(ChainLog(store, get_workspace_id))
    assert (await store.read_tip(CHAIN)).sequence == COUNT


async def test_a_conflict_with_a_record_after_the_head_item_is_no_overload(
    store: CosmosChainStore, container: ContainerProxy
) -> None:
    """If an append of a running process needs the place of a forged record, it is rejected at once."""
    log = ChainLog(store, get_workspace_id)
    await log.append(CHAIN, build_event_draft("u", EVENT))
    await _store_forged_record(store, container, COUNT + 2, "")
    await _require_rejected_append(log)


ODD_IDS = ("000000000000", "0000000000025", "000000000002.5", "00000000000a", "-00000000003", "1000000000000", "zzz")


@pytest.mark.parametrize("odd", ODD_IDS)
async def test_an_item_whose_id_is_not_a_record_id_is_ignored(
    store: CosmosChainStore, container: ContainerProxy, odd: str
) -> None:
    """An item whose id is not a RecordID is never returned or counted as a decision, and does not prevent appends."""
    records = (await store.read(CHAIN, 0, limit=9, max_bytes=MANY)).records
    forged = record_to_item(KEY, records[1])
    fields = {**forged["p"], "AmendmentID": format_record_id(1), "Status": "approved"}
    await container.create_item({**forged, "id": odd, "append": "forged", "p": fields})
    assert (await store.read(CHAIN, 0, limit=9, max_bytes=MANY)).records == records
    assert list(await store.read_hashes(CHAIN, 0, limit=9)) == [record.hash for record in records]
    assert [one.sequence for one in (await query_records(store, CHAIN, Filters())).records] == list(range(COUNT, 0, -1))
    assert await store.find(CHAIN, LookupField.AMENDMENT_ID, [format_record_id(1)]) == []
    assert await store.find(CHAIN, LookupField.APPEND_ID, ["forged"]) == []
    verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN)
    assert (verdict.chain_valid, verdict.reason) == (True, f"{COUNT} records, all sound")
    await fill_chain(store, 1)
    assert (await store.read_tip(CHAIN)).sequence == COUNT + 1


@pytest.mark.parametrize("said", [{"sequence": -1}, {"sequence": 2.5}, {"sequence": "many"}, {"hash": "x"}])
async def test_a_forged_head_breaks_the_chain_and_rejects_appends(
    store: CosmosChainStore, container: ContainerProxy, said: dict[str, Any]
) -> None:
    """If a chain's head item has an invalid sequence or hash, verification fails and appends are rejected."""
    head = await container.read_item("head", KEY)
    await container.upsert_item({**head, "tip": head["tip"] | said})
    verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN)
    assert (verdict.chain_valid, verdict.broken_at) == (False, format_record_id(COUNT if "hash" in said else 1))
    with pytest.raises(WorkspaceError) as refusal:
        await ChainLog(store, get_workspace_id).append(CHAIN, build_event_draft("u", EVENT))
    assert refusal.value.code == "PROVENANCE_UNAVAILABLE"


@pytest.mark.parametrize("scope", ["other", None, 5, ""])
async def test_an_edited_scope_of_the_head_item_breaks_the_chain(
    store: CosmosChainStore, container: ContainerProxy, scope: object
) -> None:
    """If the head item states another scope, lists omit the chain, so its verification fails."""
    head = await container.read_item(HEAD_ID, KEY)
    await container.upsert_item({**head, "scope": scope})
    assert [chain async for chain, _ in store.iterate_tips()] == []
    verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN)
    assert (verdict.chain_valid, verdict.broken_at) == (False, format_record_id(COUNT))
    assert verdict.reason == "the head item states another scope, so that lists and checkpoints omit this chain"
    await ChainLog(store, get_workspace_id).append(CHAIN, build_event_draft("u", EVENT))
    assert (await ChainVerifier(store, get_workspace_id).verify(CHAIN)).chain_valid


async def test_records_of_a_chain_without_a_head_item_are_read(
    store: CosmosChainStore, container: ContainerProxy
) -> None:
    """If a chain's head item is missing, its records are read, and no second chain can start in their place."""
    await container.delete_item("head", KEY)
    verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN)
    assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(1))
    await _require_rejected_append(ChainLog(store, get_workspace_id))
    assert len((await store.read(CHAIN, 0, limit=9, max_bytes=MANY)).records) == COUNT


async def test_an_item_without_partition_key_does_not_hide_the_chain_head(
    store: CosmosChainStore, container: ContainerProxy
) -> None:
    """When the head of a chain is read, an item without a partition key is ignored."""
    await container.create_item({"id": "head", "append": "x", "tip": {"timestamp": "2999"}, "scope": "s"})
    assert [chain async for chain, _ in store.iterate_tips()] == [CHAIN]


async def test_a_foreign_item_does_not_hide_the_chain_head(store: CosmosChainStore, container: ContainerProxy) -> None:
    """An item in the partition of a chain that is like a head item, but has another id, is ignored."""
    tip = await store.read_tip(CHAIN)
    head = await container.read_item(HEAD_ID, KEY)
    forged = {"sequence": 0, "hash": "", "timestamp": "9999"}
    await container.create_item({**head, "id": "x", "append": "x", "tip": forged})
    # The emulator lists items in the order of creation, so the foreign item precedes the head item.
    await container.delete_item(HEAD_ID, KEY)
    await container.create_item(head)
    listed = [(chain, found.sequence, found.hash) async for chain, found in store.iterate_tips()]
    assert listed == [(CHAIN, tip.sequence, tip.hash)]


@pytest.mark.parametrize("lost", ["AmendmentID", "Status", "EntityID"])
async def test_a_decision_without_filter_fields_is_still_counted(server: CosmosServer, lost: str) -> None:
    """A decision without filter fields counts as a decision, also in lists of pending amendments."""
    async with open_stores(server) as (store,), CosmosClient(server.endpoint, server.key) as client:
        amendments = Amendments(ChainLog(store, get_workspace_id), store)
        for _ in range(2):
            await amendments.create(CORRECTIONS, "ann", build_body(), STRICT)
        await amendments.approve(CORRECTIONS, format_record_id(1), "bob")
        items = client.get_database_client(DATABASE).get_container_client(CORRECTIONS.target)
        item = await items.read_item(format_record_id(3), compute_partition_key(CORRECTIONS, 1))
        del item["p"][lost]
        await items.upsert_item(item)
        assert (await catch_rejection(amendments.reject(CORRECTIONS, format_record_id(1), "bob", None)))[
            1
        ] == "AMENDMENT_NOT_PENDING"
        told = await find_decisions(store, CORRECTIONS, [format_record_id(1), format_record_id(2)])
        assert (sorted(told.by_amendment), told.is_complete) == ([format_record_id(1)], True)
        answer = await query_records(store, CORRECTIONS, Filters())
        assert [record.sequence for record in answer.records] == [3, 2, 1]
        await amendments.approve(CORRECTIONS, format_record_id(2), "bob")
