"""Test process that appends events concurrently to a chain and prints each acknowledged event.

Arguments: file, name of the process, number of appenders, events of each.
"""

import asyncio
import sys
from pathlib import Path

from shared.backends.embedded.provenance import SqliteAuditLog
from shared.provenance.ports import Target


async def _get_workspace_id() -> str:
    return "plant-a"


async def _append_records(log: SqliteAuditLog, name: str, count: int) -> None:
    for number in range(count):
        event = {"ActionType": "Test", "EntityType": name, "EntityID": str(number)}
        record = await log.append(Target.PLATFORM_CONFIG, name, event, append_id=f"{name}-{number}")
        print(name, number, record["RecordID"], record["Hash"], flush=True)  # noqa: T201  the test reads it


async def main(file: Path, name: str, appenders: int, count: int) -> None:
    """Wait for a line on standard input, then append the events."""
    log = SqliteAuditLog(file, _get_workspace_id)
    print("ready", flush=True)  # noqa: T201  the test waits for it
    sys.stdin.readline()
    await asyncio.gather(*(_append_records(log, f"{name}-{number}", count) for number in range(appenders)))
    await log.close()


asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
