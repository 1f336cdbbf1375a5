"""Corrections: their life cycle, and who may decide."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from shared.provenance.amendments import AmendmentPolicy, Amendments, AmendmentState
from shared.provenance.models import AmendmentBody, EventBody
from shared.provenance.ports import ChainRecord
from shared.provenance.queries import AmendmentFilters, query_amendments, query_entity_amendments
from shared.provenance.selection import resolve_amendments_chain
from tests.unit.shared.provenance.chains import Ledger, ledger

CHAIN = resolve_amendments_chain("batch 7")
STRICT = AmendmentPolicy(
    approval_required=True, reason_text_required=True, reason_categories=("data-entry-error", "other")
)
LAX = AmendmentPolicy(approval_required=False, reason_text_required=False, reason_categories=("other",))


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Empty chains."""
    async with ledger(tmp_path) as opened:
        yield opened


@pytest.fixture
def amendments(plant: Ledger) -> Amendments:
    """Corrections over them."""
    return Amendments(plant.events.log, plant.store)


def body(**members: Any) -> AmendmentBody:
    """Return a sound correction."""
    sent = {
        "ScopeKey": "batch 7", "EntityType": "Sample", "EntityID": "S-1", "OriginalRecord": {"ph": 7},
        "AmendedRecord": {"ph": 7.4}, "ChangedFields": ["ph"], "ReasonCategory": "other", "ReasonText": "typo",
    }  # fmt: skip
    return AmendmentBody.model_validate(sent | members)


def members(record: ChainRecord) -> dict[str, Any]:
    """Return a record's members but its links."""
    value: dict[str, Any] = json.loads(record.canonical)
    return {
        name: value[name] for name in value if name not in ("PreviousHash", "AmendedAt", "ApprovedAt", "RejectedAt")
    }


async def test_a_correction_is_stored_as_sent_with_what_the_server_adds(amendments: Amendments) -> None:
    """Author, status and place are the server's; unlisted members are dropped."""
    made = await amendments.create(CHAIN, "ann", body(AmendedBy="eve", Status="approved", Extra=1), STRICT)
    assert members(made.record) == body().model_dump(by_alias=True) | {
        "RecordID": "000000000001", "AmendedBy": "ann", "Status": "pending",
    }  # fmt: skip
    at_once = await amendments.create(CHAIN, "ann", body(), LAX)
    assert members(at_once.record)["Status"] == "approved"


async def test_decisions_are_records_of_their_own(amendments: Amendments, plant: Ledger) -> None:
    """The original stays; approval and rejection name it, who decided, when, and what it means."""
    for _ in range(2):
        await amendments.create(CHAIN, "ann", body(), STRICT)
    approved = await amendments.approve(CHAIN, "000000000001", "bob")
    rejected = await amendments.reject(CHAIN, "000000000002", "bob", "no source")
    named = {"ScopeKey": "batch 7", "EntityType": "Sample", "EntityID": "S-1"}
    assert members(approved.record) == named | {
        "RecordID": "000000000003", "AmendmentID": "000000000001", "Status": "approved", "ApprovedBy": "bob",
        "Meaning": "approval",
    }  # fmt: skip
    assert members(rejected.record) == named | {
        "RecordID": "000000000004", "AmendmentID": "000000000002", "Status": "rejected", "RejectedBy": "bob",
        "Meaning": "rejection", "RejectionReason": "no source",
    }  # fmt: skip
    assert (await plant.verify(CHAIN)).chain_valid
    entity = await query_entity_amendments(plant.store, CHAIN, "S-1")
    assert ([record.sequence for record in entity.records], entity.has_more) == ([1, 2, 3, 4], False)


async def test_an_author_does_not_decide(amendments: Amendments) -> None:
    """Maker and checker differ, whatever the letter case; a decided correction is told as decided."""
    await amendments.create(CHAIN, "ann@plant", body(), STRICT)
    for decide in (amendments.approve(CHAIN, "000000000001", "ANN@Plant"),
                   amendments.reject(CHAIN, "000000000001", "ann@plant", None)):  # fmt: skip
        assert await refusal(decide) == (Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", {})
    await amendments.approve(CHAIN, "000000000001", "bob")
    assert await refusal(amendments.approve(CHAIN, "000000000001", "ann@plant")) == (
        Kind.CONFLICT, "AMENDMENT_NOT_PENDING", {"currentStatus": "approved"},
    )  # fmt: skip


@pytest.mark.parametrize("amendment", ["000000000009", "000000000002", "", "1", "0" * 13, "../etc"])
async def test_what_is_no_correction_is_not_found(amendments: Amendments, amendment: str) -> None:
    """Unknown and malformed ids, and those of decisions, name no correction."""
    await amendments.create(CHAIN, "ann", body(), STRICT)
    await amendments.approve(CHAIN, "000000000001", "bob")
    assert (await refusal(amendments.approve(CHAIN, amendment, "bob")))[:2] == (Kind.NOT_FOUND, "AMENDMENT_NOT_FOUND")


async def test_of_simultaneous_decisions_one_wins(amendments: Amendments, plant: Ledger, tmp_path: Path) -> None:
    """Approvals and rejections at once, from two processes' engines: one stands, the others learn which."""
    for number in range(1, 6):
        await amendments.create(CHAIN, "ann", body(), STRICT)
        async with ledger(tmp_path) as second:
            others = Amendments(second.events.log, second.store)
            tries = [amendments.approve(CHAIN, f"{number * 2 - 1:012d}", f"b{place}") for place in range(3)]
            tries += [others.reject(CHAIN, f"{number * 2 - 1:012d}", f"c{place}", None) for place in range(3)]
            outcomes = await asyncio.gather(*tries, return_exceptions=True)
        won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        assert len(won) == 1
        lost = [outcome for outcome in outcomes if isinstance(outcome, WorkspaceError)]
        assert len(lost) == 5
        assert {error.members["currentStatus"] for error in lost} == {members(won[0].record)["Status"]}
    assert (await plant.verify(CHAIN)).chain_valid


async def test_a_repeated_decision_is_the_first(amendments: Amendments) -> None:
    """With the same append id a decision is answered again instead of refused."""
    await amendments.create(CHAIN, "ann", body(), STRICT)
    first = await amendments.approve(CHAIN, "000000000001", "bob", append_id="key")
    again = await amendments.approve(CHAIN, "000000000001", "bob", append_id="key")
    assert (again.record, again.repeated) == (first.record, True)


@pytest.mark.parametrize("category", ["Other", "", 7, None, ["other"], {"a": 1}])
async def test_a_category_off_the_list_is_refused(amendments: Amendments, category: Any) -> None:
    """The refusal names what was sent and what is allowed, also for values that cannot be looked up."""
    kind, _, told = await refusal(amendments.create(CHAIN, "ann", body(ReasonCategory=category), STRICT))
    assert (kind, told["sent"], told["allowed"]) == (Kind.INVALID, category, ["data-entry-error", "other"])


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u200b", "\u2060 \ufeff\u00ad\u3000"])
async def test_an_empty_reason_is_refused_where_it_is_required(amendments: Amendments, text: str) -> None:
    """Whether a free text is needed is the workspace's choice; one of which nothing can be seen is none."""
    assert (await refusal(amendments.create(CHAIN, "ann", body(ReasonText=text), STRICT)))[0] is Kind.INVALID
    await amendments.create(CHAIN, "ann", body(ReasonText=f"{text}."), STRICT)
    await amendments.create(CHAIN, "ann", body(ReasonText=""), LAX)


async def test_queries_tell_pending_from_stored_as_pending(amendments: Amendments, plant: Ledger) -> None:
    """``pending`` leaves decided ones out; the other states include the decisions."""
    for number in range(6):
        await amendments.create(CHAIN, "ann" if number % 2 else "amy", body(EntityID=f"S-{number % 3}"), STRICT)
    await amendments.approve(CHAIN, "000000000002", "bob")
    await amendments.reject(CHAIN, "000000000005", "bob", None)
    await amendments.create(CHAIN, "ann", body(), LAX)

    async def sequences(limit: int = 100, offset: int = 0, **wanted: Any) -> tuple[list[int], bool]:
        answer = await query_amendments(plant.store, CHAIN, AmendmentFilters(**wanted), limit=limit, offset=offset)
        assert answer.scanned >= len(answer.records)
        return [record.sequence for record in answer.records], answer.has_more

    assert await sequences() == ([9, 8, 7, 6, 5, 4, 3, 2, 1], False)
    assert await sequences(status=AmendmentState.PENDING) == ([6, 4, 3, 1], False)
    assert await sequences(status=AmendmentState.PENDING, limit=2) == ([6, 4], True)
    assert await sequences(status=AmendmentState.PENDING, limit=2, offset=2) == ([3, 1], False)
    assert await sequences(status=AmendmentState.APPROVED) == ([9, 7], False)
    assert await sequences(status=AmendmentState.REJECTED) == ([8], False)
    assert await sequences(entity_id="S-1") == ([9, 8, 7, 5, 2], False)
    assert await sequences(amended_by="bob") == ([], False)
    assert await sequences(amended_by="ann", entity_type="Sample") == ([9, 6, 4, 2], False)
    assert await sequences(reason_category="other", limit=3) == ([9, 6, 5], True)


def test_an_events_body_keeps_its_own_members() -> None:
    """Server-owned and unlisted members are dropped, null optional ones too."""
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


async def refusal(work: Any) -> tuple[Kind, str, dict[str, Any]]:
    """Return kind, code and members of the refusal."""
    with pytest.raises(WorkspaceError) as caught:
        await work
    return caught.value.kind, caught.value.code, caught.value.members
