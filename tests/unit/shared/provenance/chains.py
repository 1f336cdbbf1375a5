"""Helpers that open audit chains in SQLite files."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.backends.embedded.key_files import FileNoteSigner
from shared.backends.embedded.provenance import SqliteChainStore
from shared.backends.embedded.provenance_overview import SqliteChainOverview
from shared.backends.embedded.provenance_verifier import request_from_json_line, request_to_json_line
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.hash_rule import get_filter_fields
from shared.provenance.parallel_verification import DEFAULT_PARALLEL, ParallelOptions
from shared.provenance.ports import ChainKey, ChainRecord, Target
from shared.provenance.verifier import ChainVerdict, ChainVerifier
from shared.provenance.window_verification import VerifyWindow, WindowRequest, WindowResult, verify_window

OF_PLATFORM = "WHERE target = 'PlatformConfig'"
WORKSPACE = "plant-a"
PLATFORM = ChainKey(Target.PLATFORM_CONFIG)
BATCH = ChainKey(Target.DOMAIN_EVENTS, "batch/7 +ü")


def build_parallel_options(records: int) -> ParallelOptions:
    """Return options for windows of ``records`` records; all windows except the first are verified in parallel."""
    # Each verification creates this number of tasks. The longest chain of the tests has 40 records.
    return ParallelOptions(min_records=1, window=records, ahead=64, result_timeout=60)


class ParallelChainStore(SqliteChainStore):
    """Embedded chain store whose windows (ranges of records) are verified in the test process.

    Attributes:
        valid_windows: number of windows that were valid.
    """

    valid_windows = 0

    @asynccontextmanager
    async def open_window_verifier(self) -> AsyncIterator[VerifyWindow]:
        """Return a verifier that uses the request format of the verification process."""

        async def verify_request(request: WindowRequest) -> WindowResult:
            answer = await verify_window(self, request_from_json_line(request_to_json_line(request)))
            self.valid_windows += answer.is_valid
            return answer

        yield verify_request


async def get_workspace_id() -> str:
    """Return the id of the workspace that the tests use."""
    return WORKSPACE


def build_event(number: int) -> dict[str, Any]:
    """Return an audit event with a unique number."""
    return {"ActionType": "Update", "EntityType": "Batch", "EntityID": f"B-{number}", "AfterState": {"n": number}}


@dataclass
class Ledger:
    """Audit log in one SQLite file, with its store, services and clock.

    Attributes:
        folder: folder of the file.
        store: store of the chains.
        overview: summaries of the chains and index of pending amendments.
        events: appends events.
        checkpoints: signs checkpoints.
        verifier: verifies chains, including their checkpoints.
    """

    folder: Path
    store: ParallelChainStore
    overview: SqliteChainOverview
    events: EventLog
    checkpoints: Checkpoints
    verifier: ChainVerifier

    async def fill(self, chain: ChainKey, count: int) -> None:
        """Append ``count`` events to a chain, one after another."""
        for number in range(count):
            await self.events.append_to_chain(chain, "editor", build_event(number))

    async def records(self, chain: ChainKey) -> list[ChainRecord]:
        """Return all records of a chain."""
        return list((await self.store.read(chain, 0, limit=10_000, max_bytes=2**40)).records)

    async def verify(self, chain: ChainKey, sequence: int | None = None) -> ChainVerdict:
        """Verify a chain, and optionally a single record of it."""
        return await self.verifier.verify(chain, sequence)

    def tamper(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        """Change the database file directly, without the service."""
        with closing(sqlite3.connect(self.folder / "provenance.sqlite")) as connection, connection:
            work(connection)


@asynccontextmanager
async def open_ledger(folder: Path, parallel: ParallelOptions = DEFAULT_PARALLEL) -> AsyncIterator[Ledger]:
    """Open the chains of a folder; close them after the block."""
    store = ParallelChainStore(folder / "provenance.sqlite")
    overview = SqliteChainOverview(folder / "provenance.sqlite")
    log = ChainLog(store, get_workspace_id)
    notes = FileCheckpointStore(folder / "checkpoints")
    signer = FileNoteSigner(folder / "checkpoint-key.pem", folder / "checkpoints")
    checkpoints = Checkpoints(store, notes, signer, get_workspace_id)
    try:
        yield Ledger(
            folder,
            store,
            overview,
            EventLog(log),
            checkpoints,
            ChainVerifier(store, get_workspace_id, checkpoints, parallel=parallel),
        )
    finally:
        await overview.close()
        await log.close()


@asynccontextmanager
async def open_reopened_ledger(folder: Path, count: int) -> AsyncIterator[Ledger]:
    """Fill two chains, close the store, and open it again, so that the next append reads the head items again."""
    async with open_ledger(folder) as opened:
        for chain in (BATCH, PLATFORM):
            await opened.fill(chain, count)
    async with open_ledger(folder) as again:
        yield again


def change_head_item(ledger: Ledger, sql: str) -> None:
    """Change columns of the head item of the chain :data:`PLATFORM`."""
    ledger.tamper(lambda file: file.execute(f"{sql} {OF_PLATFORM}"))


@asynccontextmanager
async def open_filled_ledger(folder: Path, count: int, parallel: ParallelOptions) -> AsyncIterator[Ledger]:
    """Open a copy of a filled database file: two chains of ``count`` events each. The file is written only once."""
    if count not in _FILLED:
        _FILLED[count] = await _write_filled_file(folder, count)
    (folder / "provenance.sqlite").write_bytes(_FILLED[count])
    async with open_ledger(folder, parallel) as ledger:
        yield ledger


# A durable append takes milliseconds, and hundreds of tests need the same records.
_FILLED: dict[int, bytes] = {}


async def _write_filled_file(folder: Path, count: int) -> bytes:
    async with open_ledger(folder) as ledger:
        for chain in (PLATFORM, BATCH):
            await ledger.fill(chain, count)
    with closing(sqlite3.connect(folder / "provenance.sqlite")) as connection:
        return connection.serialize()


def filter_columns(value: dict[str, Any]) -> dict[str, Any]:
    """Return those values of a record that are stored as its filter fields, by column."""
    names = {"Timestamp": "timestamp", "UserID": "user_id", "ActionType": "action_type", "EntityType": "entity_type"}
    names |= {"EntityID": "entity_id"}
    return {names[name]: text for name, text in get_filter_fields(value).items() if name in names}


async def read_leaves(ledger: Ledger, chain: ChainKey) -> list[bytes]:
    """Return the leaf data of a chain's Merkle tree."""
    return [bytes.fromhex(record.hash) for record in await ledger.records(chain)]
