"""Tests that every adapter for the overview of audit chains meets the same contract."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from azure.cosmos.aio import CosmosClient

from emulators.cosmos import CosmosServer
from shared.backends.azure import cosmos_overview
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_chain import SEGMENT_BYTES, CosmosChainStore
from shared.backends.azure.cosmos_chain_items import STATUS_ID, build_pending_amendments_item, compute_partition_key
from shared.backends.azure.cosmos_overview import CosmosChainOverview
from shared.backends.azure.cosmos_queries import query_items
from shared.backends.embedded import provenance_overview
from shared.backends.embedded.provenance import SqliteChainStore
from shared.backends.embedded.provenance_overview import SqliteChainOverview
from shared.provenance.amendments import AmendmentState
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.overview import AuditOverview
from shared.provenance.overview_ports import ChainOverview, ChainSummary, PendingPlace, StoredVerdict
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Target, Tip, TipMovedError
from shared.provenance.queries import AmendmentFilters
from shared.provenance.records import build_event_draft, build_record_draft, seal_record
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE, create_database

EVENTS = ChainKey(Target.DOMAIN_EVENTS, "line 1/ü")
AMENDMENTS = ChainKey(Target.DOMAIN_AMENDMENTS, "line 1/ü")
OTHER = ChainKey(Target.DOMAIN_AMENDMENTS, "line 2")
PLATFORM = ChainKey(Target.PLATFORM_CONFIG)
MANY = 2**40


@dataclass
class OpenedOverview:
    """Overview with its chain store, and functions that change the stored data directly.

    Attributes:
        overview: the overview.
        store: the store of the chains.
        forget_counts: makes a chain look as if an earlier version wrote it.
        damage_summary: damages the stored verdict and checkpoint size of a chain, in one of four ways (0 to 3).
        damage_counts: stores invalid counts of a chain of amendments, and invalid entries in the index of pending ones.
        add_entry: adds an entry with this sequence number and time to the index of pending amendments.
    """

    overview: ChainOverview
    store: ChainStore
    forget_counts: Callable[[ChainKey], Awaitable[None]]
    damage_summary: Callable[[ChainKey, int], Awaitable[None]]
    damage_counts: Callable[[ChainKey], Awaitable[None]]
    add_entry: Callable[[ChainKey, int, str], Awaitable[None]]


@asynccontextmanager
async def open_sqlite(folder: Path) -> AsyncIterator[OpenedOverview]:
    """Open the embedded adapter."""
    path = folder / "provenance.sqlite"
    store, overview = SqliteChainStore(path), SqliteChainOverview(path)

    async def keep_summary(_: ChainKey) -> None:
        with closing(sqlite3.connect(path, autocommit=True)) as connection:
            connection.execute("DELETE FROM chain_summaries")
            connection.execute("DELETE FROM pending_amendments")

    async def damage_summary(_: ChainKey, way: int) -> None:
        damage = (
            "verified_at = x'00'", "verified_records = 'many'", "is_valid = 'yes'", "verified_at = 'zzz'"
        )[way]  # fmt: skip
        with closing(sqlite3.connect(path, autocommit=True)) as connection:
            connection.execute(f"UPDATE chain_summaries SET checkpoint_size = 'many', {damage}")

    async def damage_counts(_: ChainKey) -> None:
        with closing(sqlite3.connect(path, autocommit=True)) as connection:
            connection.execute("UPDATE chain_summaries SET counted_to = 'x'")
            entries = [(b"x", 5), ("2026-01-05T08:00:00.000000Z", "x")]
            sql = "INSERT INTO pending_amendments (timestamp, chain, sequence) SELECT ?, chain, ? FROM chains"
            connection.executemany(sql, entries)

    async def add_entry(_: ChainKey, sequence: int, timestamp: str) -> None:
        with closing(sqlite3.connect(path, autocommit=True)) as connection:
            sql = "INSERT INTO pending_amendments (timestamp, chain, sequence) SELECT ?, chain, ? FROM chains"
            connection.execute(sql, (timestamp, sequence))

    yield OpenedOverview(overview, store, keep_summary, damage_summary, damage_counts, add_entry)
    await overview.close()
    await store.close()


@asynccontextmanager
async def open_cosmos(_folder: Path, segment_bytes: int = SEGMENT_BYTES) -> AsyncIterator[OpenedOverview]:
    """Open the Cosmos DB adapter with an emulator."""
    async with CosmosServer(physical_partitions=3) as server:
        await create_database(server)
        account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
        store = CosmosChainStore(account, segment_bytes=segment_bytes)

        async def forget_chain(chain: ChainKey) -> None:
            async with CosmosClient(server.endpoint, server.key) as client:
                container = client.get_database_client(DATABASE).get_container_client(chain.target)
                text = "SELECT * FROM c WHERE c.scope = @scope OR c.scopeKey = @scope"
                values: list[dict[str, object]] = [{"name": "@scope", "value": chain.scope_key}]
                for item in [one async for one in container.query_items(text, parameters=values)]:
                    if item["id"] == "head":
                        del item["counts"]
                        await container.replace_item(item["id"], item)
                    else:
                        await container.delete_item(item["id"], item["chain"])

        async def damage_summary(chain: ChainKey, way: int) -> None:
            async with CosmosClient(server.endpoint, server.key) as client:
                container = client.get_database_client(DATABASE).get_container_client(chain.target)
                item = await container.read_item(STATUS_ID, compute_partition_key(chain, 1))
                verdict = item["verdict"]
                damage = ({"valid": True}, "valid", {**verdict, "at": 1}, {**verdict, "at": "zzz"})[way]
                await container.replace_item(item["id"], {**item, "verdict": damage, "checkpointSize": "many"})

        async def damage_counts(chain: ChainKey) -> None:
            key = compute_partition_key(chain, 1)
            async with CosmosClient(server.endpoint, server.key) as client:
                container = client.get_database_client(DATABASE).get_container_client(chain.target)
                head = await container.read_item("head", key)
                await container.replace_item("head", {**head, "counts": {"firstAt": "", "from": 1, "pending": True}})
                for number, sequences in enumerate((["x", 1.5, True, 0, 10**12], 5, None)):
                    place = {"id": f"pending-{number}", "chain": key, "append": f"{number}"}
                    members = {"scopeKey": chain.scope_key, "pendingAt": "2026-01-05T08:00:00.000000Z"}
                    await container.create_item({**place, **members, "sequences": sequences})

        async def add_entry(chain: ChainKey, sequence: int, timestamp: str) -> None:
            async with CosmosClient(server.endpoint, server.key) as client:
                container = client.get_database_client(DATABASE).get_container_client(chain.target)
                await container.create_item(build_pending_amendments_item(chain, 1, timestamp, [sequence]))

        overview = CosmosChainOverview(account, store)
        yield OpenedOverview(overview, store, forget_chain, damage_summary, damage_counts, add_entry)
        await store.close()


@asynccontextmanager
async def open_cosmos_with_small_segments(folder: Path) -> AsyncIterator[OpenedOverview]:
    """Open the Cosmos DB adapter with segments of one or two appends."""
    async with open_cosmos(folder, segment_bytes=1_500) as adapter:
        yield adapter


type Opener = Callable[[Path], AbstractAsyncContextManager[OpenedOverview]]
OPENERS: dict[str, Opener] = {
    "sqlite": open_sqlite,
    "cosmos": open_cosmos,
    "cosmos segments": open_cosmos_with_small_segments,
}


@pytest.fixture(params=OPENERS)
async def adapter(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenedOverview]:
    """Provide an empty overview; each test runs with each kind of store."""
    async with OPENERS[request.param](tmp_path) as found:
        yield found


def build_amendment(status: str = "pending") -> dict[str, str]:
    """Return the JSON properties of an amendment record."""
    return {"AmendedBy": "e", "Status": status, "EntityType": "T", "EntityID": "1"}


def build_decision(sequence: int) -> dict[str, str]:
    """Return the JSON properties of an approval of an amendment."""
    members = {"ApprovedBy": "a", "Status": "approved", "EntityType": "T", "EntityID": "1"}
    return {**members, "AmendmentID": f"{sequence:012d}"}


async def append_records(store: ChainStore, chain: ChainKey, *bodies: dict[str, str], second: int = 0) -> Tip:
    """Append records with these properties as one batch; ``second`` is the second of their time."""
    await store.provision(chain)
    tip = await store.read_tip(chain)
    timestamp = f"2026-01-05T08:{second // 60:02d}:{second % 60:02d}.000000Z"
    records: list[ChainRecord] = []
    previous = tip.hash or compute_genesis_hash("plant-a", chain.target, chain.scope_key)
    for sequence, body in enumerate(bodies, start=tip.sequence + 1):
        time = next((f"{name}At" for name in ("Amended", "Approved") if f"{name}By" in body), "Timestamp")
        draft = build_event_draft("u", body) if time == "Timestamp" else build_record_draft(body, time)
        records.append(seal_record(draft, sequence, timestamp, previous, f"{chain.scope_key}-{sequence}"))
        previous = records[-1].hash
    return await store.append(chain, records, tip)


def build_event(name: str = "1") -> dict[str, str]:
    """Return the JSON properties of an audit event record."""
    return {"ActionType": "A", "EntityType": "T", "EntityID": name}


async def summarize_chain(adapter: OpenedOverview, chain: ChainKey) -> ChainSummary:
    """Return the summary of one chain."""
    found = await adapter.overview.list_chains(chain.target, None, 100)
    return next(one for one in found if one.chain == chain)


async def list_pending_entries(adapter: OpenedOverview) -> list[tuple[str, int]]:
    """Return the scope and sequence number of each entry in the index of pending amendments."""
    entries = await adapter.overview.list_pending_amendments(None, 100, MANY)
    assert all(entry.record and entry.record.sequence == entry.place.sequence for entry in entries)
    return [(entry.place.scope_key, entry.place.sequence) for entry in entries]


async def test_a_summary_is_updated_by_each_append(adapter: OpenedOverview) -> None:
    """The summary of a chain has its current number of records, first and last time, and pending amendments."""
    assert await adapter.overview.list_chains(None, None, 10) == []
    await append_records(adapter.store, PLATFORM, build_event(), second=1)
    await append_records(adapter.store, EVENTS, build_event(), build_event(), second=2)
    await append_records(adapter.store, EVENTS, build_event(), second=70)
    await append_records(
        adapter.store, AMENDMENTS, build_amendment(), build_amendment("approved"), build_amendment(), second=3
    )
    await append_records(adapter.store, AMENDMENTS, build_decision(1), second=4)
    first, second, third = await adapter.overview.list_chains(None, None, 10)
    assert [one.chain for one in (first, second, third)] == [AMENDMENTS, EVENTS, PLATFORM]
    assert (second.records, second.first_at, second.last_at, second.pending) == (
        3, "2026-01-05T08:00:02.000000Z", "2026-01-05T08:01:10.000000Z", 0,
    )  # fmt: skip
    assert (first.records, first.first_at, first.pending) == (4, "2026-01-05T08:00:03.000000Z", 1)
    assert (third.records, third.pending, third.verdict) == (1, 0, None)


async def test_chain_summaries_are_listed_in_pages(adapter: OpenedOverview) -> None:
    """All pages of the list, of any size, together contain each chain once."""
    chains = [ChainKey(Target.DOMAIN_EVENTS, f"s{number}") for number in range(5)] + [AMENDMENTS, OTHER, PLATFORM]
    for chain in chains:
        for _ in range(3):
            await append_records(
                adapter.store, chain, build_amendment() if chain.target == AMENDMENTS.target else build_event("x" * 500)
            )
    expected = [one.chain for one in await adapter.overview.list_chains(None, None, 100)]
    assert sorted(expected) == sorted(chains)
    for size in (1, 2, 3, 7):
        listed: list[ChainKey] = []
        while page := await adapter.overview.list_chains(None, listed[-1] if listed else None, size):
            assert len(page) <= size
            listed += [one.chain for one in page]
        assert listed == expected
    only = await adapter.overview.list_chains(Target.DOMAIN_EVENTS, None, 100)
    assert [one.chain for one in only] == [one for one in expected if one.target is Target.DOMAIN_EVENTS]
    rest = await adapter.overview.list_chains(Target.DOMAIN_EVENTS, only[2].chain, 100)
    assert [one.chain for one in rest] == [one.chain for one in only[3:]]


async def test_pending_amendments_are_listed_oldest_first(adapter: OpenedOverview) -> None:
    """The index lists pending amendments of all scopes by time, in pages; decided amendments can be removed."""
    await append_records(adapter.store, AMENDMENTS, build_amendment(), build_amendment(), second=1)
    await append_records(adapter.store, OTHER, build_amendment(), second=2)
    await append_records(adapter.store, AMENDMENTS, build_amendment("approved"), build_amendment(), second=3)
    assert await list_pending_entries(adapter) == [("line 1/ü", 1), ("line 1/ü", 2), ("line 2", 1), ("line 1/ü", 4)]
    listed: list[PendingPlace] = []
    while page := await adapter.overview.list_pending_amendments(listed[-1] if listed else None, 1, MANY):
        listed += [entry.place for entry in page]
    assert [(place.scope_key, place.sequence) for place in listed] == await list_pending_entries(adapter)
    await append_records(adapter.store, OTHER, build_decision(1), second=4)
    entries = await adapter.overview.list_pending_amendments(None, 100, MANY)
    await adapter.overview.remove_pending_entries([entry for entry in entries if entry.place.chain == OTHER])
    assert await list_pending_entries(adapter) == [("line 1/ü", 1), ("line 1/ü", 2), ("line 1/ü", 4)]
    assert (await summarize_chain(adapter, OTHER)).pending == 0
    assert (await summarize_chain(adapter, AMENDMENTS)).pending == 3


async def test_pending_amendments_of_a_scope_are_listed_newest_first(adapter: OpenedOverview) -> None:
    """The index lists the sequence numbers of one scope's pending amendments in descending order, in pages."""
    await append_records(adapter.store, AMENDMENTS, build_amendment(), build_amendment(), second=1)
    await append_records(adapter.store, OTHER, build_amendment(), second=2)
    await append_records(adapter.store, AMENDMENTS, build_amendment("approved"), build_amendment(), second=3)
    await append_records(adapter.store, AMENDMENTS, build_amendment(), second=4)
    # Counting adds this entry of the last Cosmos DB segment to the first one.
    await adapter.add_entry(AMENDMENTS, 6, "2026-01-05T08:00:05.000000Z")
    await append_records(adapter.store, AMENDMENTS, build_amendment(), second=5)
    pages: list[list[int]] = []
    while page := await adapter.overview.list_pending_sequences(AMENDMENTS, pages[-1][-1] if pages else 10, 2):
        pages.append(list(page))
    assert pages == [[6, 5], [4, 2], [1]]
    assert await adapter.overview.list_pending_sequences(ChainKey(Target.DOMAIN_AMENDMENTS, "new"), 10, 2) == []


async def test_amendments_of_an_uncounted_chain_are_counted_before_a_query(adapter: OpenedOverview) -> None:
    """A query for the pending amendments of a scope first counts records that an earlier version wrote."""
    await append_records(adapter.store, AMENDMENTS, build_amendment(), build_amendment(), second=1)
    await append_records(adapter.store, AMENDMENTS, build_decision(1), second=2)
    await adapter.forget_counts(AMENDMENTS)
    overview = AuditOverview(adapter.overview, adapter.store, cast("Checkpoints", None))
    filters = AmendmentFilters(status=AmendmentState.PENDING)
    answer = await overview.query_amendments(AMENDMENTS, filters, limit=10, offset=0)
    assert [record.sequence for record in answer.records] == [2]


async def test_a_new_amendment_replaces_the_entry_of_a_removed_one(adapter: OpenedOverview) -> None:
    """An entry of an amendment that was removed from the end of the chain does not prevent the next amendment."""
    await append_records(adapter.store, AMENDMENTS, build_amendment("approved"), second=1)
    await adapter.add_entry(AMENDMENTS, 2, "2026-01-05T08:00:02.000000Z")
    await append_records(adapter.store, AMENDMENTS, build_amendment(), second=2)
    assert await list_pending_entries(adapter) == [("line 1/ü", 2)]


async def test_a_record_that_is_no_pending_amendment_is_not_listed(adapter: OpenedOverview) -> None:
    """An entry of a removed amendment does not list the record that has the same sequence number now."""
    await append_records(adapter.store, AMENDMENTS, build_amendment(), second=1)
    await adapter.add_entry(AMENDMENTS, 2, "2026-01-05T08:00:03.000000Z")
    await append_records(adapter.store, AMENDMENTS, build_amendment("approved"), second=2)
    checkpoints = cast("Checkpoints", None)
    page = await AuditOverview(adapter.overview, adapter.store, checkpoints).list_pending_amendments(None, 10)
    assert [place.sequence for place in page.places] == [1]


async def test_a_forged_filter_field_hides_no_pending_amendment(tmp_path: Path) -> None:
    """A pending amendment is listed although a writer to the file has changed its filter field ``Status``."""
    async with open_sqlite(tmp_path) as adapter:
        await append_records(adapter.store, AMENDMENTS, build_amendment(), second=1)
        with closing(sqlite3.connect(tmp_path / "provenance.sqlite", autocommit=True)) as connection:
            connection.execute("UPDATE records SET status = 'approved'")
        overview = AuditOverview(adapter.overview, adapter.store, cast("Checkpoints", None))
        page = await overview.list_pending_amendments(None, 10)
        assert [place.sequence for place in page.places] == [1]


async def test_an_entry_of_a_chain_of_events_is_not_listed(tmp_path: Path) -> None:
    """An entry that a writer to the file adds for another chain is ignored; it once repeated without an end."""
    async with open_sqlite(tmp_path) as adapter:
        await append_records(adapter.store, EVENTS, build_event(), second=1)
        await adapter.add_entry(EVENTS, 1, "2026-01-05T08:00:01.000000Z")
        overview = AuditOverview(adapter.overview, adapter.store, cast("Checkpoints", None))
        assert (await overview.list_pending_amendments(None, 10)).places == []


async def test_a_page_of_pending_amendments_has_a_maximum_size(adapter: OpenedOverview) -> None:
    """A page has at least one entry, and ends before its maximum size is exceeded."""
    await append_records(adapter.store, AMENDMENTS, build_amendment(), build_amendment(), second=1)
    (entry,) = await adapter.overview.list_pending_amendments(None, 100, 1)
    assert entry.place.sequence == 1


async def test_entries_are_listed_without_their_amendments(adapter: OpenedOverview) -> None:
    """Without records, a page has the same entries but no amendments, and these entries can be removed."""
    await append_records(adapter.store, AMENDMENTS, build_amendment(), build_amendment(), second=1)
    await append_records(adapter.store, OTHER, build_amendment(), second=2)
    entries = await adapter.overview.list_pending_amendments(None, 2, 1, with_records=False)
    assert [(entry.place.sequence, entry.record) for entry in entries] == [(1, None), (2, None)]
    (last,) = await adapter.overview.list_pending_amendments(entries[-1].place, 2, 1, with_records=False)
    assert (last.place.chain, last.record) == (OTHER, None)
    await adapter.overview.remove_pending_entries([last])
    assert await list_pending_entries(adapter) == [("line 1/ü", 1), ("line 1/ü", 2)]


async def test_chains_stored_by_an_earlier_version_are_counted(adapter: OpenedOverview) -> None:
    """The records of a chain that an earlier version stored without counts are counted once."""
    await append_records(adapter.store, AMENDMENTS, build_amendment(), build_amendment(), build_amendment(), second=1)
    await append_records(adapter.store, AMENDMENTS, build_decision(1), second=2)
    await adapter.forget_counts(AMENDMENTS)
    await append_records(adapter.store, AMENDMENTS, build_amendment(), build_decision(2), second=3)
    assert (await summarize_chain(adapter, AMENDMENTS)).pending is None
    assert await adapter.overview.count_pending_amendments(AMENDMENTS) == 2
    assert await adapter.overview.list_chains_with_incomplete_counts(10) == [AMENDMENTS]
    await asyncio.gather(*(adapter.overview.complete_record_count(AMENDMENTS) for _ in range(3)))
    await adapter.overview.complete_record_count(AMENDMENTS)
    assert await adapter.overview.list_chains_with_incomplete_counts(10) == []
    assert (await summarize_chain(adapter, AMENDMENTS)).pending == 2
    assert (await summarize_chain(adapter, AMENDMENTS)).first_at == "2026-01-05T08:00:01.000000Z"
    entries = await adapter.overview.list_pending_amendments(None, 100, MANY)
    assert {3, 5} <= {entry.place.sequence for entry in entries}
    await append_records(adapter.store, AMENDMENTS, build_decision(3), second=4)
    assert (await summarize_chain(adapter, AMENDMENTS)).pending == 1


async def test_damaged_counts_are_counted_again(adapter: OpenedOverview) -> None:
    """A chain whose stored counts are invalid can be appended to and counted; invalid entries are not listed."""
    await append_records(adapter.store, AMENDMENTS, build_amendment(), build_amendment(), second=1)
    await adapter.damage_counts(AMENDMENTS)
    await append_records(adapter.store, AMENDMENTS, build_amendment(), second=2)
    assert (await summarize_chain(adapter, AMENDMENTS)).pending is None
    assert await adapter.overview.list_chains_with_incomplete_counts(10) == [AMENDMENTS]
    await adapter.overview.complete_record_count(AMENDMENTS)
    assert await adapter.overview.list_chains_with_incomplete_counts(10) == []
    assert await list_pending_entries(adapter) == [("line 1/ü", 1), ("line 1/ü", 2), ("line 1/ü", 3)]


async def test_counting_a_chain_during_appends_is_exact(
    adapter: OpenedOverview, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting a chain while records are appended gives the exact number."""
    monkeypatch.setattr(provenance_overview, "COUNTED_AT_ONCE", 3)
    await append_records(adapter.store, AMENDMENTS, *[build_amendment()] * 10, second=1)
    await adapter.forget_counts(AMENDMENTS)

    async def append_all_records() -> None:
        for number in range(10):
            body = build_decision(number + 1) if number % 2 else build_amendment()
            while True:
                with contextlib.suppress(TipMovedError):
                    await append_records(adapter.store, AMENDMENTS, body, second=2 + number)
                    break

    async def count_until_appended() -> None:
        while await adapter.overview.list_chains_with_incomplete_counts(1):
            await adapter.overview.complete_record_count(AMENDMENTS)

    await asyncio.gather(append_all_records(), count_until_appended(), count_until_appended())
    await count_until_appended()
    assert (
        (await summarize_chain(adapter, AMENDMENTS)).pending
        == await adapter.overview.count_pending_amendments(AMENDMENTS)
        == 10
    )
    entries = await adapter.overview.list_pending_amendments(None, 100, MANY)
    assert {1, 3, 5, 7, 9} | {11, 13, 15, 17, 19} <= {entry.place.sequence for entry in entries}


async def test_verdicts_and_checkpoint_sizes_are_stored_in_the_summary(adapter: OpenedOverview) -> None:
    """A summary has the last verification verdict and the largest checkpoint size, also after appends."""
    assert await adapter.overview.find_verdict(EVENTS) is None
    await append_records(adapter.store, EVENTS, build_event())
    assert await adapter.overview.find_verdict(EVENTS) is None
    verdict = StoredVerdict("2026-01-05T09:00:00.000000Z", 1, is_valid=False, broken_at="000000000001", reason="r")
    valid = replace(verdict, is_valid=True)
    await adapter.overview.save_verdict(EVENTS, valid, "2026-01-05T08:59:00.000000Z")
    await adapter.overview.save_verdict(EVENTS, verdict, "2026-01-05T08:59:00.000000Z")
    await adapter.overview.save_verdict(EVENTS, valid, "2026-01-05T08:59:59.999999Z")
    await adapter.overview.save_checkpoint_sizes({EVENTS: 7})
    await adapter.overview.save_checkpoint_sizes({EVENTS: 5})
    await append_records(adapter.store, EVENTS, build_event())
    found = await summarize_chain(adapter, EVENTS)
    assert (found.verdict, found.checkpoint_size, found.records) == (verdict, 7, 2)
    assert await adapter.overview.find_verdict(EVENTS) == verdict
    assert await adapter.overview.find_verdict(PLATFORM) is None
    assert await adapter.overview.list_chains(None, None, 10, broken_only=True) == [found]
    assert await adapter.overview.list_chains(Target.PLATFORM_CONFIG, None, 10, broken_only=True) == []
    assert await adapter.overview.list_chains(None, EVENTS, 10, broken_only=True) == []
    await adapter.overview.save_verdict(EVENTS, valid, verdict.verified_at)
    assert await adapter.overview.list_chains(None, None, 10, broken_only=True) == []
    assert (await summarize_chain(adapter, EVENTS)).verdict == valid


@pytest.mark.parametrize("way", [0, 1, 2, 3])
async def test_a_damaged_verdict_counts_as_missing(adapter: OpenedOverview, way: int) -> None:
    """A stored verdict with a wrong type or time, or a checkpoint size that is no number, counts as missing."""
    await append_records(adapter.store, EVENTS, build_event())
    verdict = StoredVerdict("2026-01-05T09:00:00.000000Z", 1, is_valid=True, reason="r")
    await adapter.overview.save_verdict(EVENTS, verdict, verdict.verified_at)
    await adapter.overview.save_checkpoint_sizes({EVENTS: 1})
    await adapter.damage_summary(EVENTS, way)
    found = await summarize_chain(adapter, EVENTS)
    assert (found.verdict, found.checkpoint_size) == (None, None)
    assert await adapter.overview.find_verdict(EVENTS) is None
    await adapter.overview.save_verdict(EVENTS, verdict, verdict.verified_at)
    await adapter.overview.save_checkpoint_sizes({EVENTS: 1})
    found = await summarize_chain(adapter, EVENTS)
    assert (found.verdict, found.checkpoint_size) == (verdict, 1)
    assert await adapter.overview.find_verdict(EVENTS) == verdict


async def test_a_verdict_with_a_time_in_the_future_is_replaced(adapter: OpenedOverview) -> None:
    """A valid result replaces a stored result whose time is in the future, for instance because a clock was ahead."""
    await append_records(adapter.store, EVENTS, build_event())
    future = StoredVerdict("9999-01-01T00:00:00.000000Z", 1, is_valid=False, broken_at="000000000001", reason="r")
    await adapter.overview.save_verdict(EVENTS, future, "2026-01-05T09:00:00.000000Z")
    assert await adapter.overview.find_verdict(EVENTS) == future
    valid = StoredVerdict("2026-01-05T09:00:00.000000Z", 1, is_valid=True, reason="r")
    await adapter.overview.save_verdict(EVENTS, valid, valid.verified_at)
    assert await adapter.overview.find_verdict(EVENTS) == valid


async def test_a_broken_chain_without_a_head_item_is_listed(adapter: OpenedOverview) -> None:
    """A chain that verification found broken is listed in order of scope, although its head item is missing."""
    broken = StoredVerdict("2026-01-05T09:00:00.000000Z", 0, is_valid=False, broken_at="000000000001", reason="r")
    valid = replace(broken, is_valid=True)
    chains = [ChainKey(Target.DOMAIN_EVENTS, scope) for scope in ("a", "b", "c")]
    await append_records(adapter.store, chains[0], build_event())
    await append_records(adapter.store, chains[2], build_event())
    await adapter.overview.save_verdict(chains[1], valid, valid.verified_at)
    assert [one.chain for one in await adapter.overview.list_chains(None, None, 10)] == [chains[0], chains[2]]
    await adapter.overview.save_verdict(chains[1], broken, broken.verified_at)
    listed = await adapter.overview.list_chains(None, None, 10)
    assert [one.chain for one in listed] == chains
    assert (listed[1].records, listed[1].first_at, listed[1].last_at, listed[1].verdict) == (0, "", "", broken)
    assert await adapter.overview.list_chains(None, None, 2) == listed[:2]
    assert await adapter.overview.list_chains(None, chains[0], 1) == [listed[1]]
    assert [one.chain for one in await adapter.overview.list_chains(None, None, 10, broken_only=True)] == [chains[1]]
    assert await adapter.overview.find_verdict(chains[1]) == broken


async def test_a_verdict_remains_until_the_next_verification(adapter: OpenedOverview) -> None:
    """A chain without a head item remains broken when a record is appended, until a verification finds it valid."""
    broken = StoredVerdict("2026-01-05T09:00:00.000000Z", 0, is_valid=False, broken_at="000000000001", reason="r")
    valid = replace(broken, is_valid=True)
    chains = [EVENTS, ChainKey(Target.DOMAIN_EVENTS, "other")]
    await adapter.overview.save_verdict(EVENTS, broken, broken.verified_at)
    for chain in chains:
        await append_records(adapter.store, chain, build_event())
    assert await adapter.overview.find_verdict(EVENTS) == broken
    assert await adapter.overview.find_verdict(chains[1]) is None
    listed = await adapter.overview.list_chains(None, None, 10, broken_only=True)
    assert [(one.chain, one.records, one.verdict) for one in listed] == [(EVENTS, 1, broken)]
    await adapter.overview.save_verdict(EVENTS, valid, "2026-01-05T08:59:59.999999Z")
    assert await adapter.overview.find_verdict(EVENTS) == broken
    await adapter.overview.save_verdict(EVENTS, replace(valid, records=1), "2026-01-05T09:00:01.000000Z")
    assert await adapter.overview.list_chains(None, None, 10, broken_only=True) == []
    assert (await summarize_chain(adapter, EVENTS)).records == 1


@pytest.mark.parametrize("is_valid", [False, True])
async def test_only_a_verdict_broken_remains_if_a_chain_begins_again(tmp_path: Path, *, is_valid: bool) -> None:
    """A chain that begins again after its records were deleted remains broken, but not valid."""
    verdict = StoredVerdict("2026-01-05T09:00:00.000000Z", 1, is_valid=True)
    if not is_valid:
        verdict = replace(verdict, records=0, is_valid=False, broken_at="000000000001", reason="r")
    async with open_sqlite(tmp_path) as adapter:
        await append_records(adapter.store, EVENTS, build_event(), second=1)
        with closing(sqlite3.connect(tmp_path / "provenance.sqlite", autocommit=True)) as connection:
            connection.execute("DELETE FROM records")
            connection.execute("UPDATE chains SET sequence = 0, hash = '', timestamp = ''")
        await adapter.overview.save_verdict(EVENTS, verdict, verdict.verified_at)
        await append_records(adapter.store, EVENTS, build_event(), second=2)
        found = await summarize_chain(adapter, EVENTS)
    expected = None if is_valid else verdict
    assert (found.records, found.first_at, found.verdict) == (1, "2026-01-05T08:00:02.000000Z", expected)


async def test_a_page_of_broken_chains_reads_no_other_chains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of broken chains reads only the items of its own chains, and a limited number of them at a time."""
    read, reading, at_once = list[str](), 0, list[int]()
    broken = StoredVerdict("2026-01-05T09:00:00.000000Z", 1, is_valid=False, broken_at="000000000001", reason="r")

    async def record_items(*arguments: Any, **options: Any) -> AsyncIterator[Any]:
        async for item in query_items(*arguments, **options):
            read.append(item["scope"])
            yield item

    async with open_cosmos(tmp_path) as adapter:
        store = cast("CosmosChainStore", adapter.store)
        find_newest_head = store.find_newest_head

        async def record_reads_at_once(chain: ChainKey) -> Any:
            nonlocal reading
            reading += 1
            at_once.append(reading)
            head = await find_newest_head(chain)
            reading -= 1
            return head

        chains = [ChainKey(Target.DOMAIN_EVENTS, scope) for scope in "abcdef"]
        for chain in chains:
            await append_records(store, chain, build_event())
            await adapter.overview.save_verdict(chain, broken, broken.verified_at)
        monkeypatch.setattr(store, "find_newest_head", record_reads_at_once)
        monkeypatch.setattr(cosmos_overview, "query_items", record_items)
        monkeypatch.setattr(cosmos_overview, "READS_AT_ONCE", 2)
        page = await adapter.overview.list_chains(chains[0].target, chains[0], 3, broken_only=True)
    assert [(summary.chain, summary.records) for summary in page] == [(chain, 1) for chain in chains[1:4]]
    assert read == ["b", "c", "d"]
    assert (len(at_once), max(at_once)) == (3, 2)


async def test_foreign_items_neither_break_a_chain_nor_stop_the_index(tmp_path: Path) -> None:
    """An item that a writer to Cosmos DB adds marks no chain as broken; an index item with any id can be removed."""
    async with open_cosmos(tmp_path) as adapter:
        overview = cast("CosmosChainOverview", adapter.overview)
        await append_records(adapter.store, EVENTS, build_event())
        await append_records(adapter.store, AMENDMENTS, build_amendment(), second=1)
        members = {"at": "2026-01-05T09:00:00.000000Z", "records": 1, "valid": False, "brokenAt": "1", "reason": "r"}
        place = {"id": "x", "chain": compute_partition_key(EVENTS, 1), "append": "x", "scope": EVENTS.scope_key}
        await overview._items[EVENTS.target].put_if_unchanged(None, {**place, "verdict": members})
        assert await overview.list_chains(None, None, 10, broken_only=True) == []
        entry = build_pending_amendments_item(AMENDMENTS, 1, "2026-01-05T08:00:00.000000Z", [1])
        await overview._items[AMENDMENTS.target].put_if_unchanged(None, {**entry, "id": "a|b", "append": "a|b"})
        first, second = await overview.list_pending_amendments(None, 10, MANY)
        await overview.remove_pending_entries([first])
        assert await overview.list_pending_amendments(None, 10, MANY) == [second]
