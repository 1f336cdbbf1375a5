"""Tests of records at invalid sequence numbers: verification reports them, reads omit them, appends fail."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from shared.http.problems import build_error_headers
from shared.provenance.amendments import Amendments, AmendmentState
from shared.provenance.hash_rule import format_record_id
from shared.provenance.parallel_verification import DEFAULT_PARALLEL
from shared.provenance.ports import ChainKey, Filters, LookupField, Target
from shared.provenance.queries import AmendmentFilters, export_records, query_amendments, query_records
from tests.unit.shared.provenance.chains import (
    BATCH,
    PLATFORM,
    Ledger,
    build_event,
    build_parallel_options,
    open_ledger,
)
from tests.unit.shared.provenance.test_chain_verification import AMENDMENT, POLICY

COUNT = 6
AMENDMENTS = ChainKey(Target.DOMAIN_AMENDMENTS, "s")
OTHERS = "canonical, hash, timestamp, user_id, action_type, entity_type, entity_id, reason_category"


@pytest.fixture(
    params=[DEFAULT_PARALLEL, build_parallel_options(1), build_parallel_options(4)], ids=["whole", "by1", "by4"]
)
async def ledger(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Ledger]:
    """Provide a chain of six records and a second chain, once for serial and once for parallel verification."""
    async with open_ledger(tmp_path, request.param) as opened:
        await opened.fill(PLATFORM, COUNT)
        await opened.fill(BATCH, 2)
        yield opened


def copy_first_record_to(
    invalid_sequence: str, chain: ChainKey = PLATFORM, **fields: str
) -> Callable[[sqlite3.Connection], Any]:
    """Return a function that copies the first record of a chain to an invalid sequence number."""
    forged = {"status": "status", "amendment_id": "amendment_id"} | fields
    sql = (
        f"INSERT INTO records (chain, sequence, append_id, {OTHERS}, status, amendment_id) "
        f"SELECT chain, {invalid_sequence}, 'forged', {OTHERS}, {forged['status']}, "
        f"{forged['amendment_id']} FROM records WHERE sequence = 1 AND chain = "
        "(SELECT chain FROM chains WHERE target = ? AND scope = ?)"
    )

    def work(connection: sqlite3.Connection) -> None:
        # Files of earlier versions lack this constraint, and forgery can remove it.
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.execute(sql, (chain.target, chain.scope_key))

    return work


WITHIN = {"0": 1, "-3": 1, "0.5": 1, "-9e999": 1, "1.5": 2, "3.5": 4, "4.5": 5, "5.999": 6}
PAST = ("6.5", "50.5", "9e999", "'zzz'", "x'00'", "9e18", "1000000000000")
PLACES = WITHIN | dict.fromkeys(PAST, COUNT + 1)


@pytest.mark.parametrize("place", PLACES)
async def test_a_misplaced_record_is_found(ledger: Ledger, place: str) -> None:
    """A record at an invalid sequence number is reported by the next RecordID and left out of reads."""
    sound = await ledger.records(PLATFORM)
    ledger.tamper(copy_first_record_to(place))
    for named in (None, 1):
        verdict = await ledger.verify(PLATFORM, named)
        assert (verdict.chain_valid, verdict.empty, verdict.fork_detected) == (False, False, False)
        assert verdict.broken_at == format_record_id(PLACES[place])
        assert "with an invalid sequence" in verdict.reason
    assert (await ledger.verify(BATCH)).chain_valid
    for filters in (Filters(), Filters(start="2020-01-01T00:00:00Z", end="2999-01-01T00:00:00Z")):
        for read in (query_records, export_records):
            found = await read(ledger.store, PLATFORM, filters)
            assert sorted(record.sequence for record in found.records) == list(range(1, COUNT + 1))
    assert await ledger.records(PLATFORM) == sound
    assert await ledger.store.find(PLATFORM, LookupField.APPEND_ID, ["forged"]) == []
    assert len(await ledger.store.read_hashes(PLATFORM, 0, limit=99)) == COUNT


@pytest.mark.parametrize("place", ["0", "-3", "0.5", *PAST])
async def test_appends_after_a_misplaced_record_are_rejected(ledger: Ledger, place: str) -> None:
    """While a record has an invalid sequence number, appends are rejected, and no Retry-After suggests a retry."""
    ledger.tamper(copy_first_record_to(place))
    with pytest.raises(WorkspaceError) as refusal:
        await ledger.events.append_to_chain(PLATFORM, "editor", build_event(9))
    assert (refusal.value.kind, refusal.value.code) == (Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE")
    assert "Retry-After" not in build_error_headers(refusal.value)
    assert "an operator must verify the chain" in refusal.value.detail
    ledger.tamper(lambda file: file.execute("DELETE FROM records WHERE append_id = 'forged'"))
    await ledger.events.append_to_chain(PLATFORM, "editor", build_event(9))
    assert (await ledger.verify(PLATFORM)).chain_valid


async def test_the_first_fault_is_reported(ledger: Ledger) -> None:
    """If a chain has several faults, verification reports the first."""
    ledger.tamper(copy_first_record_to("3.5"))
    chain = "chain = (SELECT chain FROM chains WHERE target = 'PlatformConfig')"
    ledger.tamper(lambda file: file.execute(f"UPDATE records SET user_id = 'x' WHERE sequence = 5 AND {chain}"))
    assert (await ledger.verify(PLATFORM)).broken_at == format_record_id(4)
    ledger.tamper(lambda file: file.execute(f"UPDATE records SET user_id = 'x' WHERE sequence = 2 AND {chain}"))
    assert (await ledger.verify(PLATFORM)).broken_at == format_record_id(2)


async def test_a_record_after_the_head_item_is_reported_first(ledger: Ledger) -> None:
    """A record after the head item is reported before a record at an invalid sequence number."""
    ledger.tamper(copy_first_record_to("7"))
    ledger.tamper(lambda file: file.execute("UPDATE records SET append_id = 'past' WHERE append_id = 'forged'"))
    ledger.tamper(copy_first_record_to("'zzz'"))
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.broken_at) == (False, format_record_id(COUNT + 1))


@pytest.mark.parametrize("place", ["0", "-3", "0.5", "1.5", "2.5", "'zzz'"])
async def test_a_misplaced_decision_has_no_effect(ledger: Ledger, place: str) -> None:
    """A decision at an invalid sequence number is reported and has no effect; a further, valid decision is rejected."""
    amendments = Amendments(ledger.events.log, ledger.store)
    for _ in range(2):
        await amendments.create(AMENDMENTS, "maker", AMENDMENT, POLICY)
    ledger.tamper(copy_first_record_to(place, AMENDMENTS, status="'approved'", amendment_id=f"'{format_record_id(1)}'"))
    wanted = AmendmentFilters(status=AmendmentState.PENDING)
    pending = await query_amendments(ledger.store, ledger.overview, AMENDMENTS, wanted)
    assert [record.sequence for record in pending.records] == [2, 1]
    wanted = AmendmentFilters(status=AmendmentState.APPROVED)
    approved = await query_amendments(ledger.store, ledger.overview, AMENDMENTS, wanted)
    assert approved.records == []
    assert not (await ledger.verify(AMENDMENTS)).chain_valid
    with pytest.raises(WorkspaceError) as refusal:
        await amendments.approve(AMENDMENTS, format_record_id(1), "checker")
    assert (refusal.value.kind, refusal.value.code) == (Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE")


@pytest.mark.parametrize("place", ["0", "-3", "0.5", "3.5", "'zzz'", "x'00'"])
def test_a_new_file_rejects_invalid_sequences(ledger: Ledger, place: str) -> None:
    """In a new file, a table constraint rejects records at invalid sequence numbers."""
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        ledger.tamper(lambda file: file.execute(f"UPDATE records SET sequence = {place} WHERE sequence = 1"))
