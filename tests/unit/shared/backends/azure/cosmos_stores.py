"""Helpers that open chain stores on the Cosmos DB emulator."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from azure.cosmos.aio import CosmosClient

from emulators.cosmos import CosmosServer
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_chain import SEGMENT_BYTES, CosmosChainStore
from shared.backends.azure.cosmos_containers import create_containers
from shared.provenance.chain_log import ChainLog
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import ChainKey, ChainRecord, Target, Tip
from shared.provenance.records import build_event_draft, seal_record
from shared.runtime import SYSTEM_RUNTIME, Runtime

DATABASE = "plant"
CHAIN = ChainKey(Target.DOMAIN_EVENTS, "line 1/ü")
MANY = 2**40
EVENT = {"ActionType": "A", "EntityType": "T", "EntityID": "1"}


async def get_workspace_id() -> str:
    """Return the id of the test workspace."""
    return "plant-a"


async def create_database(server: CosmosServer) -> None:
    """Create the database and its containers in the emulator."""
    async with CosmosClient(server.endpoint, server.key) as client:
        await create_containers(await client.create_database(DATABASE))


@asynccontextmanager
async def open_stores(
    server: CosmosServer,
    count: int = 1,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    read_seconds: float = 10,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> AsyncIterator[list[CosmosChainStore]]:
    """Open several chain stores, each with its own client."""
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(count):
            account = CosmosAccount(
                server.endpoint, DATABASE, key=server.key, read_seconds=read_seconds, runtime=runtime
            )
            opened.append(CosmosChainStore(account, segment_bytes=segment_bytes))
            stack.push_async_callback(opened[-1].close)
        yield opened


def build_batch(tip: Tip, count: int, *, name: str = "e", **event: Any) -> list[ChainRecord]:
    """Return new records that continue the chain :data:`CHAIN` after its newest record (the tip)."""
    records: list[ChainRecord] = []
    previous = tip.hash or compute_genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)
    for sequence in range(tip.sequence + 1, tip.sequence + 1 + count):
        timestamp = f"2026-01-05T08:{sequence // 60:02d}:{sequence % 60:02d}.000000Z"
        made = build_event_draft("u", EVENT | {"EntityID": f"{sequence % 3}"} | event)
        records.append(seal_record(made, sequence, timestamp, previous, f"{name}-{sequence}"))
        previous = records[-1].hash
    return records


async def fill_chain(store: CosmosChainStore, count: int, *, batch_size: int = 1) -> Tip:
    """Append records to the chain in batches of the given size; return the new tip (newest record)."""
    tip = await store.read_tip(CHAIN)
    for _ in range(0, count, batch_size):
        tip = await store.append(CHAIN, build_batch(tip, batch_size), tip)
    return tip


async def read_sequences(store: CosmosChainStore) -> list[int]:
    """Return the sequence numbers of the whole chain."""
    return [record.sequence for record in (await store.read(CHAIN, 0, limit=10_000, max_bytes=MANY)).records]


def open_logs(stores: Sequence[CosmosChainStore], *, give_up_seconds: float = 60) -> list[ChainLog]:
    """Return an event log for each store, as if each were opened by a separate process."""
    return [ChainLog(store, get_workspace_id, give_up_seconds=give_up_seconds) for store in stores]
