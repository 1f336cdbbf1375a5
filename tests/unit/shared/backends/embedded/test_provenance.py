"""Tests of the audit log in SQLite with concurrent appends to one chain."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections import UserDict
from collections.abc import AsyncIterator, ItemsView
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.backends.embedded import provenance
from shared.backends.embedded.provenance import SqliteAuditLog
from shared.backends.embedded.provenance_schema import SCHEMA
from shared.backends.embedded.sqlite import connect
from shared.errors import Kind, WorkspaceError
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import ChainKey, Filters, LookupField, Target
from shared.provenance.verifier import ChainVerifier
from shared.runtime import Runtime
from tests.unit.shared.provenance.record_rules import find_first_fault

ROOT = Path(__file__).parents[5]
EVENT = {"ActionType": "A", "EntityType": "T", "EntityID": "1"}
PLATFORM = Target.PLATFORM_CONFIG
_PAGE_BYTES = 4_096


async def get_workspace_id() -> str:
    """Return the id of the workspace."""
    return "plant-a"


@pytest.fixture
async def audit_log(tmp_path: Path) -> AsyncIterator[SqliteAuditLog]:
    """Provide an empty audit log."""
    opened = SqliteAuditLog(tmp_path / "provenance.sqlite", get_workspace_id)
    yield opened
    await opened.close()


async def test_a_record_is_returned_as_stored(audit_log: SqliteAuditLog) -> None:
    """The returned record equals the stored record; the first record links to the genesis hash."""
    returned = await audit_log.append(PLATFORM, "admin", EVENT | {"AfterState": {"n": 1.0}}, append_id="a")
    assert [returned] == await audit_log.read_all_records(PLATFORM)
    assert (returned["RecordID"], returned["UserID"]) == ("000000000001", "admin")
    assert returned["PreviousHash"] == compute_genesis_hash("plant-a", "PlatformConfig")


async def test_each_target_and_scope_has_a_separate_chain(audit_log: SqliteAuditLog) -> None:
    """Each target and scope has its own chain, which begins with sequence number 1."""
    places = [(PLATFORM, ""), (Target.ACCESS_CONTROL, ""), (Target.DOMAIN_EVENTS, "s1"), (Target.DOMAIN_EVENTS, "s2")]
    for number in range(2):
        for target, scope in places:
            await audit_log.append(target, "u", EVENT, append_id=f"{target}{scope}{number}", scope_key=scope)
    for target, scope in places:
        records = await audit_log.read_all_records(target, scope)
        assert len(records) == 2
        assert find_first_fault(records, compute_genesis_hash("plant-a", target, scope)) is None


async def test_an_append_id_is_stored_once(audit_log: SqliteAuditLog) -> None:
    """Appending again with the same append id returns the first record and stores nothing."""
    first = await audit_log.append(PLATFORM, "admin", EVENT, append_id="same")
    again = await audit_log.append(PLATFORM, "admin", EVENT, append_id="same")
    assert again == first
    assert len(await audit_log.read_all_records(PLATFORM)) == 1


async def test_simultaneous_retries_are_stored_once(audit_log: SqliteAuditLog) -> None:
    """Concurrent retries with one append id return the same record."""
    records = await asyncio.gather(*(audit_log.append(PLATFORM, "admin", EVENT, append_id="same") for _ in range(8)))
    assert all(record == records[0] for record in records)
    assert len(await audit_log.read_all_records(PLATFORM)) == 1


async def test_timestamps_never_decrease(tmp_path: Path) -> None:
    """If the clock was set back, a new record gets the time of the last record."""
    at = datetime(2026, 1, 5, 8, tzinfo=UTC)
    log = SqliteAuditLog(tmp_path / "provenance.sqlite", get_workspace_id, runtime=Runtime(now=lambda: at))
    await log.append(PLATFORM, "u", EVENT, append_id="1")
    at -= timedelta(hours=1)
    await log.append(PLATFORM, "u", EVENT, append_id="2")
    at += timedelta(hours=2, microseconds=7)
    await log.append(PLATFORM, "u", EVENT, append_id="3")
    times = [record["Timestamp"] for record in await log.read_all_records(PLATFORM)]
    await log.close()
    assert times == ["2026-01-05T08:00:00.000000Z", "2026-01-05T08:00:00.000000Z", "2026-01-05T09:00:00.000007Z"]


async def test_a_rejected_event_leaves_no_gap_in_the_sequence(audit_log: SqliteAuditLog) -> None:
    """An event without a canonical form is rejected; the next event gets the next sequence number."""
    with pytest.raises(WorkspaceError):
        await audit_log.append(PLATFORM, "u", EVENT | {"AfterState": {"n": 2**60}}, append_id="1")
    record = await audit_log.append(PLATFORM, "u", EVENT, append_id="1")
    assert record["RecordID"] == "000000000001"


async def test_a_changed_row_is_detected(audit_log: SqliteAuditLog, tmp_path: Path) -> None:
    """If a row is changed in the file, verification reports a broken chain."""
    for number in range(3):
        await audit_log.append(PLATFORM, "u", EVENT, append_id=str(number))
    with sqlite3.connect(tmp_path / "provenance.sqlite") as file:
        file.execute(
            "UPDATE records SET canonical = CAST(replace(canonical, 'EntityID', 'EntityId') AS BLOB) WHERE sequence = 2"
        )
    file.close()
    fault = find_first_fault(await audit_log.read_all_records(PLATFORM), compute_genesis_hash("plant-a", PLATFORM))
    assert fault == "000000000002 does not match the digest of its content"


async def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    """If its file cannot be opened, an audit log raises UNAVAILABLE."""
    log = SqliteAuditLog(tmp_path, get_workspace_id)
    with pytest.raises(WorkspaceError) as caught:
        await log.append(PLATFORM, "u", EVENT, append_id="1")
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE")


@pytest.mark.parametrize("page_records", [1, 2, 3])
async def test_records_without_a_head_item_are_found_by_their_genesis_hash(
    audit_log: SqliteAuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_records: int
) -> None:
    """The records of a chain without a head item are read in pages; a chain that mentions its genesis hash is not."""
    monkeypatch.setattr(provenance, "_ORPHANS_PAGE", page_records)
    genesis = compute_genesis_hash("plant-a", PLATFORM)
    mention = EVENT | {"AfterState": {"PreviousHash": genesis}}
    await audit_log.append(Target.ACCESS_CONTROL, "u", mention, append_id="1")
    first = await audit_log.append(PLATFORM, "u", EVENT, append_id="2")
    second = await audit_log.append(PLATFORM, "u", EVENT, append_id="3")
    with closing(sqlite3.connect(tmp_path / "provenance.sqlite")) as file, file:
        file.execute("DELETE FROM chains")
    pages = [page async for page in audit_log.store.iterate_orphan_pages(genesis)]
    assert max(map(len, pages)) <= page_records
    assert [record.hash for page in pages for record in page] == [first["Hash"], second["Hash"]]
    assert not [page async for page in audit_log.store.iterate_orphan_pages("0" * 64)]


async def test_a_damaged_file_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If a page of its file is damaged, an audit log says so in errors without Retry-After, and logs the cause."""
    path = tmp_path / "provenance.sqlite"
    log = SqliteAuditLog(path, get_workspace_id)
    await log.append(PLATFORM, "u", EVENT | {"EntityID": "marker"}, append_id="1")
    await log.close()
    content = path.read_bytes()
    page = content.index(b"marker") // _PAGE_BYTES * _PAGE_BYTES
    path.write_bytes(content[:page] + b"\xff" * _PAGE_BYTES + content[page + _PAGE_BYTES :])
    log = SqliteAuditLog(path, get_workspace_id)
    for operation in (log.read_all_records(PLATFORM), log.append(PLATFORM, "u", EVENT, append_id="2")):
        caplog.clear()
        with pytest.raises(WorkspaceError) as caught:
            await operation
        assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE")
        assert caught.value.detail.startswith("The file of the audit log is damaged; ")
        assert caught.value.members == {"retryAfter": None}
        assert "the file of the audit log is damaged: database disk image is malformed" in caplog.text
    await log.close()


async def test_two_processes_append_to_one_chain(tmp_path: Path) -> None:
    """Concurrent appends of two processes store each event once, without gap or fork."""
    file = tmp_path / "provenance.sqlite"
    processes = [_start_process(file, name) for name in ("p1", "p2")]
    try:
        for process in processes:
            _start_appends(process)
        for process in processes:
            process.communicate(timeout=60)
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0]
    log = SqliteAuditLog(file, get_workspace_id)
    records = await log.read_all_records(PLATFORM)
    await log.close()
    assert find_first_fault(records, compute_genesis_hash("plant-a", PLATFORM)) is None
    events = {(record["EntityType"], record["EntityID"]) for record in records}
    assert events == {(f"{p}-{n}", str(e)) for p in ("p1", "p2") for n in range(8) for e in range(10)}
    assert len(records) == len(events)
    assert {record["UserID"][:2] for record in records[:100]} == {"p1", "p2"}


async def test_killed_processes_lose_no_acknowledged_event(tmp_path: Path) -> None:
    """If writers are killed, the chain is valid and has each acknowledged event once, also after retries."""
    file = tmp_path / "provenance.sqlite"
    answered: list[list[str]] = []
    for number in range(3):
        processes = [_start_process(file, name, "1000") for name in ("p1", "p2")]
        try:
            for process in processes:
                _start_appends(process)
            for process in processes:
                assert process.stdout is not None
                answered += [process.stdout.readline().split() for _ in range(150 * (number + 1))]
        finally:
            for process in processes:
                process.kill()
        for process in processes:
            rest, _ = process.communicate(timeout=60)
            answered += [line.split() for line in rest.splitlines() if len(line.split()) == 4 and len(line) > 80]
    log = SqliteAuditLog(file, get_workspace_id)
    records = await log.read_all_records(PLATFORM)
    verdict = await ChainVerifier(log.store, get_workspace_id).verify(ChainKey(PLATFORM))
    await log.close()
    assert verdict.chain_valid, verdict.reason
    events = [(record["EntityType"], record["EntityID"]) for record in records]
    assert len(events) == len(set(events))
    hashes = {record["RecordID"]: record["Hash"] for record in records}
    assert all(hashes[record_id] == stored for _, _, record_id, stored in answered)
    assert len(answered) >= 1_800


def _start_appends(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def _start_process(file: Path, name: str, count: str = "10") -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("append_process.py")), str(file), name, "8", count]
    process = subprocess.Popen(
        command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


class BlockingFilter(UserDict[str, str]):
    """Condition of a query; its evaluation sets the event ``begun``, and waits for the event ``released``."""

    def __init__(self) -> None:
        super().__init__(EntityID="1")
        self.begun, self.released = threading.Event(), threading.Event()

    def items(self) -> ItemsView[str, str]:
        """Return the condition when it is released."""
        self.begun.set()
        self.released.wait()
        return super().items()


async def test_look_ups_do_not_wait_for_queries(audit_log: SqliteAuditLog) -> None:
    """A look-up by append id, which appends need, does not wait until a query of the same file has ended."""
    await audit_log.append(PLATFORM, "u", EVENT, append_id="a")
    chain, condition = ChainKey(PLATFORM, ""), BlockingFilter()
    scan = asyncio.create_task(audit_log.store.scan(chain, Filters(equal=condition), limit=1, max_bytes=1_000))
    await asyncio.to_thread(condition.begun.wait)
    try:
        async with asyncio.timeout(30):
            (found,) = await audit_log.store.find(chain, LookupField.APPEND_ID, ["a"])
    finally:
        condition.released.set()
    assert (await scan).records == [found]


async def test_look_ups_do_not_wait_for_orphan_records(
    audit_log: SqliteAuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look-up by append id does not wait for the search for records of a chain without a head item."""
    await audit_log.append(PLATFORM, "u", EVENT, append_id="a")
    begun, released = threading.Event(), threading.Event()

    def search_until_released(*_: object) -> None:
        begun.set()
        released.wait()

    async def list_orphan_pages() -> list[object]:
        return [page async for page in audit_log.store.iterate_orphan_pages("0" * 64)]

    monkeypatch.setattr(provenance, "find_chain_number_of_orphans", search_until_released)
    search = asyncio.create_task(list_orphan_pages())
    await asyncio.to_thread(begun.wait)
    try:
        async with asyncio.timeout(30):
            assert await audit_log.store.find(ChainKey(PLATFORM, ""), LookupField.APPEND_ID, ["a"])
    finally:
        released.set()
    assert await search == []


async def test_a_file_of_an_earlier_layout_is_supported(tmp_path: Path) -> None:
    """Records in a table of an earlier version can still be read."""
    path = tmp_path / "provenance.sqlite"
    earlier = SCHEMA.replace("PRIMARY KEY (chain, sequence)\n);", "PRIMARY KEY (chain, sequence)\n) WITHOUT ROWID;")
    assert earlier != SCHEMA
    with closing(connect(path)) as connection:
        connection.executescript(earlier)
    opened = SqliteAuditLog(path, get_workspace_id)
    for number in range(3):
        await opened.append(PLATFORM, "u", EVENT, append_id=str(number))
    again = await opened.append(PLATFORM, "u", EVENT, append_id="1")
    assert again["RecordID"] == "000000000002"
    verdict = await ChainVerifier(opened.store, get_workspace_id).verify(ChainKey(PLATFORM))
    assert (verdict.chain_valid, verdict.empty, len(await opened.read_all_records(PLATFORM))) == (True, False, 3)
    await opened.close()
