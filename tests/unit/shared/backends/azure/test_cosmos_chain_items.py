"""Tests of the Cosmos DB items of audit chains, and of their limits."""

import asyncio
import hashlib
import json
from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient
from hypothesis import given
from hypothesis import strategies as st

from emulators.cosmos import CosmosServer
from emulators.cosmos.account import AccountOptions, Consistency
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.backends.azure.cosmos_chain_items import (
    MAX_BATCH_BYTES,
    MAX_BATCH_RECORDS,
    SegmentHead,
    chain_key_from_genuine_head_item,
    compute_max_bytes_in_batch,
    compute_partition_key,
    estimate_stored_bytes,
    record_from_item,
    record_to_item,
)
from shared.backends.azure.cosmos_containers import CHAINS, create_containers
from shared.errors import WorkspaceError
from shared.provenance.chain_log import EventLog
from shared.provenance.ports import ChainKey, ChainRecord, Filters, LookupField, Target, Tip
from shared.provenance.records import MAX_RECORD_BYTES, build_event_draft, seal_record
from tests.unit.shared.backends.azure.cosmos_stores import (
    CHAIN,
    DATABASE,
    EVENT,
    MANY,
    build_batch,
    create_database,
    open_logs,
    open_stores,
    read_sequences,
)

REQUEST_BYTES = 2 * 1024 * 1024
LONGEST_IDS = 500
"""Bytes of the longest ids in an operation, which the estimate of the stored size does not contain."""
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def _build_record(**event: Any) -> ChainRecord:
    members = {"ActionType": "A", "EntityType": "T", "EntityID": "1"} | event
    return seal_record(build_event_draft("u", members), 1, "2026-01-05T08:00:00.000000Z", "0" * 64, "a" * 255)


def _measure_create_operation(record: ChainRecord) -> int:
    operation = {"operationType": "Create", "resourceBody": record_to_item(compute_partition_key(CHAIN, 1), record)}
    return len(json.dumps(operation, separators=(",", ":"), ensure_ascii=False).encode())


@given(entity=TEXT, description=TEXT, times=st.sampled_from([1, 100, 3_000]))
def test_a_record_is_restored_from_its_item(entity: str, description: str, times: int) -> None:
    """A record with any text is restored exactly from its item, and the item is not larger than estimated."""
    record = _build_record(EntityID=entity * times, Description=description * times)
    assert record_from_item(record_to_item("p", record)) == record
    assert _measure_create_operation(record) <= compute_max_bytes_in_batch(record.canonical)


LETTERS = ["a", '"', "\\", "\u0001", "ü", "\U0001f600", "\x7f"]


def _repeat_letter(letter: str, size: int) -> str:
    """Return a text of ``letter`` that takes up to ``size`` bytes in JSON."""
    return letter * (size // (len(json.dumps(letter, ensure_ascii=False).encode()) - 2))


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("size", [300_000, 600_000, 740_000, 760_000, 1_000_000])
def test_the_size_of_an_operation_is_not_underestimated(letter: str, size: int) -> None:
    """A large record takes no more bytes than calculated, whether it is stored as text or as base64."""
    for record in (
        _build_record(Description=_repeat_letter(letter, size)),
        _build_record(AfterState={"values": [letter] * (size // 10)}),
    ):
        assert _measure_create_operation(record) <= compute_max_bytes_in_batch(record.canonical)
        assert _measure_create_operation(record) <= estimate_stored_bytes(record) + LONGEST_IDS


@pytest.mark.parametrize("letter", LETTERS)
def test_the_largest_record_fits_into_a_batch(letter: str) -> None:
    """The largest possible record fits into a batch, whatever its content is."""
    record = _build_record(Description=_repeat_letter(letter, MAX_RECORD_BYTES - 700))
    assert len(record.canonical) > MAX_RECORD_BYTES - 1_000
    assert _measure_create_operation(record) <= compute_max_bytes_in_batch(record.canonical) <= MAX_BATCH_BYTES
    assert len(json.dumps(record_to_item("p", record), ensure_ascii=False).encode()) < REQUEST_BYTES - 1_000
    assert record_from_item(record_to_item("p", record)) == record


def test_a_forged_item_becomes_a_record_that_fails_verification() -> None:
    """An item without content, with wrong types or with a false digest becomes a record that fails verification."""
    bare = record_from_item({"id": "000000000001"})
    assert bare == ChainRecord(1, b"", "", "", {})
    false = record_to_item("p", _build_record(EntityID="x" * 5_000))
    false["p"]["EntityID"] = "sha256:" + "0" * 64
    found = record_from_item(false)
    assert found is not None
    assert found.projection["EntityID"] == "\ufffd'sha256:" + "0" * 64 + "'"
    for text in ("\ud800", "\ud800" * 200, "sha256:\ud800"):
        false["p"]["EntityID"] = text
        found = record_from_item(false)
        assert found is not None
        assert found.projection["EntityID"] != "x" * 5_000
    assert record_from_item({"id": "000000000001", "base64": "?", "p": []}) == bare
    assert record_from_item({"id": "head"}) is None


@pytest.mark.parametrize("value", ["batch/" + "x" * 600, "sha256:abc", "sha256:" + "0" * 64])
def test_a_filter_field_in_another_form_differs_from_the_content(value: str) -> None:
    """A filter field that has the value instead of its digest hides the record from queries, so it fails verification.

    The same applies to the digest of a value that is stored as it is.
    """
    record = _build_record(EntityID=value)
    item = record_to_item("p", record)
    item["p"]["EntityID"] = value
    found = record_from_item(item)
    assert found is not None
    assert found.projection["EntityID"] != value
    item["p"]["EntityType"] = "sha256:" + hashlib.sha256(b"T").hexdigest()
    found = record_from_item(item)
    assert found is not None
    assert found.projection["EntityType"] != "T"


@pytest.mark.parametrize("scope", [CHAIN.scope_key, "other", "None", None, 5, "\ud800"])
def test_a_head_item_belongs_only_to_the_chain_of_its_partition(scope: object) -> None:
    """A head item with another scope than that of its partition, of whatever type, is recognised as edited."""
    item = {"chain": compute_partition_key(CHAIN, 1), "_etag": "", "scope": scope}
    is_genuine = scope == CHAIN.scope_key
    assert SegmentHead.from_item(item).tip.states_other_scope == (not is_genuine)
    assert chain_key_from_genuine_head_item(CHAIN.target, item) == (CHAIN if is_genuine else None)


def test_partition_keys_are_distinct() -> None:
    """Similar scopes and different segments have different, short, alphanumeric partition keys."""
    scopes = ["", "s", "S", "s/1", "s-000001", "é", "e\u0301", "x" * 10_000]
    keys = {
        compute_partition_key(ChainKey(Target.DOMAIN_EVENTS, scope), segment) for scope in scopes for segment in (1, 2)
    }
    assert len(keys) == 2 * len(scopes)
    assert all(len(key) == 71 and key.isascii() for key in keys)


# aiohttp warns of bodies above 1 MiB.
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
async def test_the_largest_batches_are_accepted() -> None:
    """Batches at the limits of Cosmos DB are stored, and filters by long values give exact results."""
    long = "ü" * 2_000
    async with CosmosServer() as server:
        await create_database(server)
        async with open_stores(server) as (store,):
            tip = await store.append(CHAIN, build_batch(Tip(), MAX_BATCH_RECORDS, Description='"' * 3_000), Tip())
            full: list[ChainRecord] = []
            for record in build_batch(tip, 60, EntityID=long, EntityType=long, Name='"' * 4_500):
                if sum(store.measure_bytes_in_batch(one.canonical) for one in [*full, record]) > store.max_batch_bytes:
                    break
                full.append(record)
            assert len(full) > 20
            tip = await store.append(CHAIN, full, tip)
            assert tip.sequence == MAX_BATCH_RECORDS + len(full)
            page = await store.scan(CHAIN, Filters(equal={"EntityID": long}), limit=100, max_bytes=MANY)
            assert list(page.records) == full[::-1]
            other = await store.scan(CHAIN, Filters(equal={"EntityID": long + "x"}), limit=100, max_bytes=MANY)
            assert not other.records
            assert len(await store.find(CHAIN, LookupField.APPEND_ID, [record.append_id for record in full])) == len(
                full
            )
            assert store.usage.requests > 0
            assert store.usage.request_units > 0


# aiohttp warns of bodies above 1 MiB.
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
async def test_large_concurrent_appends_are_stored() -> None:
    """Concurrent appends are all stored, also if their records are too large for one batch together."""
    large = EVENT | {"Description": '"' * 300_000}
    async with CosmosServer() as server:
        await create_database(server)
        async with open_stores(server) as (store,):
            log = EventLog(open_logs([store])[0])
            events = [EVENT, large, large, EVENT]
            await asyncio.gather(*(log.append_to_chain(CHAIN, "u", event) for event in events))
            assert await read_sequences(store) == [1, 2, 3, 4]


REFUSED = [
    (AccountOptions(multiple_write_locations=True), "several write regions"),
    (AccountOptions(write_regions=("West Europe", "North Europe")), "several write regions"),
    (AccountOptions(consistency=Consistency.SESSION), "consistency Session"),
    (AccountOptions(consistency=Consistency.CONSISTENT_PREFIX), "consistency ConsistentPrefix"),
    (AccountOptions(consistency=Consistency.EVENTUAL), "consistency Eventual"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED)
async def test_accounts_without_compare_and_swap_are_rejected(options: AccountOptions, reason: str) -> None:
    """A store rejects all operations on an account without reliable compare-and-swap."""
    async with CosmosServer(options=options) as server, open_stores(server) as (store,):
        with pytest.raises(WorkspaceError, match=reason):
            await store.provision(CHAIN)
        with pytest.raises(WorkspaceError, match=reason):
            await store.read_tip(CHAIN)
        assert not server.requests.list_by_operation("read_item")


@pytest.mark.parametrize("level", [Consistency.STRONG, Consistency.BOUNDED_STALENESS])
async def test_suitable_accounts_are_accepted(level: Consistency) -> None:
    """An account with strong consistency or bounded staleness and one write region is accepted."""
    options = AccountOptions(consistency=level, read_regions=("West Europe", "North Europe"))
    async with CosmosServer(options=options) as server:
        await create_database(server)
        async with open_stores(server) as (store,):
            assert await store.read_tip(CHAIN) == Tip()


async def test_unsuitable_containers_are_rejected() -> None:
    """A container that is missing or has no unique key is rejected; after it is created, it is accepted."""
    async with CosmosServer() as server, open_stores(server) as (store,):
        async with CosmosClient(server.endpoint, server.key) as client:
            database = await client.create_database(DATABASE)
            with pytest.raises(WorkspaceError, match="container DomainEvents cannot be read"):
                await store.read_tip(CHAIN)
            await database.create_container(CHAIN.target.value, PartitionKey("/chain"))
            with pytest.raises(WorkspaceError, match="unique key"):
                await store.read_tip(CHAIN)
            await database.delete_container(CHAIN.target.value)
            await create_containers(database)
        assert await store.read_tip(CHAIN) == Tip()


def test_deviating_properties_of_containers_are_reported() -> None:
    """The check of containers reports another partition key, a time to live, or a missing unique key."""
    assert len(CHAINS[0].describe_differences({"partitionKey": {"paths": ["/id"]}, "defaultTtl": 60})) == 3


def test_only_filter_fields_are_indexed() -> None:
    """The index policy covers only the filter fields, not the canonical text or the hashes."""
    policy = CHAINS[0].build_indexing_policy()
    assert policy["excludedPaths"] == [{"path": "/*"}]
    assert not {"/text/?", "/base64/?", "/hash/?"} & set(CHAINS[0].indexed_paths)


async def test_an_account_that_rejects_the_key_is_unavailable() -> None:
    """If the account rejects the key, the error does not contain it, and no connection stays open."""
    async with CosmosServer() as server:
        server.key = "d3Jvbmc="
        async with open_stores(server) as (store,):
            with pytest.raises(WorkspaceError) as caught:
                await store.read_tip(CHAIN)
    assert caught.value.code == "PROVENANCE_UNAVAILABLE"
    assert "d3Jvbmc" not in str(caught.value)


async def test_closing_a_chain_store_twice_has_no_effect() -> None:
    """A store can be closed without having been used, and closing it twice has no effect."""
    async with CosmosServer() as server, open_stores(server) as (store,):
        assert isinstance(store, CosmosChainStore)
        await store.close()
        await store.close()
