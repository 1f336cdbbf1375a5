"""Run as a process by tests: appends to one chain until it is killed, telling each event that was answered.

Arguments: file, then for each writer its name and the number of its next event.
"""

import asyncio
import sys
from itertools import batched, count
from pathlib import Path

from shared.backends.embedded.provenance import SqliteAuditLog
from shared.provenance.ports import Target


async def _workspace() -> str:
    return "plant-a"


async def _writer(log: SqliteAuditLog, name: str, first: int) -> None:
    for number in count(first):
        event = {"ActionType": "Test", "EntityType": name, "EntityID": str(number)}
        record = await log.append(Target.DOMAIN_EVENTS, name, event, append_id=f"{name}-{number}", scope_key="storm")
        print(name, number, record["RecordID"], record["Hash"], ".", flush=True)  # noqa: T201  the test reads it


async def main(file: Path, writers: list[str]) -> None:
    """Append until the end of the process."""
    log = SqliteAuditLog(file, _workspace)
    await asyncio.gather(*(_writer(log, name, int(first)) for name, first in batched(writers, 2, strict=True)))


asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
