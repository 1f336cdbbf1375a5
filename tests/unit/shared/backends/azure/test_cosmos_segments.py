"""Tests of chain segments: if a partition is full, the chain continues in another partition."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.cosmos.aio import ContainerProxy, CosmosClient

from emulators.cosmos import CosmosServer, FaultKind, InjectedFault
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.backends.azure.cosmos_chain_items import compute_partition_key, record_to_item
from shared.provenance.ports import Filters, LookupField, OutcomeUnknownError, Tip, TipMovedError
from shared.provenance.records import build_event_draft
from shared.provenance.verifier import ChainVerifier
from tests.unit.shared.backends.azure.cosmos_stores import (
    CHAIN,
    DATABASE,
    EVENT,
    MANY,
    build_batch,
    create_database,
    fill_chain,
    get_workspace_id,
    open_logs,
    open_stores,
    read_sequences,
)

THREE_RECORDS = 1_900


@pytest.fixture
async def server() -> AsyncIterator[CosmosServer]:
    """Provide an emulator with the containers of the chains."""
    async with CosmosServer(physical_partitions=2) as running:
        await create_database(running)
        yield running


@pytest.fixture
async def store(server: CosmosServer) -> AsyncIterator[CosmosChainStore]:
    """Provide a store with three records per segment."""
    async with open_stores(server, segment_bytes=THREE_RECORDS) as (opened,):
        yield opened


@pytest.fixture
async def container(server: CosmosServer) -> AsyncIterator[ContainerProxy]:
    """Provide the container for changes that bypass the store."""
    async with CosmosClient(server.endpoint, server.key) as client:
        yield client.get_database_client(DATABASE).get_container_client(CHAIN.target)


async def _read_segments(container: ContainerProxy) -> list[tuple[int, bool, int]]:
    """Return number, sealed state and record count of each segment."""
    found = []
    async for head in container.query_items("SELECT * FROM c WHERE c.id = 'head'"):
        text = "SELECT VALUE COUNT(1) FROM c WHERE c.id != 'head'"
        counts: list[Any] = [count async for count in container.query_items(text, partition_key=head["chain"])]
        found.append((head["segment"], head["sealed"], counts[0]))
    return sorted(found)


async def test_a_full_segment_is_sealed(store: CosmosChainStore, container: ContainerProxy) -> None:
    """The batch that fills a segment also seals it, and the next append starts a new segment."""
    await fill_chain(store, 3)
    assert await _read_segments(container) == [(1, True, 3)]
    assert (await store.read_tip(CHAIN)).sequence == 3
    await fill_chain(store, 4)
    assert await _read_segments(container) == [(1, True, 3), (2, True, 3), (3, False, 1)]


async def test_readers_find_all_segments(server: CosmosServer, store: CosmosChainStore) -> None:
    """A new process can read, filter, skip and find records in all segments of a chain."""
    tip = await fill_chain(store, 10)
    async with open_stores(server) as (other,):
        assert await other.read_tip(CHAIN) == tip
        assert await read_sequences(other) == list(range(1, 11))
        assert await other.read_tip(CHAIN) == await store.read_tip(CHAIN)
    async with open_stores(server) as (other,):
        newest = await other.scan(CHAIN, Filters(), offset=2, limit=5, max_bytes=MANY)
        assert ([record.sequence for record in newest.records], newest.more) == ([8, 7, 6, 5, 4], True)
        assert newest.scanned == 8
        oldest = await other.scan(
            CHAIN, Filters(equal={"EntityID": "1"}), newest_first=False, offset=2, limit=5, max_bytes=MANY
        )
        assert ([record.sequence for record in oldest.records], oldest.more) == ([7, 10], False)
        window = Filters(from_sequence=3, to_sequence=7)
        assert [r.sequence for r in (await other.scan(CHAIN, window, limit=9, max_bytes=MANY)).records] == [
            7,
            6,
            5,
            4,
            3,
        ]
        found = await other.find(CHAIN, LookupField.APPEND_ID, ["e-1", "e-4", "e-10"])
        assert sorted(record.sequence for record in found) == [1, 4, 10]
        page = await other.read(CHAIN, 2, limit=3, max_bytes=MANY)
        assert ([record.sequence for record in page.records], page.more) == ([3, 4, 5], True)
        assert len(await other.read_hashes(CHAIN, 4, limit=4)) == 4
        assert [(chain, (await other.read_tip(chain))) async for chain, _ in other.iterate_tips()] == [(CHAIN, tip)]
    assert (await ChainVerifier(store, get_workspace_id).verify(CHAIN)).chain_valid


async def test_a_count_adds_up_its_pages(server: CosmosServer, store: CosmosChainStore) -> None:
    """If Cosmos DB returns a count in several pages, the number of records is the sum of all pages."""
    await fill_chain(store, 5)
    server.faults.add(InjectedFault(FaultKind.PARTIAL_PAGE, lambda sent: b"COUNT" in sent.body))
    assert await store.count_records(CHAIN, ()) == 5


async def test_a_reader_finds_later_segments(server: CosmosServer, store: CosmosChainStore) -> None:
    """A running process finds records that another process has appended to new segments."""
    await fill_chain(store, 2)
    async with open_stores(server) as (other,):
        assert await read_sequences(other) == [1, 2]
        await fill_chain(store, 6)
        assert await read_sequences(other) == list(range(1, 9))
        assert (await other.read_tip(CHAIN)).sequence == 8


async def test_a_sealed_segment_accepts_no_record(server: CosmosServer, store: CosmosChainStore) -> None:
    """An append to a sealed segment is rejected, and so is the second of two appends that start the same segment."""
    before = await fill_chain(store, 2)
    sealed = await store.append(CHAIN, build_batch(before, 1), before)
    async with open_stores(server) as (unrolled,):
        with pytest.raises(TipMovedError):
            await unrolled.append(CHAIN, build_batch(before, 1, name="late"), before)
    await store.append(CHAIN, build_batch(sealed, 1), sealed)
    with pytest.raises(TipMovedError):
        await store.append(CHAIN, build_batch(sealed, 1, name="late"), sealed)
    assert await read_sequences(store) == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", [FaultKind.DROP_BEFORE_COMMIT, FaultKind.DROP_AFTER_COMMIT, FaultKind.DROP_IN_REPLY])
@pytest.mark.parametrize("records", [2, 3])
async def test_a_new_segment_survives_lost_replies(
    server: CosmosServer, store: CosmosChainStore, kind: FaultKind, records: int
) -> None:
    """If the replies to the sealing batch and to the first batch of a segment are lost, no record is lost."""
    tip = await fill_chain(store, records)
    fault = server.faults.add(InjectedFault(kind, lambda request: request.operation == "batch", times=2))
    with pytest.raises(OutcomeUnknownError):
        await store.append(CHAIN, build_batch(tip, 1, name="x"), tip)
    (log,) = open_logs([store])
    appended = await log.append(CHAIN, build_event_draft("u", EVENT), append_id=f"x-{records + 1}")
    assert appended.record.sequence == records + 1
    assert await read_sequences(store) == list(range(1, records + 2))
    assert fault.applied >= 1
    assert (await ChainVerifier(store, get_workspace_id).verify(CHAIN)).chain_valid


async def test_a_retry_finds_its_record_in_earlier_segments(store: CosmosChainStore) -> None:
    """A retry finds its record by the append id, also in an earlier segment."""
    (log,) = open_logs([store])
    first = await log.append(CHAIN, build_event_draft("u", EVENT), append_id="same")
    for number in range(6):
        await log.append(CHAIN, build_event_draft("u", EVENT), append_id=str(number))
    again = await log.append(CHAIN, build_event_draft("u", EVENT), append_id="same")
    assert (again.record, again.repeated) == (first.record, True)


async def test_forged_items_in_other_segments_are_ignored(store: CosmosChainStore, container: ContainerProxy) -> None:
    """A forged record in a later segment, or with an invalid id, does not change any result."""
    await fill_chain(store, 5)
    (first,) = build_batch((await store.read_tip(CHAIN)), 1, name="forged")
    item = record_to_item(compute_partition_key(CHAIN, 3), first) | {"id": "000000000002"}
    await container.create_item(item)
    odd = record_to_item(compute_partition_key(CHAIN, 2), first) | {"id": "00000000000x", "append": "odd"}
    await container.create_item(odd)
    assert await read_sequences(store) == [1, 2, 3, 4, 5]
    assert len((await store.scan(CHAIN, Filters(), limit=9, max_bytes=MANY)).records) == 5
    await fill_chain(store, 2)
    assert await read_sequences(store) == [1, 2, 3, 4, 5, 6, 7]
    assert (await ChainVerifier(store, get_workspace_id).verify(CHAIN)).chain_valid


async def test_a_forged_record_is_forgotten_when_it_is_removed(server: CosmosServer, container: ContainerProxy) -> None:
    """A process that read a forged record of the next segment reads all new records after the forged one is removed."""
    async with open_stores(server, 2) as (store, other):
        tip = await fill_chain(store, 3)
        forged = record_to_item(compute_partition_key(CHAIN, 2), build_batch(tip, 1, name="forged")[0])
        await container.create_item(forged)
        assert await read_sequences(store) == [1, 2, 3, 4]
        await container.delete_item(forged["id"], forged["chain"])
        await fill_chain(other, 2)
        assert await read_sequences(store) == [1, 2, 3, 4, 5]
        assert [one.sequence for one in await store.find(CHAIN, LookupField.APPEND_ID, ["e-5"])] == [5]
        verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN)
        assert (verdict.chain_valid, verdict.reason) == (True, "5 records, all sound")
        (log,) = open_logs([store])
        assert (await log.append(CHAIN, build_event_draft("u", EVENT))).record.sequence == 6


async def test_verification_reports_a_damaged_head_item(store: CosmosChainStore, container: ContainerProxy) -> None:
    """If properties of the head item are missing, appends are rejected, so that no fork begins; verification fails."""
    await fill_chain(store, 2)
    key = compute_partition_key(CHAIN, 1)
    head = await container.read_item("head", key)
    await container.upsert_item({"id": "head", "chain": key, "append": "", "tip": 1, "scope": head["scope"]})
    await container.create_item({**head, "chain": "elsewhere"})
    assert (await store.read_tip(CHAIN)).sequence == 0
    with pytest.raises(TipMovedError):
        await store.append(CHAIN, build_batch(Tip(), 1, name="fork"), await store.read_tip(CHAIN))
    assert [chain async for chain, _ in store.iterate_tips()] == []
    assert not (await ChainVerifier(store, get_workspace_id).verify(CHAIN)).chain_valid


async def test_verification_fails_for_a_truncated_chain(store: CosmosChainStore, container: ContainerProxy) -> None:
    """If records or a whole segment are deleted, verification fails."""
    await fill_chain(store, 7)
    await container.delete_item("000000000007", compute_partition_key(CHAIN, 3))
    verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN)
    assert (verdict.chain_valid, verdict.broken_at) == (False, "000000000007")
    for sequence in (4, 5, 6):
        await container.delete_item(f"{sequence:012d}", compute_partition_key(CHAIN, 2))
    verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN)
    assert (verdict.chain_valid, verdict.broken_at) == (False, "000000000004")
