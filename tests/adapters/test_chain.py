"""Tests that every chain store meets the same contract."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos.aio import CosmosClient

from emulators.cosmos import CosmosServer
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_chain import SEGMENT_BYTES, CosmosChainStore
from shared.backends.azure.cosmos_containers import create_containers
from shared.backends.embedded.provenance import SqliteChainStore
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import (
    ChainKey,
    ChainRecord,
    ChainStore,
    Filters,
    LookupField,
    RecordPage,
    Target,
    Tip,
    TipMovedError,
)
from shared.provenance.records import build_event_draft, build_record_draft, seal_record
from tests.unit.shared.backends.azure.cosmos_stores import create_database, open_stores

PLATFORM = ChainKey(Target.PLATFORM_CONFIG)
SCOPES = [
    ChainKey(Target.DOMAIN_EVENTS, scope) for scope in ("s", "S", "a/b", "../x", "ü \U0001f600", "%2F", "x" * 1_000)
]
MANY = 2**40
type Opener = Callable[[Path], AbstractAsyncContextManager[ChainStore]]


@asynccontextmanager
async def open_sqlite(folder: Path) -> AsyncIterator[ChainStore]:
    """Open the embedded store."""
    store = SqliteChainStore(folder / "provenance.sqlite")
    yield store
    await store.close()


@asynccontextmanager
async def open_cosmos(_folder: Path, segment_bytes: int = SEGMENT_BYTES) -> AsyncIterator[ChainStore]:
    """Open the Cosmos DB store on an emulator."""
    async with CosmosServer(physical_partitions=3) as server:
        await create_database(server)
        async with open_stores(server, segment_bytes=segment_bytes) as (opened,):
            yield opened


@asynccontextmanager
async def open_cosmos_with_small_segments(folder: Path) -> AsyncIterator[ChainStore]:
    """Open the Cosmos DB store with segments of one or two appends."""
    async with open_cosmos(folder, segment_bytes=1_500) as opened:
        yield opened


@asynccontextmanager
async def open_store_on_cosmos_account(_folder: Path) -> AsyncIterator[ChainStore]:
    """Open the Cosmos DB store on the account COSMOS_ENDPOINT with COSMOS_KEY, in a new database."""
    endpoint, key = os.environ["COSMOS_ENDPOINT"], os.environ["COSMOS_KEY"]
    name = f"chain-contract-{uuid.uuid4().hex}"
    async with CosmosClient(endpoint, key) as client:
        await create_containers(await client.create_database(name))
        opened = CosmosChainStore(CosmosAccount(endpoint, name, key=key))
        try:
            yield opened
        finally:
            await opened.close()
            await client.delete_database(name)


OPENERS: dict[str, Opener] = {
    "sqlite": open_sqlite,
    "cosmos": open_cosmos,
    "cosmos segments": open_cosmos_with_small_segments,
}
if os.environ.get("COSMOS_ENDPOINT") and os.environ.get("COSMOS_KEY"):
    OPENERS["cosmos endpoint"] = open_store_on_cosmos_account


@pytest.fixture(params=OPENERS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ChainStore]:
    """Provide an empty store; each test runs with each kind of store."""
    async with OPENERS[request.param](tmp_path) as opened:
        yield opened


def build_batch(chain: ChainKey, tip: Tip, count: int, *, name: str = "e", **event: Any) -> list[ChainRecord]:
    """Return records that continue a chain after the given tip (newest record)."""
    records: list[ChainRecord] = []
    previous = tip.hash or compute_genesis_hash("plant-a", chain.target, chain.scope_key)
    for sequence in range(tip.sequence + 1, tip.sequence + 1 + count):
        members = {"ActionType": "A", "EntityType": "T", "EntityID": f"{sequence % 3}", **event}
        timestamp = f"2026-01-05T08:00:{sequence:02d}.000000Z"
        record = seal_record(build_event_draft("u", members), sequence, timestamp, previous, f"{name}-{sequence}")
        records.append(record)
        previous = record.hash
    return records


async def append_records(store: ChainStore, chain: ChainKey, number_of_records: int, **event: Any) -> list[ChainRecord]:
    """Append a number of records as one batch."""
    await store.provision(chain)
    tip = await store.read_tip(chain)
    records = build_batch(chain, tip, number_of_records, **event)
    await store.append(chain, records, tip)
    return records


async def test_reads_of_a_chain_without_records_return_nothing(store: ChainStore) -> None:
    """Each read of a chain without records returns nothing."""
    for chain in (PLATFORM, *SCOPES):
        assert await store.read_tip(chain) == Tip()
        assert await store.read(chain, 0, limit=5, max_bytes=MANY) == RecordPage([], more=False, scanned=0)
        assert not (await store.scan(chain, Filters(), limit=5, max_bytes=MANY)).records
        assert not await store.find(chain, LookupField.APPEND_ID, ["a"])
        assert not await store.read_hashes(chain, 0, limit=5)
    assert [chain async for chain, _ in store.iterate_tips()] == []


async def test_appended_records_are_read_back(store: ChainStore) -> None:
    """Appended records are read unchanged, and the tip (newest record) is the last of them."""
    state = {"n": 1e20, "é\U0001f600": ["\x00", '"\\', 0.1, None]}
    records = await append_records(store, PLATFORM, 3, AfterState=state)
    assert list((await store.read(PLATFORM, 0, limit=9, max_bytes=MANY)).records) == records
    tip = await store.read_tip(PLATFORM)
    assert (tip.sequence, tip.hash, tip.timestamp) == (3, records[-1].hash, records[-1].projection["Timestamp"])
    assert list(await store.read_hashes(PLATFORM, 1, limit=9)) == [record.hash for record in records[1:]]


async def test_the_returned_tip_allows_the_next_append(store: ChainStore) -> None:
    """After an append, the next append can use the returned tip (newest record) without reading the tip."""
    await store.provision(PLATFORM)
    tip = Tip()
    for _ in range(3):
        tip = await store.append(PLATFORM, build_batch(PLATFORM, tip, 2), tip)
    assert tip == await store.read_tip(PLATFORM)
    assert len((await store.read(PLATFORM, 0, limit=9, max_bytes=MANY)).records) == 6


async def test_an_append_to_an_old_tip_is_rejected(store: ChainStore) -> None:
    """An append is rejected if it does not continue the current tip (newest record) of the chain."""
    records = await append_records(store, PLATFORM, 1)
    with pytest.raises(TipMovedError):
        await store.append(PLATFORM, build_batch(PLATFORM, Tip(), 2, name="late"), Tip())
    tip = await store.read_tip(PLATFORM)
    await store.append(PLATFORM, build_batch(PLATFORM, tip, 1), tip)
    with pytest.raises(TipMovedError):
        await store.append(PLATFORM, build_batch(PLATFORM, tip, 1, name="late"), tip)
    found = (await store.read(PLATFORM, 0, limit=9, max_bytes=MANY)).records
    assert [record.append_id for record in found] == [records[0].append_id, "e-2"]


async def test_an_existing_append_id_rejects_the_whole_batch(store: ChainStore) -> None:
    """If one append id of a batch exists, no record of the batch is stored."""
    await append_records(store, PLATFORM, 1)
    tip = await store.read_tip(PLATFORM)
    fresh, double = build_batch(PLATFORM, tip, 2)
    double = ChainRecord(double.sequence, double.canonical, double.hash, "e-1", double.projection)
    with pytest.raises(TipMovedError):
        await store.append(PLATFORM, [fresh, double], tip)
    assert await store.read_tip(PLATFORM) == tip
    assert len((await store.read(PLATFORM, 0, limit=9, max_bytes=MANY)).records) == 1


async def test_one_of_simultaneous_appends_succeeds(store: ChainStore) -> None:
    """If several appends continue the same tip (newest record), exactly one succeeds."""
    await append_records(store, PLATFORM, 1)
    tip = await store.read_tip(PLATFORM)
    tries = [store.append(PLATFORM, build_batch(PLATFORM, tip, 2, name=f"w{number}"), tip) for number in range(6)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Tip"] + ["TipMovedError"] * 5
    assert (await store.read_tip(PLATFORM)).sequence == 3


async def test_chains_of_different_scopes_are_separate(store: ChainStore) -> None:
    """Each scope, with any characters, has a chain of its own, and all chains are listed."""
    for chain in (PLATFORM, *SCOPES):
        await append_records(store, chain, 2)
    listed = {chain: tip async for chain, tip in store.iterate_tips()}
    assert listed.keys() == {PLATFORM, *SCOPES}
    for chain, tip in listed.items():
        assert tip == await store.read_tip(chain)
        assert len((await store.read(chain, 0, limit=9, max_bytes=MANY)).records) == 2
    assert [chain async for chain, _ in store.iterate_tips("", (PLATFORM.target,))] == [PLATFORM]
    later = "2026-01-05T08:00:02.000001Z"
    assert [chain async for chain, _ in store.iterate_tips(later)] == []
    await append_records(store, PLATFORM, 1)
    assert [chain async for chain, _ in store.iterate_tips(later)] == [PLATFORM]


# aiohttp warns of bodies above 1 MiB, which only the largest records cause.
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
async def test_a_batch_of_the_maximum_size_is_appended(store: ChainStore) -> None:
    """A batch with the store's maximum number and size of records is stored."""
    await append_records(store, PLATFORM, min(59, store.max_batch_records), Description='"' * 1_000)
    tip = await store.read_tip(PLATFORM)
    heavy = build_batch(PLATFORM, tip, 1, Description="\u0001" * 249_000)
    assert len(heavy[0].canonical) < 1_500_000
    assert store.measure_bytes_in_batch(heavy[0].canonical) <= store.max_batch_bytes
    await store.append(PLATFORM, heavy, tip)
    found = (await store.read(PLATFORM, tip.sequence, limit=1, max_bytes=MANY)).records
    assert list(found) == heavy


async def test_pages_of_records_end_at_a_maximum_of_records_or_bytes(store: ChainStore) -> None:
    """A page ends at its maximum of records or bytes, has at least one record, and states if more records follow."""
    records = await append_records(store, PLATFORM, 5)
    one = len(records[0].canonical)
    for limit, size, expected in ((2, MANY, 2), (9, 2 * one, 2), (9, 1, 1), (5, MANY, 5)):
        for page in (
            await store.read(PLATFORM, 0, limit=limit, max_bytes=size),
            await store.scan(PLATFORM, Filters(), newest_first=False, limit=limit, max_bytes=size),
        ):
            assert (len(page.records), page.more) == (expected, expected < 5)
            assert page.scanned >= expected
    last = await store.read(PLATFORM, 3, limit=9, max_bytes=MANY)
    assert ([record.sequence for record in last.records], last.more) == ([4, 5], False)


FILTERS = [
    (Filters(), [9, 8, 7, 6, 5, 4, 3, 2, 1]),
    (Filters(equal={"EntityID": "1"}), [7, 4, 1]),
    (Filters(equal={"EntityID": "1", "EntityType": "T"}), [7, 4, 1]),
    (Filters(equal={"EntityID": "1", "EntityType": "t"}), []),
    (Filters(equal={"UserID": "u", "ActionType": "A"}, from_sequence=3, to_sequence=4), [4, 3]),
    (Filters(from_sequence=-5, to_sequence=2), [2, 1]),
    (Filters(from_sequence=10**20), []),
    (Filters(start="2026-01-05T08:00:08.000000Z"), [9, 8]),
    (Filters(start="2026-01-05T08:00:07.999999Z", end="2026-01-05T08:00:08.000000Z"), [8]),
    (Filters(end="2026-01-05T08:00:00.999999Z"), []),
    (Filters(start="2027", end="2026"), []),
    (Filters(absent=("ReasonCategory",), equal={"EntityID": "2"}), [8, 5, 2]),
    (Filters(absent=("ActionType",)), []),
    (Filters(sequences=(2, 99, 5, 9)), [9, 5, 2]),
    (Filters(sequences=(1, 4, 5, 7), equal={"EntityID": "1"}, from_sequence=2, to_sequence=6), [4]),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
async def test_scans_of_a_chain_return_the_records_that_match_the_filters(
    store: ChainStore, filters: Filters, expected: list[int]
) -> None:
    """A scan returns the records that match its filters, in ascending or descending order, with offset and limit."""
    await append_records(store, PLATFORM, 9)
    newest = await store.scan(PLATFORM, filters, limit=99, max_bytes=MANY)
    assert ([record.sequence for record in newest.records], newest.more) == (expected, False)
    oldest = await store.scan(PLATFORM, filters, newest_first=False, offset=1, limit=1, max_bytes=MANY)
    assert [record.sequence for record in oldest.records] == expected[::-1][1:2]
    assert oldest.more == (len(expected) > 2)


async def test_scan_offsets_past_the_end_return_nothing(store: ChainStore) -> None:
    """A scan with an offset beyond the end returns no records and counts each record as scanned."""
    await append_records(store, PLATFORM, 4)
    page = await store.scan(PLATFORM, Filters(), offset=1_000, limit=5, max_bytes=MANY)
    assert page == RecordPage([], more=False, scanned=4)


async def test_a_record_is_found_by_append_id_and_a_decision_by_its_amendment(store: ChainStore) -> None:
    """A record can be found by its append id; decisions can be found by the amendment that they concern."""
    chain = ChainKey(Target.DOMAIN_AMENDMENTS, "s")
    await append_records(store, ChainKey(Target.DOMAIN_AMENDMENTS, "other"), 4)
    await append_records(store, chain, 4)
    tip = await store.read_tip(chain)
    made = build_record_draft({"ApprovedBy": "u", "AmendmentID": "000000000001", "Status": "approved"}, "ApprovedAt")
    decision = seal_record(made, 5, "2026-01-05T08:00:05.000000Z", tip.hash, "d")
    await store.append(chain, [decision], tip)
    found = await store.find(chain, LookupField.APPEND_ID, ["e-2", "e-4", "unknown"])
    assert sorted(record.sequence for record in found) == [2, 4]
    assert list(await store.find(chain, LookupField.AMENDMENT_ID, ["000000000001", "000000000002"])) == [decision]
    assert not await store.find(chain, LookupField.APPEND_ID, [])
