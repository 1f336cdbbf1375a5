"""Test process that appends to a chain until it is killed, and prints each acknowledged event.

Arguments: ``sqlite`` or ``cosmos``, the file or the address, then for each writer its name and the number of its next
event. Each printed line has the writer, the number of the event, its RecordID and Hash, and the times of request and
reply. An earlier process may already have requested the first event of each writer; its time of request is unknown.
"""

import asyncio
import sys
import time
from itertools import batched, count
from pathlib import Path

from shared.errors import Kind, WorkspaceError
from shared.provenance.appender import AppendResult
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.ports import ChainStore
from tests.unit.shared.backends.storms import CHAIN, READ_SECONDS, SEGMENT_BYTES, get_workspace_id


def _open_store(kind: str, address: str) -> ChainStore:
    if kind == "sqlite":
        from shared.backends.embedded.provenance import SqliteChainStore  # noqa: PLC0415  one adapter a process

        return SqliteChainStore(Path(address))
    from emulators.cosmos.service import DEFAULT_KEY  # noqa: PLC0415
    from shared.backends.azure.cosmos_account import CosmosAccount  # noqa: PLC0415
    from shared.backends.azure.cosmos_chain import CosmosChainStore  # noqa: PLC0415
    from tests.unit.shared.backends.azure.cosmos_stores import DATABASE  # noqa: PLC0415

    account = CosmosAccount(address, DATABASE, key=DEFAULT_KEY, read_seconds=READ_SECONDS)
    return CosmosChainStore(account, segment_bytes=SEGMENT_BYTES)


async def _append_with_retries(log: EventLog, name: str, number: int) -> AppendResult:
    """Append an event as a client with an Idempotency-Key does: repeat the request while the service is unavailable."""
    event = {"ActionType": "Test", "EntityType": name, "EntityID": str(number)}
    while True:
        try:
            return await log.append_to_chain(CHAIN, name, event, append_id=f"{name}-{number}")
        except WorkspaceError as error:
            if error.kind is not Kind.UNAVAILABLE:
                raise


async def _run_writer(log: EventLog, name: str, first: int) -> None:
    for number in count(first):
        asked = time.monotonic() if number > first else 0.0
        record = (await _append_with_retries(log, name, number)).record
        told = (name, number, f"{record.sequence:012d}", record.hash, asked, time.monotonic(), ".")
        print(*told, flush=True)  # noqa: T201  the test reads it


async def main(kind: str, address: str, writers: list[str]) -> None:
    """Append audit events with several writers until the process is killed."""
    log = EventLog(ChainLog(_open_store(kind, address), get_workspace_id))
    await asyncio.gather(*(_run_writer(log, name, int(first)) for name, first in batched(writers, 2, strict=True)))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
