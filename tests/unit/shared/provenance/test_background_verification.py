"""Tests of the background verification of all chains."""

import contextlib
import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.backends.embedded.provenance_overview import SqliteChainOverview
from shared.errors import Kind, WorkspaceError
from shared.provenance import background_verification
from shared.provenance.background_verification import BackgroundVerification, OnBroken
from shared.provenance.checkpoints import build_checkpoint_name
from shared.provenance.overview_ports import StoredVerdict
from shared.provenance.ports import ChainKey, Target
from shared.provenance.verifier import ChainVerdict, ChainVerifier, VerificationRun, store_verification_result
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339
from tests.unit.shared.provenance.chains import BATCH, PLATFORM, Ledger, get_workspace_id, open_ledger

OTHER = ChainKey(Target.DOMAIN_EVENTS, "other")


class RecordingVerifier:
    """Fake verifier that records which chains it verifies; each step takes one second of simulated time.

    The attribute ``failing`` maps the chains whose verification fails to the error that it raises.

    Args:
        verifier: the verifier that does the work.
    """

    def __init__(self, verifier: ChainVerifier) -> None:
        self._verifier = verifier
        self.started: list[ChainKey] = []
        self.failing: dict[ChainKey, Exception] = {}
        self.seconds = 0.0

    async def start(self, chain: ChainKey) -> VerificationRun:
        """Record the chain and start its verification, or raise an error for a chain in ``failing``."""
        self.started.append(chain)
        if chain in self.failing:
            self.seconds += 1
            raise self.failing[chain]
        return await self._verifier.start(chain)

    async def verify_next_records_and_check_end(self, run: VerificationRun, max_records: int) -> bool:
        """Verify the next records."""
        self.seconds += 1
        return await self._verifier.verify_next_records_and_check_end(run, max_records)

    async def finish(self, run: VerificationRun) -> Any:
        """End the verification."""
        return await self._verifier.finish(run)

    async def repair_subtree_roots(self, run: VerificationRun, verdict: ChainVerdict) -> None:
        """Repair the cached subtree roots of the chain."""
        await self._verifier.repair_subtree_roots(run, verdict)


class VerificationParts:
    """Chains with their overview, their stored verification results and their background verification."""

    def __init__(self, ledger: Ledger, overview: SqliteChainOverview, seconds: float = 600) -> None:
        self.ledger = ledger
        self.overview = overview
        self.recorder = RecordingVerifier(ledger.verifier)
        self.background = self.open(seconds)

    def open(self, seconds: float = 600, on_broken: OnBroken | None = None) -> BackgroundVerification:
        """Return the background verification of a new process."""
        recorder: Any = self.recorder
        runtime = Runtime(monotonic=lambda: self.recorder.seconds)
        return BackgroundVerification(
            self.overview, recorder, self.ledger.checkpoints, seconds=seconds, on_broken=on_broken, runtime=runtime
        )

    async def verdicts(self) -> dict[ChainKey, StoredVerdict | None]:
        """Return the stored verification result of each chain."""
        return {one.chain: one.verdict for one in await self.overview.list_chains(None, None, 100)}


async def run_in_new_period(background: BackgroundVerification) -> bool:
    """Start a run in a period that begins now."""
    return await background.try_verify_due_chains(SYSTEM_RUNTIME.now())


@pytest.fixture
async def verification_parts(tmp_path: Path) -> AsyncIterator[VerificationParts]:
    """Provide three chains with five records each."""
    overview = SqliteChainOverview(tmp_path / "provenance.sqlite")
    async with open_ledger(tmp_path) as ledger:
        for chain in (PLATFORM, BATCH, OTHER):
            await ledger.fill(chain, 5)
        yield VerificationParts(ledger, overview)
    await overview.close()


async def test_only_chains_that_grew_are_verified(verification_parts: VerificationParts) -> None:
    """Each chain is verified once, and again after it has grown; the results are stored."""
    assert await run_in_new_period(verification_parts.background)
    assert sorted(verification_parts.recorder.started) == sorted((PLATFORM, BATCH, OTHER))
    for verdict in (await verification_parts.verdicts()).values():
        assert verdict is not None
        assert (verdict.is_valid, verdict.records, verdict.broken_at) == (True, 5, "")
    assert await run_in_new_period(verification_parts.background)
    assert len(verification_parts.recorder.started) == 3
    await verification_parts.ledger.fill(BATCH, 1)
    assert await run_in_new_period(verification_parts.background)
    assert verification_parts.recorder.started[3:] == [BATCH]


async def test_a_broken_chain_is_stored_and_verified_again(verification_parts: VerificationParts) -> None:
    """A broken chain is stored with position and reason, and verified in each period until it is valid."""
    verification_parts.ledger.tamper(
        lambda file: file.execute("UPDATE records SET hash = upper(hash) WHERE sequence = 3")
    )
    for _ in range(2):
        verification_parts.recorder.started.clear()
        assert await run_in_new_period(verification_parts.background)
        assert len(verification_parts.recorder.started) == 3
        for verdict in (await verification_parts.verdicts()).values():
            assert verdict is not None
            assert (verdict.is_valid, verdict.broken_at) == (False, "000000000003")
            assert verdict.reason
    verification_parts.ledger.tamper(
        lambda file: file.execute("UPDATE records SET hash = lower(hash) WHERE sequence = 3")
    )
    assert await run_in_new_period(verification_parts.background)
    assert all(verdict is not None and verdict.is_valid for verdict in (await verification_parts.verdicts()).values())


async def test_the_chain_with_the_oldest_verification_is_first(verification_parts: VerificationParts) -> None:
    """Chains that were never verified are verified first, then all others, beginning with the oldest verification."""
    for chain, hour in ((PLATFORM, "09"), (OTHER, "08")):
        at = f"2026-01-05T{hour}:00:00.000000Z"
        await verification_parts.overview.save_verdict(chain, StoredVerdict(at, 4, is_valid=True), at)
    assert await run_in_new_period(verification_parts.background)
    assert verification_parts.recorder.started == [BATCH, OTHER, PLATFORM]


async def test_a_verification_run_continues_where_the_last_one_stopped(
    verification_parts: VerificationParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of the verification stops at its time limit, even within a chain; the next run continues at this point."""
    monkeypatch.setattr(background_verification, "STEP_RECORDS", 2)
    background, period_start = verification_parts.open(seconds=2), SYSTEM_RUNTIME.now()
    runs = 1
    while not await background.try_verify_due_chains(period_start):
        runs += 1
    assert runs == 5
    assert len(verification_parts.recorder.started) == 3
    assert all(verdict is not None and verdict.is_valid for verdict in (await verification_parts.verdicts()).values())
    verification_parts.recorder.started.clear()
    await verification_parts.ledger.fill(BATCH, 1)
    period_start = SYSTEM_RUNTIME.now()
    assert not await background.try_verify_due_chains(period_start)
    assert await verification_parts.open().try_verify_due_chains(period_start)
    assert verification_parts.recorder.started == [BATCH, BATCH]


async def test_a_period_begins_for_all_processes_at_the_same_time(verification_parts: VerificationParts) -> None:
    """A process that began a period verifies all grown chains in the next one, if another process ended the period."""
    first, second = verification_parts.open(seconds=1), verification_parts.open()
    period_start = SYSTEM_RUNTIME.now()
    assert not await first.try_verify_due_chains(period_start)
    assert await second.try_verify_due_chains(period_start)
    for chain in (PLATFORM, BATCH, OTHER):
        await verification_parts.ledger.fill(chain, 1)
    verification_parts.recorder.started.clear()
    period_start = SYSTEM_RUNTIME.now()
    while not await first.try_verify_due_chains(period_start):
        pass
    assert sorted(verification_parts.recorder.started) == sorted((PLATFORM, BATCH, OTHER))
    assert {one.records for one in (await verification_parts.verdicts()).values() if one} == {6}


async def test_an_unfinished_verification_is_discarded_if_another_one_has_ended(
    verification_parts: VerificationParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result of an older verification never replaces that of a newer one by another process."""
    monkeypatch.setattr(background_verification, "STEP_RECORDS", 2)
    background, period_start = verification_parts.open(seconds=1), SYSTEM_RUNTIME.now()
    assert not await background.try_verify_due_chains(period_start)
    [unfinished] = verification_parts.recorder.started
    await verification_parts.ledger.fill(unfinished, 1)
    assert await verification_parts.open().try_verify_due_chains(period_start)
    assert await background.try_verify_due_chains(period_start)
    assert verification_parts.recorder.started.count(unfinished) == 2
    verdict = (await verification_parts.verdicts())[unfinished]
    assert verdict is not None
    assert (verdict.is_valid, verdict.records) == (True, 6)


class BrokenChainLog:
    """Record of the chains that are reported as broken."""

    def __init__(self) -> None:
        self.reported: list[ChainKey] = []
        self.periods: list[str] = []

    async def report(self, chain: ChainKey, _broken_at: str, _reason: str, period_start: str) -> None:
        """Record a broken chain and the start of the period."""
        self.reported.append(chain)
        self.periods.append(period_start)


async def find_broken_by_request(parts: VerificationParts, chain: ChainKey) -> None:
    """Verify a broken chain as a request does, which stores the result."""
    verifier = ChainVerifier(parts.ledger.store, get_workspace_id, parts.ledger.checkpoints, parts.overview)
    assert not (await verifier.verify(chain)).chain_valid


async def test_an_unfinished_verification_does_not_delay_the_report_of_a_broken_chain(
    verification_parts: VerificationParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain that a request found broken during its verification in the background is reported in the same period."""
    monkeypatch.setattr(background_verification, "STEP_RECORDS", 2)
    log = BrokenChainLog()
    background, period_start = verification_parts.open(1, log.report), SYSTEM_RUNTIME.now()
    assert not await background.try_verify_due_chains(period_start)
    [unfinished] = verification_parts.recorder.started
    verification_parts.ledger.tamper(
        lambda file: file.execute("UPDATE records SET hash = upper(hash) WHERE sequence = 5")
    )
    await find_broken_by_request(verification_parts, unfinished)
    while not await background.try_verify_due_chains(period_start):
        pass
    assert sorted(log.reported) == sorted((PLATFORM, BATCH, OTHER))


async def test_a_chain_that_a_request_found_broken_is_reported(verification_parts: VerificationParts) -> None:
    """If a request finds a chain broken before its turn or after it, the chain is reported once in each period."""
    log = BrokenChainLog()
    background, period_start = verification_parts.open(on_broken=log.report), SYSTEM_RUNTIME.now()
    sql = (
        "UPDATE records SET hash = upper(hash) WHERE chain = (SELECT chain FROM chains WHERE target = ? AND scope = ?)"
    )
    verification_parts.ledger.tamper(lambda file: file.execute(sql, tuple(BATCH)))
    await find_broken_by_request(verification_parts, BATCH)
    assert await background.try_verify_due_chains(period_start)
    assert log.reported == [BATCH]
    assert BATCH not in verification_parts.recorder.started
    verification_parts.ledger.tamper(lambda file: file.execute(sql, tuple(OTHER)))
    await find_broken_by_request(verification_parts, OTHER)
    for _ in range(2):
        assert await background.try_verify_due_chains(period_start)
        assert log.reported == [BATCH, OTHER]
    assert await run_in_new_period(background)
    assert log.reported == [BATCH, OTHER, BATCH, OTHER]


async def test_another_process_repeats_the_reports_of_a_period(verification_parts: VerificationParts) -> None:
    """A process that continues a period reports its broken chains again, with the same start of the period."""
    log, period_start = BrokenChainLog(), SYSTEM_RUNTIME.now()
    verification_parts.ledger.tamper(lambda file: file.execute("UPDATE records SET hash = upper(hash)"))
    for _ in range(2):
        assert await verification_parts.open(on_broken=log.report).try_verify_due_chains(period_start)
    assert sorted(log.reported) == sorted([PLATFORM, BATCH, OTHER] * 2)
    assert set(log.periods) == {format_rfc3339(period_start)}


async def test_a_failed_report_stops_no_other_report(
    verification_parts: VerificationParts, caplog: pytest.LogCaptureFixture
) -> None:
    """If the report of a chain that a request found broken fails, it is logged, and the other chains are reported."""
    log = BrokenChainLog()

    async def fail_for_batch(chain: ChainKey, broken_at: str, reason: str, period_start: str) -> None:
        if chain == BATCH:
            raise WorkspaceError(Kind.UNAVAILABLE, "WEBHOOKS_UNAVAILABLE", "down")
        await log.report(chain, broken_at, reason, period_start)

    period_start = SYSTEM_RUNTIME.now()
    verification_parts.ledger.tamper(lambda file: file.execute("UPDATE records SET hash = upper(hash)"))
    for chain in (PLATFORM, BATCH, OTHER):
        await find_broken_by_request(verification_parts, chain)
    background = verification_parts.open(on_broken=fail_for_batch)
    with pytest.raises(WorkspaceError):
        await background.try_verify_due_chains(period_start)
    assert sorted(log.reported) == sorted((PLATFORM, OTHER))
    assert "a broken audit chain could not be reported: down" in caplog.messages


async def test_a_failed_report_is_repeated_without_another_verification(verification_parts: VerificationParts) -> None:
    """If the report of a broken chain fails, a later run of the period repeats the report, but not the verification."""
    log, period_start = BrokenChainLog(), SYSTEM_RUNTIME.now()
    is_available = False

    async def report_if_available(chain: ChainKey, broken_at: str, reason: str, period_start: str) -> None:
        if not is_available:
            raise WorkspaceError(Kind.UNAVAILABLE, "WEBHOOKS_UNAVAILABLE", "down")
        await log.report(chain, broken_at, reason, period_start)

    verification_parts.ledger.tamper(lambda file: file.execute("UPDATE records SET hash = upper(hash)"))
    background = verification_parts.open(on_broken=report_if_available)
    with pytest.raises(WorkspaceError, match="down"):
        await background.try_verify_due_chains(period_start)
    is_available = True
    assert await background.try_verify_due_chains(period_start)
    assert sorted(log.reported) == sorted((PLATFORM, BATCH, OTHER))
    assert len(verification_parts.recorder.started) == 3


@pytest.mark.parametrize("seconds", [1, 2])
async def test_a_verification_from_an_earlier_period_is_completed_and_repeated(
    verification_parts: VerificationParts, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """A verification that continues in the next period covers no new records, so the chain is verified once more."""
    monkeypatch.setattr(background_verification, "STEP_RECORDS", 2)
    background = verification_parts.open(seconds)
    assert not await run_in_new_period(background)
    [unfinished] = verification_parts.recorder.started
    await verification_parts.ledger.fill(unfinished, 1)
    period_start = SYSTEM_RUNTIME.now()
    while not await background.try_verify_due_chains(period_start):
        pass
    started = verification_parts.recorder.started
    assert (len(started), started.count(unfinished)) == (4, 2)
    verdict = (await verification_parts.verdicts())[unfinished]
    assert verdict is not None
    assert (verdict.is_valid, verdict.records) == (True, 6)


async def test_a_fault_is_stored_at_the_end_of_a_verification_from_an_earlier_period(
    verification_parts: VerificationParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault is not replaced by the valid result of a verification that began before the fault was found."""
    monkeypatch.setattr(background_verification, "STEP_RECORDS", 2)
    background = verification_parts.open(seconds=1)
    assert not await run_in_new_period(background)
    [unfinished] = verification_parts.recorder.started
    ledger = verification_parts.ledger
    other = await ledger.verifier.start(unfinished)
    assert await ledger.verifier.verify_next_records_and_check_end(other, 5)
    valid = await ledger.verifier.finish(other)
    ledger.tamper(lambda file: file.execute("UPDATE records SET hash = upper(hash) WHERE sequence = 5"))
    period_start = SYSTEM_RUNTIME.now()
    while (await verification_parts.verdicts())[unfinished] is None:
        await background.try_verify_due_chains(period_start)
    await store_verification_result(verification_parts.overview, other, valid, format_rfc3339(SYSTEM_RUNTIME.now()))
    verdict = (await verification_parts.verdicts())[unfinished]
    assert verdict is not None
    assert (valid.chain_valid, verdict.is_valid) == (True, False)


async def test_a_chain_that_grew_after_its_verification_waits_for_the_next_period(
    verification_parts: VerificationParts,
) -> None:
    """If a chain grows after its verification, it is verified again in the next period."""
    background, period_start = verification_parts.open(seconds=1), SYSTEM_RUNTIME.now()
    assert not await background.try_verify_due_chains(period_start)
    (first,) = verification_parts.recorder.started
    await verification_parts.ledger.fill(first, 1)
    while not await background.try_verify_due_chains(period_start):
        pass
    assert len(verification_parts.recorder.started) == 3
    assert await run_in_new_period(background)
    assert verification_parts.recorder.started[3:] == [first]


@pytest.mark.parametrize(
    "error", [WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "down"), AttributeError("startswith")]
)
async def test_an_error_does_not_stop_other_chains(
    verification_parts: VerificationParts,
    error: Exception,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If verifying a chain raises any error, others are verified, and this one later; only an outage is a warning."""
    counted: list[object] = []
    monkeypatch.setattr(
        background_verification, "count", lambda name, **attributes: counted.append((name, attributes.get("cause")))
    )
    verification_parts.recorder.failing[BATCH] = error
    with contextlib.suppress(WorkspaceError):
        assert await run_in_new_period(verification_parts.background)
    [logged] = [one for one in caplog.records if "could not be verified" in one.getMessage()]
    is_outage = isinstance(error, WorkspaceError)
    assert logged.levelname == ("WARNING" if is_outage else "ERROR")
    assert ("workspace.chain.verify.failures", "outage" if is_outage else "error") in counted
    verdicts = await verification_parts.verdicts()
    assert verdicts[BATCH] is None
    assert verdicts[PLATFORM] is not None
    assert verdicts[OTHER] is not None
    verification_parts.recorder.failing.clear()
    assert await run_in_new_period(verification_parts.background)
    assert (await verification_parts.verdicts())[BATCH] is not None


async def test_chains_are_verified_in_the_same_period_after_an_outage(verification_parts: VerificationParts) -> None:
    """If the store does not respond during a run, the run fails, and the next run of the period verifies the rest."""
    background, period_start = verification_parts.background, SYSTEM_RUNTIME.now()
    outage = WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "The audit log does not respond; retry later.")
    verification_parts.recorder.failing = {BATCH: outage, OTHER: outage}
    with pytest.raises(WorkspaceError) as caught:
        await background.try_verify_due_chains(period_start)
    assert caught.value is outage
    verification_parts.recorder.failing.clear()
    verification_parts.recorder.started.clear()
    assert await background.try_verify_due_chains(period_start)
    assert sorted(verification_parts.recorder.started) == sorted((BATCH, OTHER))


async def test_failed_chains_do_not_delay_the_others(verification_parts: VerificationParts) -> None:
    """Chains that failed are tried again after all others; if only they remain, the run fails, although time is up."""
    background, period_start = verification_parts.open(seconds=2), SYSTEM_RUNTIME.now()
    outage = WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "The audit log does not respond; retry later.")
    recorder = verification_parts.recorder
    recorder.failing = dict.fromkeys(sorted((PLATFORM, BATCH, OTHER))[:2], outage)
    healthy = max(PLATFORM, BATCH, OTHER)
    assert not await background.try_verify_due_chains(period_start)
    assert recorder.started == [*recorder.failing]
    with pytest.raises(WorkspaceError) as caught:
        await background.try_verify_due_chains(period_start)
    assert caught.value is outage
    assert recorder.started[2:] == [healthy, min(recorder.failing)]


async def test_interrupted_chains_take_turns(verification_parts: VerificationParts) -> None:
    """Of the chains that an outage interrupted, the one that was tried least recently is first, so each has a turn."""
    background, period_start = verification_parts.open(seconds=2), SYSTEM_RUNTIME.now()
    outage = WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "The audit log does not respond; retry later.")
    first, second, third = sorted((PLATFORM, BATCH, OTHER))
    verification_parts.recorder.failing = dict.fromkeys((first, second, third), outage)
    for _ in range(3):
        with contextlib.suppress(WorkspaceError):
            await background.try_verify_due_chains(period_start)
    assert verification_parts.recorder.started == [first, second, third, first, second, third]


async def test_chains_that_failed_without_an_outage_wait_for_the_next_period(
    verification_parts: VerificationParts,
) -> None:
    """A chain whose verification failed without an outage is tried once in a period, also if its runs have no time."""
    background, period_start = verification_parts.open(seconds=1), SYSTEM_RUNTIME.now()
    chains, recorder = sorted((PLATFORM, BATCH, OTHER)), verification_parts.recorder
    recorder.failing = dict.fromkeys(chains, AttributeError("startswith"))
    assert [await background.try_verify_due_chains(period_start) for _ in chains] == [False, False, True]
    assert recorder.started == chains
    recorder.failing.clear()
    while not await run_in_new_period(background):
        pass
    assert all((await verification_parts.verdicts()).values())


async def test_an_outage_of_the_checkpoint_store_does_not_hide_a_deleted_chain(
    verification_parts: VerificationParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If deleted chains cannot be searched, the run verifies the others and then fails, so that it is repeated."""

    async def fail(*_: object) -> Any:
        raise WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", "down")

    monkeypatch.setattr(verification_parts.ledger.checkpoints, "find_checkpointed_chains_except", fail)
    with pytest.raises(WorkspaceError, match="down"):
        await run_in_new_period(verification_parts.background)
    assert sorted(verification_parts.recorder.started) == sorted((PLATFORM, BATCH, OTHER))


async def test_a_damaged_chain_does_not_repeat_the_run(verification_parts: VerificationParts) -> None:
    """A chain whose verification no retry can complete waits for the next period, because it may take long."""
    damaged = WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "The file is damaged.", retryAfter=None)
    verification_parts.recorder.failing[BATCH] = damaged
    assert await run_in_new_period(verification_parts.background)


@pytest.mark.parametrize(
    ("edit", "verified"),
    [
        ("UPDATE chain_summaries SET verified_at = x'00'", {PLATFORM, BATCH, OTHER}),
        ("UPDATE chain_summaries SET verified_records = 'many'", {PLATFORM, BATCH, OTHER}),
        ("UPDATE chain_summaries SET verified_at = 'zzz'", {PLATFORM, BATCH, OTHER}),
        ("UPDATE chain_summaries SET verified_at = '9999-01-01T00:00:00.000000Z'", {PLATFORM, BATCH, OTHER}),
        ("UPDATE chains SET scope = x'00' WHERE target = 'PlatformConfig'", {BATCH, OTHER}),
    ],
)
async def test_an_edited_row_does_not_stop_the_verification(
    verification_parts: VerificationParts, edit: str, verified: set[ChainKey]
) -> None:
    """If a writer to the store edits a stored verdict or the scope of a chain, all other chains are still verified."""
    assert await run_in_new_period(verification_parts.background)
    verification_parts.ledger.tamper(lambda file: file.execute(edit))
    for chain in (BATCH, OTHER):
        await verification_parts.ledger.fill(chain, 1)
    verification_parts.recorder.started.clear()
    assert await run_in_new_period(verification_parts.background)
    assert set(verification_parts.recorder.started) == verified


async def test_a_fault_with_a_time_in_the_future_is_verified_again(verification_parts: VerificationParts) -> None:
    """If a stored fault of a valid chain has a time in the future, the next period replaces it by the valid result."""
    assert await run_in_new_period(verification_parts.background)
    edit = "UPDATE chain_summaries SET is_valid = 0, verified_at = ?, broken_at = 'x', reason = 'x'"
    future = format_rfc3339(SYSTEM_RUNTIME.now() + timedelta(days=3))
    verification_parts.ledger.tamper(lambda file: file.execute(edit, (future,)))
    assert await run_in_new_period(verification_parts.background)
    assert all(verdict is not None and verdict.is_valid for verdict in (await verification_parts.verdicts()).values())


async def test_a_verdict_with_a_time_in_the_future_does_not_discard_an_unfinished_verification(
    verification_parts: VerificationParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verification that takes several runs continues, although its chain's stored verdict is from the future."""
    assert await run_in_new_period(verification_parts.background)
    edit = "UPDATE chain_summaries SET verified_at = '9999-01-01T00:00:00.000000Z'"
    verification_parts.ledger.tamper(lambda file: file.execute(edit))
    monkeypatch.setattr(background_verification, "STEP_RECORDS", 2)
    background, period_start = verification_parts.open(seconds=1), SYSTEM_RUNTIME.now()
    verification_parts.recorder.started.clear()
    assert not await background.try_verify_due_chains(period_start)
    assert not await background.try_verify_due_chains(period_start)
    assert len(verification_parts.recorder.started) == 1


@pytest.mark.parametrize("tables", [("chains",), ("chains", "records", "chain_summaries")])
async def test_a_deleted_chain_with_checkpoints_is_broken(
    verification_parts: VerificationParts, tables: tuple[str, ...]
) -> None:
    """If a chain or its head item is deleted, its checkpoint makes the verification find it, until it is restored."""
    for chain in (PLATFORM, BATCH, OTHER):
        await verification_parts.ledger.checkpoints.create_if_grown(chain)
    assert await run_in_new_period(verification_parts.background)

    def delete_chain(file: sqlite3.Connection) -> None:
        sql = "SELECT chain FROM chains WHERE scope = ?"
        [[number]] = file.execute(sql, (BATCH.scope_key,)).fetchall()
        for table in tables:
            file.execute(f"CREATE TABLE saved_{table} AS SELECT * FROM {table} WHERE chain = ?", (number,))
            file.execute(f"DELETE FROM {table} WHERE chain = ?", (number,))

    def restore_chain(file: sqlite3.Connection) -> None:
        for table in tables:
            file.execute(f"INSERT INTO {table} SELECT * FROM saved_{table}")

    verification_parts.ledger.tamper(delete_chain)
    for _ in range(2):
        verification_parts.recorder.started.clear()
        assert await run_in_new_period(verification_parts.background)
        assert verification_parts.recorder.started == [BATCH]
        verdict = (await verification_parts.verdicts())[BATCH]
        assert verdict is not None
        assert (verdict.is_valid, verdict.records) == (False, 0)
        broken = await verification_parts.overview.list_chains(None, None, 10, broken_only=True)
        assert [one.chain for one in broken] == [BATCH]
    verification_parts.ledger.tamper(restore_chain)
    assert await run_in_new_period(verification_parts.background)
    assert await run_in_new_period(verification_parts.background)
    assert all(verdict is not None and verdict.is_valid for verdict in (await verification_parts.verdicts()).values())
    assert await verification_parts.overview.list_chains(None, None, 10, broken_only=True) == []


@pytest.mark.parametrize(
    ("sizes", "is_found"), [((6,), True), ((6, 7, 1_000, 1_000_000), True), (range(6, 25), True), (range(6, 26), False)]
)
async def test_a_note_that_is_no_checkpoint_does_not_hide_a_deleted_chain(
    verification_parts: VerificationParts, sizes: Sequence[int], caplog: pytest.LogCaptureFixture, *, is_found: bool
) -> None:
    """The scope of a deleted chain is read from its last 20 notes; if none of them names it, this is an error."""
    await verification_parts.ledger.checkpoints.create_if_grown(BATCH)
    notes = FileCheckpointStore(verification_parts.ledger.folder / "checkpoints")
    for size in sizes:
        await notes.create_if_missing(build_checkpoint_name(BATCH, size), b"x")

    def delete_chain(file: sqlite3.Connection) -> None:
        [[number]] = file.execute("SELECT chain FROM chains WHERE scope = ?", (BATCH.scope_key,)).fetchall()
        for table in ("chains", "records", "chain_summaries"):
            file.execute(f"DELETE FROM {table} WHERE chain = ?", (number,))

    verification_parts.ledger.tamper(delete_chain)
    assert await run_in_new_period(verification_parts.background)
    broken = await verification_parts.overview.list_chains(None, None, 10, broken_only=True)
    assert [one.chain for one in broken] == ([BATCH] if is_found else [])
    assert ("no note in a folder of checkpoints names the folder's chain" in caplog.text) is not is_found


async def test_a_checkpoint_of_another_chain_in_a_folder_is_reported(
    verification_parts: VerificationParts, caplog: pytest.LogCaptureFixture
) -> None:
    """A checkpoint in the folder of an unknown chain that does not name this chain is logged and not verified."""
    await verification_parts.ledger.checkpoints.create_if_grown(BATCH)
    [folder] = (verification_parts.ledger.folder / "checkpoints" / "DomainEvents").iterdir()
    shutil.copytree(folder, folder.with_name("0" * 40))
    assert await run_in_new_period(verification_parts.background)
    assert sorted(verification_parts.recorder.started) == sorted((PLATFORM, BATCH, OTHER))
    assert "no note in a folder of checkpoints names the folder's chain" in caplog.text


async def test_an_unfinished_run_stays_unfinished_if_broken_chains_cannot_be_listed(
    verification_parts: VerificationParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the broken chains cannot be listed, an unfinished run stays unfinished, and the last run of a period fails."""
    list_chains = verification_parts.overview.list_chains

    async def fail_for_broken_chains(*args: Any, **options: Any) -> Any:
        if options.get("broken_only"):
            raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "")
        return await list_chains(*args, **options)

    monkeypatch.setattr(verification_parts.overview, "list_chains", fail_for_broken_chains)
    period_start = SYSTEM_RUNTIME.now()
    assert not await verification_parts.open(seconds=1).try_verify_due_chains(period_start)
    with pytest.raises(WorkspaceError):
        await verification_parts.open().try_verify_due_chains(period_start)
    assert sorted(verification_parts.recorder.started) == sorted((PLATFORM, BATCH, OTHER))
