"""Tests of decisions whose signature belongs to another record."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from oi.verification.export import BrokenError, DecisionSignatures, verify_export_and_count_records

from shared.auth.reauthentication import build_reauthentication_error
from shared.errors import Kind, WorkspaceError
from shared.provenance.amendments import Amendments
from shared.provenance.ports import ChainKey
from shared.provenance.records import build_record_draft, record_to_json
from shared.provenance.signatures import DecisionSignature, SigningSession
from tests.unit.shared.provenance.chains import WORKSPACE, Ledger, build_parallel_options, open_ledger
from tests.unit.shared.provenance.test_amendments import CHAIN, STRICT, build_body

SIGNED_IN = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
SIGNATURE = DecisionSignature("bob", "Bob", "approval", None, SIGNED_IN, ("key",))


@dataclass
class OneSigner:
    """Fake signer that returns one fixed signature, or raises the error that the test has set."""

    refusal: WorkspaceError | None = None
    sent_signature: Any = None

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
    await ledger.events.log.append(CHAIN, build_record_draft(decision, "ApprovedAt"))


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
        assert verify_export_and_count_records(records, WORKSPACE, "DomainAmendments", CHAIN.scope_key) == 4


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
    """If a decision is signed for a record other than its amendment, verification fails at the decision."""
    async with open_ledger(tmp_path, build_parallel_options(window)) as ledger:
        await append_decisions(ledger, 2)
        made = await Amendments(ledger.events.log, ledger.store).create(CHAIN, "ann", build_body(), STRICT)
        await append_decision(ledger, "000000000005", falsify(SIGNATURE.to_record_properties(made.record.hash)))
        await append_decisions(ledger, 1)
        verdict = await ledger.verify(CHAIN, 6)
        assert (verdict.chain_valid, verdict.broken_at, verdict.valid) == (False, "000000000006", True)
        assert verdict.reason == "000000000006: the signature names another record"
        with pytest.raises(BrokenError, match="the signature names another record") as broken:
            verify_export_and_count_records(await read_export(ledger), WORKSPACE, "DomainAmendments", CHAIN.scope_key)
        assert broken.value.broken_at == "000000000006"


@pytest.mark.parametrize("amendment", ["000000000009", "9"])
@pytest.mark.parametrize("named", ["0" * 64, ""])
async def test_a_signature_of_a_missing_amendment_fails_verification(
    tmp_path: Path, amendment: str, named: str
) -> None:
    """If the amendment of a signed decision is missing or its RecordID malformed, the chain is broken there."""
    async with open_ledger(tmp_path) as ledger:
        await append_decision(ledger, amendment, SIGNATURE.to_record_properties(named))
        assert (await ledger.verify(CHAIN)).broken_at == "000000000001"
        with pytest.raises(BrokenError):
            verify_export_and_count_records(await read_export(ledger), WORKSPACE, "DomainAmendments", CHAIN.scope_key)


async def test_faults_of_records_are_reported_before_wrong_signatures(tmp_path: Path) -> None:
    """A fault of a record or of a link between records is reported before a signature for another record."""
    async with open_ledger(tmp_path) as ledger:
        await append_decision(ledger, "000000000009", {})
        await append_decisions(ledger, 2)
        ledger.tamper(lambda connection: connection.execute("UPDATE records SET hash = 'x' WHERE sequence = 4"))
        assert (await ledger.verify(CHAIN)).broken_at == "000000000004"


def check_filtered_signatures(*records: Mapping[str, Any]) -> None:
    """Check the signatures in a filtered export with these records."""
    signatures = DecisionSignatures(is_complete=False)
    for record in records:
        signatures.add_record(record)
    signatures.check()


async def test_filtered_exports_check_only_contained_amendments(tmp_path: Path) -> None:
    """In a filtered export, a signature is checked only if the export contains its amendment."""
    async with open_ledger(tmp_path) as ledger:
        await append_decisions(ledger, 1)
        made, decision = await read_export(ledger)
        check_filtered_signatures(decision)
        check_filtered_signatures(made, decision)
        with pytest.raises(BrokenError):
            check_filtered_signatures({**made, "Hash": "0" * 64}, decision)


async def test_a_repeated_signed_decision_returns_the_first_record(tmp_path: Path) -> None:
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
    """If a signature is not confirmed just before the append, only the decision with this signature is rejected."""

    @dataclass
    class UnconfirmedSigner:
        sent_signature: Any = None

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
