"""Benchmark of appends to the audit log on Cosmos DB, measured with a test server that delays each reply."""

import asyncio
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from bench.chain import CHAIN, build_audit_event
from bench.figures import Figure
from emulators.cosmos import CosmosServer
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import Tip, TipMovedError
from shared.provenance.records import build_event_draft, seal_record
from shared.timestamps import format_rfc3339, now
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE, create_database

CALLERS: Final = 64
LATENCY_SECONDS: Final = 0.010
APPENDS: Final = 10_000
SWAPS: Final = 200


def measure_cosmos() -> Iterator[Figure]:
    """Compare the audit log, which appends records in groups, with one conditional write per record."""
    with CosmosServer(latency=LATENCY_SECONDS) as server:
        engine, swaps = asyncio.run(_measure_records_per_second(server))
    by_callers = {callers: round(rate) for callers, rate in swaps.items()}
    detail = {"appendsPerSecond": round(engine), "callers": CALLERS, "swapsPerSecondByCallers": by_callers}
    yield Figure("cosmos_append_vs_swap", engine / max(swaps.values()), "ratio", at_least=20, detail=detail)


async def _get_workspace_id() -> str:
    return "bench"


class _RecordsPerSecond(NamedTuple):
    """Append rates in records per second.

    Attributes:
        group_commit: rate of the audit log, which appends records in groups.
        single_appends: rate of callers that append one record at a time, by number of concurrent callers.
    """

    group_commit: float
    single_appends: dict[int, float]


async def _measure_records_per_second(server: CosmosServer) -> _RecordsPerSecond:
    """Append audit records to a new database, first one at a time and then in groups; return both rates."""
    await create_database(server)
    store = CosmosChainStore(CosmosAccount(server.endpoint, DATABASE, key=server.key))
    await store.provision(CHAIN)
    swaps = {callers: await _measure_single_append_records_per_second(store, callers) for callers in (1, 8)}
    log = EventLog(ChainLog(store, _get_workspace_id))
    engine = await _measure_group_commit_records_per_second(log)
    await log.close()
    return _RecordsPerSecond(engine, swaps)


async def _measure_group_commit_records_per_second(log: EventLog) -> float:
    numbers = iter(range(APPENDS))

    async def append_repeatedly() -> None:
        for number in numbers:
            await log.append_to_chain(CHAIN, "editor@plant", build_audit_event(number))

    started = time.perf_counter()
    await asyncio.gather(*(append_repeatedly() for _ in range(CALLERS)))
    return APPENDS / (time.perf_counter() - started)


async def _measure_single_append_records_per_second(store: CosmosChainStore, caller_count: int) -> float:
    """Return the records per second of several callers that append without group commit.

    Each caller writes one record, on condition that the head of the chain is unchanged, and reads the head again after
    a conflict.
    """
    numbers = iter(range(SWAPS))

    async def append_repeatedly() -> None:
        tip = await store.read_tip(CHAIN)
        for number in numbers:
            while (swapped := await _append_if_tip_unchanged(store, tip, f"swap-{caller_count}-{number}")) is None:
                tip = await store.read_tip(CHAIN)
            tip = swapped

    started = time.perf_counter()
    await asyncio.gather(*(append_repeatedly() for _ in range(caller_count)))
    return SWAPS / (time.perf_counter() - started)


async def _append_if_tip_unchanged(store: CosmosChainStore, chain_tip: Tip, append_id: str) -> Tip | None:
    """Append one record after the tip (last record) of the chain; return the new tip, None if the tip has moved."""
    previous = chain_tip.hash or compute_genesis_hash("bench", CHAIN.target, CHAIN.scope_key)
    record = seal_record(
        build_event_draft("editor@plant", build_audit_event(1)),
        chain_tip.sequence + 1,
        format_rfc3339(now()),
        previous,
        append_id,
    )
    try:
        return await store.append(CHAIN, [record], chain_tip)
    except TipMovedError:
        return None
