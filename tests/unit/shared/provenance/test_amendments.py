"""Tests of the life cycle of amendments and of who can decide about them."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from shared.provenance import queries
from shared.provenance.amendments import AmendmentPolicy, Amendments, AmendmentState
from shared.provenance.models import AmendmentBody, EventBody
from shared.provenance.ports import ChainRecord, Filters
from shared.provenance.queries import AmendmentFilters, query_amendments, query_entity_amendments
from shared.provenance.selection import resolve_amendments_chain
from tests.unit.shared.provenance.chains import Ledger, open_ledger

CHAIN = resolve_amendments_chain("batch 7")
STRICT = AmendmentPolicy(
    approval_required=True, reason_text_required=True, reason_categories=("data-entry-error", "other")
)
LAX = AmendmentPolicy(approval_required=False, reason_text_required=False, reason_categories=("other",))


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Provide empty chains."""
    async with open_ledger(tmp_path) as opened:
        yield opened


@pytest.fixture
def amendments(ledger: Ledger) -> Amendments:
    """Provide the amendment service for empty chains."""
    return Amendments(ledger.events.log, ledger.store)


def build_body(**members: Any) -> AmendmentBody:
    """Return a valid amendment."""
    sent = {
        "ScopeKey": "batch 7", "EntityType": "Sample", "EntityID": "S-1", "OriginalRecord": {"ph": 7},
        "AmendedRecord": {"ph": 7.4}, "ChangedFields": ["ph"], "ReasonCategory": "other", "ReasonText": "typo",
    }  # fmt: skip
    return AmendmentBody.model_validate(sent | members)


def read_members(record: ChainRecord) -> dict[str, Any]:
    """Return a record's properties except hash, links and time."""
    value: dict[str, Any] = json.loads(record.canonical)
    return {
        name: value[name] for name in value if name not in ("PreviousHash", "AmendedAt", "ApprovedAt", "RejectedAt")
    }


async def test_the_server_sets_some_properties_of_an_amendment(amendments: Amendments) -> None:
    """The server sets author, status and RecordID of an amendment, and ignores properties that it does not know."""
    made = await amendments.create(CHAIN, "ann", build_body(AmendedBy="eve", Status="approved", Extra=1), STRICT)
    assert read_members(made.record) == build_body().model_dump(by_alias=True) | {
        "RecordID": "000000000001", "AmendedBy": "ann", "Status": "pending",
    }  # fmt: skip
    at_once = await amendments.create(CHAIN, "ann", build_body(), LAX)
    assert read_members(at_once.record)["Status"] == "approved"


async def test_decisions_are_stored_as_separate_records(amendments: Amendments, ledger: Ledger) -> None:
    """A decision is a separate record with RecordID, approver, time and meaning; the amendment stays unchanged."""
    for _ in range(2):
        await amendments.create(CHAIN, "ann", build_body(), STRICT)
    approved = await amendments.approve(CHAIN, "000000000001", "bob")
    rejected = await amendments.reject(CHAIN, "000000000002", "bob", "no source")
    named = {"ScopeKey": "batch 7", "EntityType": "Sample", "EntityID": "S-1"}
    assert read_members(approved.record) == named | {
        "RecordID": "000000000003", "AmendmentID": "000000000001", "Status": "approved", "ApprovedBy": "bob",
        "Meaning": "approval",
    }  # fmt: skip
    assert read_members(rejected.record) == named | {
        "RecordID": "000000000004", "AmendmentID": "000000000002", "Status": "rejected", "RejectedBy": "bob",
        "Meaning": "rejection", "RejectionReason": "no source",
    }  # fmt: skip
    assert (await ledger.verify(CHAIN)).chain_valid
    entity = await query_entity_amendments(ledger.store, CHAIN, "S-1")
    assert ([record.sequence for record in entity.records], entity.has_more) == ([1, 2, 3, 4], False)


async def test_an_author_cannot_decide_own_amendments(amendments: Amendments) -> None:
    """Authors cannot decide about their own amendments, even with another letter case in their user id."""
    await amendments.create(CHAIN, "ann@plant", build_body(), STRICT)
    for decide in (amendments.approve(CHAIN, "000000000001", "ANN@Plant"),
                   amendments.reject(CHAIN, "000000000001", "ann@plant", None)):  # fmt: skip
        assert await catch_rejection(decide) == (Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", {})
    await amendments.approve(CHAIN, "000000000001", "bob")
    assert await catch_rejection(amendments.approve(CHAIN, "000000000001", "ann@plant")) == (
        Kind.CONFLICT, "AMENDMENT_NOT_PENDING", {"currentStatus": "approved"},
    )  # fmt: skip


@pytest.mark.parametrize("amendment", ["000000000009", "000000000002", "", "1", "0" * 13, "../etc"])
async def test_ids_that_are_not_of_an_amendment_are_not_found(amendments: Amendments, amendment: str) -> None:
    """Deciding about an id that is unknown, malformed or of a decision is rejected as not found."""
    await amendments.create(CHAIN, "ann", build_body(), STRICT)
    await amendments.approve(CHAIN, "000000000001", "bob")
    assert (await catch_rejection(amendments.approve(CHAIN, amendment, "bob")))[:2] == (
        Kind.NOT_FOUND,
        "AMENDMENT_NOT_FOUND",
    )


async def test_one_of_concurrent_decisions_succeeds(amendments: Amendments, ledger: Ledger, tmp_path: Path) -> None:
    """If several decisions about an amendment are sent at once, one succeeds; the rejections state the new status."""
    for number in range(1, 6):
        await amendments.create(CHAIN, "ann", build_body(), STRICT)
        async with open_ledger(tmp_path) as second:
            others = Amendments(second.events.log, second.store)
            tries = [amendments.approve(CHAIN, f"{number * 2 - 1:012d}", f"b{place}") for place in range(3)]
            tries += [others.reject(CHAIN, f"{number * 2 - 1:012d}", f"c{place}", None) for place in range(3)]
            outcomes = await asyncio.gather(*tries, return_exceptions=True)
        succeeded = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        assert len(succeeded) == 1
        rejected_errors = [outcome for outcome in outcomes if isinstance(outcome, WorkspaceError)]
        assert len(rejected_errors) == 5
        assert {error.members["currentStatus"] for error in rejected_errors} == {
            read_members(succeeded[0].record)["Status"]
        }
    assert (await ledger.verify(CHAIN)).chain_valid


async def test_a_repeated_decision_returns_the_first(amendments: Amendments) -> None:
    """Repeating a decision with the same append id returns the decision that was stored first."""
    await amendments.create(CHAIN, "ann", build_body(), STRICT)
    first = await amendments.approve(CHAIN, "000000000001", "bob", append_id="key")
    again = await amendments.approve(CHAIN, "000000000001", "bob", append_id="key")
    assert (again.record, again.repeated) == (first.record, True)


async def test_a_repeated_amendment_returns_the_first_after_a_change_of_the_policy(amendments: Amendments) -> None:
    """Repeating a creation with the same append id returns the stored amendment, although the policy now rejects it."""
    first = await amendments.create(CHAIN, "ann", build_body(ReasonText=""), LAX, append_id="key")
    again = await amendments.create(CHAIN, "ann", build_body(ReasonText=""), STRICT, append_id="key")
    assert (again.record, again.repeated) == (first.record, True)


@pytest.mark.parametrize("category", ["Other", "", 7, None, ["other"], {"a": 1}])
async def test_an_unlisted_reason_category_is_rejected(amendments: Amendments, category: Any) -> None:
    """The error about an invalid category contains the sent value, whatever its type, and the allowed values."""
    kind, _, details = await catch_rejection(
        amendments.create(CHAIN, "ann", build_body(ReasonCategory=category), STRICT)
    )
    assert (kind, details["sent"], details["allowed"]) == (Kind.INVALID, category, ["data-entry-error", "other"])


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u200b", "\u2060 \ufeff\u00ad\u3000"])
async def test_an_empty_required_reason_is_rejected(amendments: Amendments, text: str) -> None:
    """If the policy requires a reason, a reason of invisible characters is rejected."""
    assert (await catch_rejection(amendments.create(CHAIN, "ann", build_body(ReasonText=text), STRICT)))[
        0
    ] is Kind.INVALID
    await amendments.create(CHAIN, "ann", build_body(ReasonText=f"{text}."), STRICT)
    await amendments.create(CHAIN, "ann", build_body(ReasonText=""), LAX)


async def test_the_status_pending_excludes_decided_amendments(amendments: Amendments, ledger: Ledger) -> None:
    """The status ``pending`` selects amendments without a decision; other statuses also select decisions."""
    for number in range(6):
        await amendments.create(CHAIN, "ann" if number % 2 else "amy", build_body(EntityID=f"S-{number % 3}"), STRICT)
    await amendments.approve(CHAIN, "000000000002", "bob")
    await amendments.reject(CHAIN, "000000000005", "bob", None)
    await amendments.create(CHAIN, "ann", build_body(), LAX)

    async def list_sequences(limit: int = 100, offset: int = 0, **wanted: Any) -> tuple[list[int], bool]:
        filters = AmendmentFilters(**wanted)
        answer = await query_amendments(ledger.store, ledger.overview, CHAIN, filters, limit=limit, offset=offset)
        assert answer.scanned >= len(answer.records)
        return [record.sequence for record in answer.records], answer.has_more

    assert await list_sequences() == ([9, 8, 7, 6, 5, 4, 3, 2, 1], False)
    assert await list_sequences(status=AmendmentState.PENDING) == ([6, 4, 3, 1], False)
    assert await list_sequences(status=AmendmentState.PENDING, limit=2) == ([6, 4], True)
    assert await list_sequences(status=AmendmentState.PENDING, limit=2, offset=2) == ([3, 1], False)
    assert await list_sequences(status=AmendmentState.APPROVED) == ([9, 7], False)
    assert await list_sequences(status=AmendmentState.REJECTED) == ([8], False)
    assert await list_sequences(entity_id="S-1") == ([9, 8, 7, 5, 2], False)
    assert await list_sequences(amended_by="bob") == ([], False)
    assert await list_sequences(amended_by="ann", entity_type="Sample") == ([9, 6, 4, 2], False)
    assert await list_sequences(reason_category="other", limit=3) == ([9, 6, 5], True)


async def test_a_query_for_pending_amendments_reads_no_decided_amendment(
    amendments: Amendments, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query for pending amendments reads only those in the index of pending amendments, in pages (here of 2)."""
    monkeypatch.setattr(queries, "_PAGE_RECORDS", 2)
    for number in range(9):
        await amendments.create(CHAIN, "ann", build_body(EntityID=f"S-{number % 2}"), STRICT)
    for number in (2, 4, 6, 8):
        await amendments.approve(CHAIN, f"{number:012d}", "bob")

    async def count_scanned(**wanted: Any) -> tuple[list[int], int]:
        filters = AmendmentFilters(status=AmendmentState.PENDING, **wanted)
        answer = await query_amendments(ledger.store, ledger.overview, CHAIN, filters)
        return [record.sequence for record in answer.records], answer.scanned

    assert await count_scanned() == ([9, 7, 5, 3, 1], 5)
    assert await count_scanned(entity_id="S-1") == ([], 0)
    assert await count_scanned(window=Filters(from_sequence=4, to_sequence=7)) == ([7, 5], 2)
    assert await count_scanned(window=Filters(from_sequence=-1, to_sequence=10**20)) == ([9, 7, 5, 3, 1], 5)
    assert await count_scanned(window=Filters(to_sequence=-(10**20))) == ([], 0)


@pytest.mark.parametrize("status", [None, AmendmentState.PENDING, AmendmentState.APPROVED])
async def test_a_query_for_amendments_is_reduced_to_the_maximum(
    amendments: Amendments, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, status: AmendmentState | None
) -> None:
    """A query for more amendments than the maximum, here 2, returns the maximum and states whether more match."""
    monkeypatch.setattr(queries, "MAX_LIMIT", 2)
    policy = LAX if status is AmendmentState.APPROVED else STRICT
    for expected in ((1, False), (2, False), (2, True)):
        await amendments.create(CHAIN, "ann", build_body(), policy)
        for limit in (2, 3, 10**30):
            filters = AmendmentFilters(status=status)
            answer = await query_amendments(ledger.store, ledger.overview, CHAIN, filters, limit=limit)
            assert (len(answer.records), answer.has_more) == expected


def test_a_stored_event_has_only_properties_of_events() -> None:
    """A stored event has no unknown properties, no properties that the server sets, and no optional nulls."""
    sent = {
        "ActionType": "A",
        "EntityType": "T",
        "EntityID": "1",
        "UserID": "eve",
        "Hash": "x",
        "Extra": 1,
        "Name": None,
    }
    assert EventBody.model_validate(sent).to_event() == {"ActionType": "A", "EntityType": "T", "EntityID": "1"}


async def catch_rejection(work: Any) -> tuple[Kind, str, dict[str, Any]]:
    """Return kind, code and further properties of the error with which a call is rejected."""
    with pytest.raises(WorkspaceError) as caught:
        await work
    return caught.value.kind, caught.value.code, caught.value.members
