"""Tests of forged head items (which store a chain's last record), and of decisions signed for another record."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from oi.verification.export import BrokenError, check_signatures, verify_export

from shared.auth.reauthentication import build_reauthentication_error
from shared.errors import Kind, WorkspaceError
from shared.provenance.amendments import Amendments
from shared.provenance.hash_rule import LAST_SEQUENCE, format_record_id
from shared.provenance.ports import ChainKey, Target
from shared.provenance.records import draft_event, draft_record, record_to_json, seal_record
from shared.provenance.signatures import DecisionSignature, SigningSession
from tests.unit.shared.provenance.chains import (
    BATCH,
    PLATFORM,
    WORKSPACE,
    Ledger,
    build_event,
    build_parallel_options,
    open_ledger,
)
from tests.unit.shared.provenance.test_amendments import CHAIN, STRICT, build_body

COUNT = 4
OTHER = ChainKey(Target.DOMAIN_EVENTS, "other")
OF_PLATFORM = "WHERE target = 'PlatformConfig'"


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Provide two chains without a checkpoint; the next append reads their head items from the store again."""
    async with open_ledger(tmp_path) as opened:
        for chain in (BATCH, PLATFORM):
            await opened.fill(chain, COUNT)
    async with open_ledger(tmp_path) as again:
        yield again


def change_head(ledger: Ledger, sql: str) -> None:
    """Change columns of the second chain's head item."""
    ledger.tamper(lambda file: file.execute(f"{sql} WHERE target = 'PlatformConfig'"))


async def read_rejection_detail(ledger: Ledger) -> str:
    """Append an event, check that it is rejected, and return the detail of the error."""
    with pytest.raises(WorkspaceError) as refusal:
        await ledger.events.write(PLATFORM, "editor", build_event(9))
    assert (refusal.value.kind, refusal.value.code) == (Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE")
    return refusal.value.detail


@pytest.mark.parametrize("time", ["2099-01-01T00:00:00.000000Z", "2020-01-01T00:00:00.000000Z", "soon", ""])
async def test_a_forged_time_of_the_head_is_found(ledger: Ledger, time: str) -> None:
    """If the time of a head item differs from that of its record, verification fails."""
    change_head(ledger, f"UPDATE chains SET timestamp = '{time}'")
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.broken_at) == (False, format_record_id(COUNT))
    assert verdict.reason == f"the time of {format_record_id(COUNT)} differs from the time in the head item"


@pytest.mark.parametrize("time", ["2099-01-01T00:00:00.000000Z", "soon"])
async def test_an_append_after_a_forged_time_is_rejected(ledger: Ledger, time: str) -> None:
    """If the head item has a future time that is not the last record's, an append is rejected."""
    change_head(ledger, f"UPDATE chains SET timestamp = '{time}'")
    assert "head item" in await read_rejection_detail(ledger)
    assert len(await ledger.records(PLATFORM)) == COUNT


@pytest.mark.parametrize("sequence", [2**63 - 1, LAST_SEQUENCE, -1, -(2**63)])
async def test_a_head_beyond_all_record_ids_is_rejected(ledger: Ledger, sequence: int) -> None:
    """A head item whose sequence number has over 12 digits causes an ordinary rejection, not a database error."""
    change_head(ledger, f"UPDATE chains SET sequence = {sequence}")
    assert "head item" in await read_rejection_detail(ledger)
    assert not (await ledger.verify(PLATFORM)).chain_valid


@pytest.mark.parametrize("sequence", [-(2**63), -1, 0])
async def test_a_head_before_the_first_record_has_no_record_id(ledger: Ledger, sequence: int) -> None:
    """If the head item's sequence number is below 1, verification reports record 1 as after the end of the chain."""
    change_head(ledger, f"UPDATE chains SET sequence = {sequence}")
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(1))


HASH_OF_FIRST = f"(SELECT hash FROM records WHERE sequence = 1 AND chain = (SELECT chain FROM chains {OF_PLATFORM}))"


@pytest.mark.parametrize("said", ["'x'", "''", f"'{'0' * 64}'", HASH_OF_FIRST])
async def test_an_append_after_a_forged_hash_is_rejected(ledger: Ledger, said: str) -> None:
    """If the head item's hash differs from that of the last record, appends are rejected until its repair."""
    true = (await ledger.records(PLATFORM))[-1].hash
    change_head(ledger, f"UPDATE chains SET hash = {said}")
    assert "head item" in await read_rejection_detail(ledger)
    change_head(ledger, f"UPDATE chains SET hash = '{true}'")
    await ledger.events.write(PLATFORM, "editor", build_event(9))
    assert (await ledger.verify(PLATFORM)).chain_valid


async def test_a_cached_tip_does_not_hide_a_forged_hash(ledger: Ledger) -> None:
    """If the head item was changed, a process with a cached tip reads it again before the next append."""
    await ledger.events.write(PLATFORM, "editor", build_event(8))
    change_head(ledger, "UPDATE chains SET hash = 'x'")
    assert "head item" in await read_rejection_detail(ledger)
    assert len(await ledger.records(PLATFORM)) == COUNT + 1


async def test_a_record_past_the_head_is_rejected_at_once(ledger: Ledger) -> None:
    """If a record follows the one in the head item, an append fails at once, because a retry cannot succeed."""
    last = f"(SELECT hash FROM records WHERE chain = chains.chain AND sequence = {COUNT - 1})"
    change_head(ledger, f"UPDATE chains SET sequence = {COUNT - 1}, hash = {last}")
    assert "past the end" in await read_rejection_detail(ledger)


@pytest.mark.parametrize("tampering", ["DELETE FROM chains", "UPDATE chains SET target = 'AccessControl'"])
async def test_records_without_head_are_found(ledger: Ledger, tampering: str) -> None:
    """If a chain's head item was deleted, the chain is reported as broken instead of empty."""
    change_head(ledger, tampering)
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(1))
    assert verdict.reason == f"{format_record_id(1)} is stored, but this chain has no head item"
    assert (await ledger.verify(BATCH)).chain_valid
    assert (await ledger.verify(OTHER)).empty


async def test_the_number_of_a_deleted_head_is_not_reused(ledger: Ledger) -> None:
    """The internal chain number in a deleted head item is not reused, so that new scopes get their own records."""
    await ledger.fill(OTHER, 2)
    ledger.tamper(lambda file: file.execute("DELETE FROM chains WHERE chain = (SELECT max(chain) FROM chains)"))
    begun = [ChainKey(Target.DOMAIN_EVENTS, f"begun later {number}") for number in range(3)]
    for chain in begun:
        await ledger.fill(chain, 2)
        verdict = await ledger.verify(chain)
        assert (verdict.chain_valid, verdict.reason) == (True, "2 records, all sound")
    assert (await ledger.verify(OTHER)).broken_at == format_record_id(1)


async def test_concurrently_created_scopes_have_different_numbers(ledger: Ledger) -> None:
    """If two processes create chains in one database file at once, the chains get different numbers."""
    ledger.tamper(lambda file: file.execute("DELETE FROM chains WHERE chain = (SELECT max(chain) FROM chains)"))
    begun = [ChainKey(Target.DOMAIN_EVENTS, f"at once {number}") for number in range(12)]
    async with open_ledger(ledger.folder) as second:
        await asyncio.gather(*((ledger, second)[number % 2].fill(chain, 2) for number, chain in enumerate(begun)))
    for chain in begun:
        assert (await ledger.verify(chain)).reason == "2 records, all sound"


@pytest.mark.parametrize("number", ["'text'", "9223372036854775807", "-5", "x'00'"])
async def test_a_forged_number_does_not_prevent_new_scopes(ledger: Ledger, number: str) -> None:
    """Records with a forged chain number, even the highest or none, do not prevent appends to new scopes."""
    ledger.tamper(
        lambda file: file.execute(
            f"UPDATE records SET chain = {number} WHERE chain = (SELECT chain FROM chains {OF_PLATFORM})"
        )
    )
    await ledger.fill(OTHER, 2)
    assert [record.sequence for record in await ledger.records(OTHER)] == [1, 2]


@pytest.mark.parametrize("gone", range(1, COUNT))
async def test_records_without_head_and_first_record_are_found(ledger: Ledger, gone: int) -> None:
    """If any stored record may belong to a chain without a head item, the chain is not reported as empty."""
    deleted = f"DELETE FROM records WHERE sequence <= {gone} AND chain = (SELECT chain FROM chains {OF_PLATFORM})"
    ledger.tamper(lambda file: file.executescript(f"{deleted}; DELETE FROM chains {OF_PLATFORM}"))
    for chain in (PLATFORM, OTHER):
        verdict = await ledger.verify(chain)
        assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(gone + 1))
        assert "has no head item and no first record" in verdict.reason
    assert (await ledger.verify(BATCH)).chain_valid
    assert (await ledger.verify(ChainKey(Target.DOMAIN_AMENDMENTS, "other"))).empty


RENUMBERED = {
    "two changed places": (
        "UPDATE records SET sequence = 99 WHERE sequence = 1 AND chain = @",
        "UPDATE records SET sequence = 1 WHERE sequence = 2 AND chain = @",
        "UPDATE records SET sequence = 2 WHERE sequence = 99 AND chain = @",
    ),
    "one left, renumbered": (
        "DELETE FROM records WHERE sequence <> 3 AND chain = @",
        "UPDATE records SET sequence = 1 WHERE chain = @",
    ),
    "the first moved on": (
        f"UPDATE records SET sequence = {COUNT + 1} WHERE sequence = 1 AND chain = @",
        "UPDATE records SET sequence = 1 WHERE sequence = 2 AND chain = @",
    ),
    "the first edited": (
        "DELETE FROM records WHERE sequence > 1 AND chain = @",
        "UPDATE records SET canonical = CAST(replace(canonical, 'editor', 'nobody') AS BLOB) WHERE chain = @",
        """UPDATE records SET canonical = CAST(replace(canonical, 'Hash":"', 'Hash":"0') AS BLOB) WHERE chain = @""",
    ),
}


@pytest.mark.parametrize("name", RENUMBERED)
async def test_moved_records_without_head_are_found(ledger: Ledger, name: str) -> None:
    """If a chain's head item was deleted and its records were moved to another chain, it is not reported as empty."""
    statements = [one.replace("@", f"(SELECT chain FROM chains {OF_PLATFORM})") for one in RENUMBERED[name]]
    ledger.tamper(lambda file: file.executescript(";".join([*statements, f"DELETE FROM chains {OF_PLATFORM}"])))
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(1))
    assert (await ledger.verify(BATCH)).chain_valid


async def test_orphaned_amendments_are_found_in_their_scope(ledger: Ledger) -> None:
    """Amendments whose head item is missing make only the chain of their own scope invalid."""
    mine, other = (ChainKey(Target.DOMAIN_AMENDMENTS, scope) for scope in ("mine", "other"))
    for _ in range(2):
        made = draft_record({"ScopeKey": "mine", "AmendedBy": "ann", "EntityID": "B", "Status": "pending"}, "AmendedAt")
        await ledger.events.log.append(mine, made)
    amendments = "WHERE target = 'DomainAmendments'"
    deleted = f"DELETE FROM records WHERE sequence = 1 AND chain = (SELECT chain FROM chains {amendments})"
    ledger.tamper(lambda file: file.executescript(f"{deleted}; DELETE FROM chains {amendments}"))
    verdict = await ledger.verify(mine)
    assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(2))
    assert (await ledger.verify(other)).empty
    assert (await ledger.verify(OTHER)).empty


async def test_an_operator_can_remove_future_records(ledger: Ledger) -> None:
    """After an operator removes records with a future time and resets the head item, appends succeed."""
    await ledger.checkpoints.create(PLATFORM)
    tip = await ledger.store.read_tip(PLATFORM)
    made = seal_record(draft_event("u", build_event(9)), COUNT + 1, "2999-01-01T00:00:00.000000Z", tip.hash, "ahead")
    await ledger.store.append(PLATFORM, [made], tip)
    assert "more than an hour ahead" in await read_rejection_detail(ledger)
    chain = f"(SELECT chain FROM chains {OF_PLATFORM})"
    left = f"(SELECT sequence, hash, timestamp FROM records WHERE chain = {chain} ORDER BY sequence DESC LIMIT 1)"
    ledger.tamper(lambda file: file.execute(f"DELETE FROM records WHERE sequence > {COUNT} AND chain = {chain}"))
    change_head(ledger, f"UPDATE chains SET (sequence, hash, timestamp) = {left}")
    await ledger.events.write(PLATFORM, "editor", build_event(9))
    assert (await ledger.verify(PLATFORM)).chain_valid


async def test_a_restarted_chain_is_a_fork(ledger: Ledger) -> None:
    """Two first records that link to the genesis hash are reported as a fork."""
    [first, *_] = await ledger.records(BATCH)
    ledger.tamper(lambda file: file.execute("DELETE FROM chains WHERE target = 'DomainEvents'"))
    await ledger.events.write(BATCH, "editor", build_event(9))
    verdict = await ledger.verify(BATCH)
    assert (verdict.chain_valid, verdict.fork_detected, verdict.broken_at) == (False, True, first.hash)


SIGNED_IN = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
SIGNATURE = DecisionSignature("bob", "Bob", "approval", None, SIGNED_IN, ("key",))


@dataclass
class OneSigner:
    """Fake signer that returns one fixed signature, or raises the error that the test has set."""

    refusal: WorkspaceError | None = None

    @asynccontextmanager
    async def sign(self, append_id: str, chain: ChainKey) -> AsyncIterator[SigningSession]:
        """Yield a session with the fixed signature, or raise the error that the test has set."""
        assert (len(append_id), chain) == (32, CHAIN)
        if self.refusal is not None:
            raise self.refusal
        yield SigningSession(SIGNATURE)


async def append_decisions(ledger: Ledger, count: int) -> None:
    """Append amendments, each with a signed approval."""
    amendments = Amendments(ledger.events.log, ledger.store)
    for _ in range(count):
        made = await amendments.create(CHAIN, "ann", build_body(), STRICT)
        await amendments.approve(CHAIN, f"{made.record.sequence:012d}", "bob", signer=OneSigner())


async def append_decision(ledger: Ledger, amendment: str, signature: Any) -> None:
    """Append a decision with correct hashes and any signature, as an attacker with database access can."""
    decision = {
        "ScopeKey": CHAIN.scope_key,
        "EntityType": "Sample",
        "EntityID": "S-1",
        "AmendmentID": amendment,
        "Status": "approved",
        "ApprovedBy": "bob",
        "Meaning": "approval",
        "Signature": signature,
    }
    await ledger.events.log.append(CHAIN, draft_record(decision, "ApprovedAt"))


async def read_export(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the chain in the form of an export."""
    return [json.loads(record_to_json(record)) for record in await ledger.records(CHAIN)]


async def test_signed_decisions_are_valid(tmp_path: Path) -> None:
    """The signature of a decision contains the decision's time and the amendment's Hash, and the chain is valid."""
    async with open_ledger(tmp_path) as ledger:
        await append_decisions(ledger, 2)
        records = await read_export(ledger)
        assert records[1]["Signature"] == {
            "UserID": "bob",
            "PrintedName": "Bob",
            "Meaning": "approval",
            "Statement": None,
            "SignedAt": records[1]["ApprovedAt"],
            "AuthTime": "2026-01-05T08:00:00.000000Z",
            "AuthMethods": ["key"],
            "RecordHash": records[0]["Hash"],
        }
        assert (await ledger.verify(CHAIN)).chain_valid
        assert verify_export(records, WORKSPACE, "DomainAmendments", CHAIN.scope_key) == 4


@pytest.mark.parametrize(
    "falsify",
    [
        lambda members: {**members, "RecordHash": "0" * 64},
        lambda members: {**members, "RecordHash": None},
        lambda _: {},
    ],
)
@pytest.mark.parametrize("window", [1_000, 2])
async def test_a_signature_of_another_record_fails_verification(
    tmp_path: Path, falsify: Callable[[dict[str, Any]], Any], window: int
) -> None:
    """If a signature is for another record than the decided amendment, verification fails at the decision."""
    async with open_ledger(tmp_path, build_parallel_options(window)) as ledger:
        await append_decisions(ledger, 2)
        made = await Amendments(ledger.events.log, ledger.store).create(CHAIN, "ann", build_body(), STRICT)
        await append_decision(ledger, "000000000005", falsify(SIGNATURE.to_members(made.record.hash)))
        await append_decisions(ledger, 1)
        verdict = await ledger.verify(CHAIN, 6)
        assert (verdict.chain_valid, verdict.broken_at, verdict.valid) == (False, "000000000006", True)
        assert verdict.reason == "000000000006: the signature names another record"
        with pytest.raises(BrokenError, match="the signature names another record") as broken:
            verify_export(await read_export(ledger), WORKSPACE, "DomainAmendments", CHAIN.scope_key)
        assert broken.value.broken_at == "000000000006"


async def test_a_signature_of_a_missing_amendment_fails_verification(tmp_path: Path) -> None:
    """If a signed decision is about a missing amendment, verification fails at the decision."""
    async with open_ledger(tmp_path) as ledger:
        await append_decision(ledger, "000000000009", SIGNATURE.to_members("0" * 64))
        assert (await ledger.verify(CHAIN)).broken_at == "000000000001"
        with pytest.raises(BrokenError):
            verify_export(await read_export(ledger), WORKSPACE, "DomainAmendments", CHAIN.scope_key)


async def test_other_faults_come_first(tmp_path: Path) -> None:
    """A fault of a record or of a link between records is reported before a signature for another record."""
    async with open_ledger(tmp_path) as ledger:
        await append_decision(ledger, "000000000009", {})
        await append_decisions(ledger, 2)
        ledger.tamper(lambda connection: connection.execute("UPDATE records SET hash = 'x' WHERE sequence = 4"))
        assert (await ledger.verify(CHAIN)).broken_at == "000000000004"


async def test_filtered_exports_check_only_contained_amendments(tmp_path: Path) -> None:
    """In a filtered export, a signature is checked only if the export contains its amendment."""
    async with open_ledger(tmp_path) as ledger:
        await append_decisions(ledger, 1)
        made, decision = await read_export(ledger)
        check_signatures([decision], is_complete=False)
        check_signatures([made, decision], is_complete=False)
        with pytest.raises(BrokenError):
            check_signatures([{**made, "Hash": "0" * 64}, decision], is_complete=False)


async def test_a_repeated_decision_returns_the_first(tmp_path: Path) -> None:
    """Repeating a decision returns the first record without another check; a rejected decision appends nothing."""
    async with open_ledger(tmp_path) as ledger:
        amendments = Amendments(ledger.events.log, ledger.store)
        await amendments.create(CHAIN, "ann", build_body(), STRICT)
        append_id, refusing = "a" * 32, OneSigner(build_reauthentication_error(300))
        with pytest.raises(WorkspaceError, match="recent sign-in"):
            await amendments.approve(CHAIN, "000000000001", "bob", append_id=append_id, signer=refusing)
        first = await amendments.approve(CHAIN, "000000000001", "bob", append_id=append_id, signer=OneSigner())
        again = await amendments.approve(CHAIN, "000000000001", "bob", append_id=append_id, signer=refusing)
        assert (again.record, again.repeated) == (first.record, True)
        assert len(await ledger.records(CHAIN)) == 2


async def test_an_unconfirmed_signature_rejects_its_decision_only(tmp_path: Path) -> None:
    """If a signature is not confirmed just before the append, its decision is rejected; others are appended."""

    @dataclass
    class UnconfirmedSigner:
        @asynccontextmanager
        async def sign(self, append_id: str, chain: ChainKey) -> AsyncIterator[SigningSession]:
            assert (len(append_id), chain) == (32, CHAIN)
            yield SigningSession(SIGNATURE, raise_error)

    async def raise_error() -> None:
        raise WorkspaceError(Kind.UNAVAILABLE, "SIGNATURES_UNAVAILABLE", "The store does not respond.")

    async with open_ledger(tmp_path) as ledger:
        amendments = Amendments(ledger.events.log, ledger.store)
        await amendments.create(CHAIN, "ann", build_body(), STRICT)
        decision = amendments.approve(CHAIN, "000000000001", "bob", signer=UnconfirmedSigner())
        refused, made = await asyncio.gather(
            decision, amendments.create(CHAIN, "ann", build_body(), STRICT), return_exceptions=True
        )
        assert isinstance(refused, WorkspaceError)
        assert refused.code == "SIGNATURES_UNAVAILABLE"
        assert not isinstance(made, BaseException)
        assert len(await ledger.records(CHAIN)) == 2
