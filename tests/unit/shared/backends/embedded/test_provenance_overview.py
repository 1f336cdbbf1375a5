"""Tests of the record counts of chains in SQLite while several processes append, and some of them are killed."""

import asyncio
import os
import signal
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import closing
from pathlib import Path

from shared.backends.embedded import provenance_overview
from shared.backends.embedded.provenance import SqliteChainStore
from shared.backends.embedded.provenance_overview import SqliteChainOverview
from shared.provenance.amendments import AmendmentPolicy, Amendments
from shared.provenance.chain_log import ChainLog
from shared.provenance.models import AmendmentBody
from shared.provenance.ports import ChainKey, Target
from shared.provenance.verifier import ChainVerifier

CHAIN = ChainKey(Target.DOMAIN_AMENDMENTS, "line-1")
POLICY = AmendmentPolicy(approval_required=True, reason_text_required=False, reason_categories=("other",))
BODY = AmendmentBody.model_validate(
    {
        "EntityType": "Batch",
        "EntityID": "B-1",
        "OriginalRecord": {},
        "AmendedRecord": {},
        "ChangedFields": ["kg"],
        "ReasonCategory": "other",
        "ReasonText": "",
    }
)
MODULE = "tests.unit.shared.backends.embedded.test_provenance_overview"
EARLIER, APPENDED = 30, 12


async def get_workspace_id() -> str:
    """Return the id of the workspace."""
    return "plant-a"


async def append_amendments(path: Path, count: int) -> None:
    """Append amendments, approve every second one, and print a line after each."""
    store = SqliteChainStore(path)
    log = ChainLog(store, get_workspace_id)
    amendments = Amendments(log, store)
    for number in range(count):
        created = await amendments.create(CHAIN, "editor", BODY, POLICY)
        if number % 2:
            await amendments.approve(CHAIN, f"{created.record.sequence:012d}", "admin")
        sys.stdout.write("appended\n")
        sys.stdout.flush()
    await log.close()


async def count_amendments(path: Path) -> None:
    """Complete the counts of the chain repeatedly, two amendments at a time, and print a line after each."""
    provenance_overview.COUNTED_AT_ONCE = 2  # type: ignore[misc]
    overview = SqliteChainOverview(path)
    for _ in range(50):
        await overview.complete_record_count(CHAIN)
        sys.stdout.write("counted\n")
        sys.stdout.flush()
    await overview.close()


async def start_process(name: str, path: Path) -> Process:
    """Start a process that runs a function of this module; return it after its first line of output."""
    script = f"import asyncio, pathlib; from {MODULE} import *; asyncio.run({name})"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(path), stdout=PIPE, cwd=Path(__file__).parents[5], env=dict(os.environ)
    )
    assert process.stdout is not None
    assert await process.stdout.readline()
    return process


async def test_counts_are_exact_after_concurrent_appends_and_a_kill(tmp_path: Path) -> None:
    """Counts are exact although three processes append, two count, and one of each is killed."""
    path = tmp_path / "provenance.sqlite"
    await append_amendments(path, EARLIER)
    with closing(sqlite3.connect(path, autocommit=True)) as connection:
        connection.execute("DELETE FROM chain_summaries")
        connection.execute("DELETE FROM pending_amendments")
    file = f"pathlib.Path({str(path)!r})"
    names = [f"append_amendments({file}, {APPENDED})"] * 3 + [f"count_amendments({file})"] * 2
    processes = await asyncio.gather(*(start_process(name, path) for name in names))
    for killed in (processes[0], processes[3]):
        if killed.returncode is None:
            killed.send_signal(signal.SIGKILL)
    for process in processes:
        await process.communicate()
    assert processes[1].returncode == processes[2].returncode == processes[4].returncode == 0
    store, overview = SqliteChainStore(path), SqliteChainOverview(path)
    while await overview.list_chains_with_incomplete_counts(1):
        await overview.complete_record_count(CHAIN)
    [summary] = await overview.list_chains(None, None, 10)
    entries = await overview.list_pending_amendments(None, 1_000, 2**40)
    assert summary.pending == len(entries) == await overview.count_pending_amendments(CHAIN)
    assert summary.records >= EARLIER + EARLIER // 2 + 2 * (APPENDED + APPENDED // 2)
    assert (await ChainVerifier(store, get_workspace_id).verify(CHAIN)).chain_valid
    await overview.close()
    await store.close()
