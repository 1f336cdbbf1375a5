"""Tests of the list of all signatures, which comes from an index over the audit chains."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.backends.embedded.signatures import SCHEMA, SqliteSignatureIndex
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.query_hash import compute_query_hash
from shared.errors import WorkspaceError
from shared.provenance.signatures import SIGNED_EVENT
from shared.runtime import Runtime
from shared.signatures.listing import SignatureList
from shared.signatures.ports import SignatureFilter
from shared.timestamps import now
from tests.unit.shared.provenance.chains import PLATFORM, Ledger, open_ledger
from tests.unit.shared.provenance.test_amendments import CHAIN
from tests.unit.shared.provenance.test_signature_checks import SIGNATURE, append_decision, append_decisions, read_export

ALL = SignatureFilter()
EVENT_ID = f"{SIGNED_EVENT}1"
QUERY = {"kql": "Telemetry | count", "parameters": []}


@dataclass
class SignatureLists:
    """Audit chains in a folder, with the list of their signatures.

    Attributes:
        ledger: the chains.
        index: index of the signatures.
    """

    ledger: Ledger
    index: SqliteSignatureIndex

    def open(self) -> SignatureList:
        """Return the list of signatures of another process."""
        return SignatureList(self.index, self.ledger.store)

    async def read_first_page(self, limit: int = 10) -> list[tuple[Any, ...]]:
        """Return target, scope and RecordID of the signatures on the first page."""
        page = await self.open().list_signatures(ALL, "", limit)
        return [tuple(one.content[name] for name in ("target", "scopeKey", "recordID")) for one in page.signatures]


@pytest.fixture
async def signature_lists(tmp_path: Path) -> AsyncIterator[SignatureLists]:
    """Provide empty audit chains and an empty index of signatures."""
    async with AsyncExitStack() as stack:
        database = SqliteDatabase(tmp_path / "signatures.sqlite", SCHEMA)
        stack.push_async_callback(database.close)
        ledger = await stack.enter_async_context(open_ledger(tmp_path))
        yield SignatureLists(ledger, SqliteSignatureIndex(database))


def build_event(user: str, **changes: Any) -> dict[str, Any]:
    """Return the audit event of a signed approval of a query by ann."""
    signature = {
        "userId": user,
        "printedName": "Ann",
        "meaning": "approval",
        "statement": None,
        "signedAt": "2026-11-23T12:00:00.000000Z",
        "authTime": "2026-11-23T11:59:00.000000Z",
        "authMethods": ["key"],
        "recordHash": compute_query_hash(QUERY),
    } | changes
    return {
        "ActionType": "Catalog.WarmQuery.Approved",
        "EntityType": "WarmQuery",
        "EntityID": "q",
        "AfterState": {**QUERY, "approval": {"approvedBy": user, "signature": signature}},
    }


async def test_signatures_of_existing_records_are_listed(signature_lists: SignatureLists) -> None:
    """The list has the signatures of all existing records, newest first, and new signatures appear at once."""
    await append_decisions(signature_lists.ledger, 2)
    target = "DomainAmendments"
    assert await signature_lists.read_first_page() == [
        (target, CHAIN.scope_key, "000000000004"),
        (target, CHAIN.scope_key, "000000000002"),
    ]
    listing = signature_lists.open()
    assert len((await listing.list_signatures(ALL, "", 10)).signatures) == 2
    await append_decisions(signature_lists.ledger, 1)
    page = await listing.list_signatures(ALL, "", 2)
    assert [one.content["recordID"] for one in page.signatures] == ["000000000006", "000000000004"]
    assert page.has_more
    rest = await listing.list_signatures(ALL, page.signatures[-1].place, 2)
    assert ([one.content["recordID"] for one in rest.signatures], rest.has_more) == (["000000000002"], False)


@pytest.mark.parametrize("is_forward", [False, True], ids=["back", "back and forward"])
async def test_signatures_are_listed_after_the_clocks_were_set_back(
    signature_lists: SignatureLists, *, is_forward: bool
) -> None:
    """If clocks were set back, a signature in a new chain is still listed, although its time is before the last run."""
    ahead = SignatureList(
        signature_lists.index, signature_lists.ledger.store, runtime=Runtime(now=lambda: now() + timedelta(minutes=30))
    )
    assert await ahead.try_index_new_signatures(9)
    await append_decisions(signature_lists.ledger, 1)
    listing = ahead if is_forward else signature_lists.open()
    assert len((await listing.list_signatures(ALL, "", 10)).signatures) == 1


def remove_last_records(ledger: Ledger, sequence: int) -> None:
    """Repair the chain: remove the records after a sequence number, and reset the head item."""

    def repair(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM records WHERE sequence > ?", (sequence,))
        connection.execute(
            "UPDATE chains SET (sequence, hash, timestamp) = (SELECT sequence, hash, "
            "coalesce(json_extract(canonical, '$.ApprovedAt'), json_extract(canonical, '$.AmendedAt')) "
            "FROM records WHERE sequence = ?)",
            (sequence,),
        )

    ledger.tamper(repair)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("is_listed_between", [True, False])
async def test_the_list_follows_the_repair_of_a_chain(
    signature_lists: SignatureLists, count: int, *, is_listed_between: bool
) -> None:
    """After the last records of a chain were removed, their signatures are not listed, and new ones are."""
    ledger, listing = signature_lists.ledger, signature_lists.open()
    await append_decisions(ledger, 2)
    first = list((await listing.list_signatures(ALL, "", 10)).signatures)
    remove_last_records(ledger, 2)
    if is_listed_between:
        assert list((await listing.list_signatures(ALL, "", 10)).signatures) == first[1:]
    await append_decisions(ledger, count)
    expected = [record["Signature"]["SignedAt"] for record in await read_export(ledger) if "Signature" in record]
    for one in (listing, signature_lists.open()):
        page = await one.list_signatures(ALL, "", 10)
        assert [each.content["SignedAt"] for each in page.signatures] == expected[::-1]
        assert first[1] in page.signatures
        assert first[0] not in page.signatures


async def test_signatures_of_queries_are_listed(signature_lists: SignatureLists) -> None:
    """A signed approval of a query is listed, and its signature has the property names of audit records."""
    await signature_lists.ledger.events.append_to_chain(PLATFORM, "ann", build_event("ann"), append_id=EVENT_ID)
    [entry] = (await signature_lists.open().list_signatures(ALL, "", 10)).signatures
    assert entry.content == {
        "UserID": "ann",
        "PrintedName": "Ann",
        "Meaning": "approval",
        "Statement": None,
        "SignedAt": "2026-11-23T12:00:00.000000Z",
        "AuthTime": "2026-11-23T11:59:00.000000Z",
        "AuthMethods": ["key"],
        "RecordHash": compute_query_hash(QUERY),
        "target": "PlatformConfig",
        "scopeKey": None,
        "recordID": "000000000001",
    }


@pytest.mark.parametrize(
    "changes", [{"userId": "bob"}, {"recordHash": "0" * 64}, {"signedAt": "now"}, {"signedAt": 1}, {"extra": 1}]
)
async def test_forged_signatures_are_not_listed(signature_lists: SignatureLists, changes: dict[str, Any]) -> None:
    """An event is not listed if its signature belongs to another member or does not match the query."""
    await signature_lists.ledger.events.append_to_chain(
        PLATFORM, "ann", build_event("ann", **changes), append_id=EVENT_ID
    )
    assert await signature_lists.read_first_page() == []


@pytest.mark.parametrize("append_id", ["", "0123456789abcdef0123456789abcdef"])
async def test_events_that_members_wrote_are_not_listed(signature_lists: SignatureLists, append_id: str) -> None:
    """An event that a member wrote over the API is not listed, even if it looks like a signed decision."""
    await signature_lists.ledger.events.append_to_chain(PLATFORM, "ann", build_event("ann"), append_id=append_id)
    assert await signature_lists.read_first_page() == []


async def test_records_without_a_valid_signature_are_not_listed(signature_lists: SignatureLists) -> None:
    """Amendments, damaged records, and decisions without a complete signature are not listed."""
    await append_decision(signature_lists.ledger, "000000000009", {})
    await append_decision(signature_lists.ledger, "000000000008", SIGNATURE.to_record_properties("0" * 64))
    signature_lists.ledger.tamper(
        lambda connection: connection.execute("UPDATE records SET hash = 'x' WHERE sequence = 2")
    )
    assert await signature_lists.read_first_page() == []


async def test_the_list_is_unavailable_until_it_is_indexed(signature_lists: SignatureLists) -> None:
    """The list is unavailable until all existing records are indexed; each indexing run continues the one before."""
    await append_decisions(signature_lists.ledger, 1)
    listing = signature_lists.open()
    assert await listing.try_index_new_signatures(-1) is False
    assert await listing.try_index_new_signatures(10) is True
    assert len(await signature_lists.read_first_page()) == 1


async def test_a_request_that_cannot_complete_the_index_gets_503(
    signature_lists: SignatureLists, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a request cannot complete the index within its time limit, it gets 503 with Retry-After."""
    await append_decisions(signature_lists.ledger, 1)
    monkeypatch.setattr("shared.signatures.listing.INDEX_SECONDS", -1.0)
    with pytest.raises(WorkspaceError) as refused:
        await signature_lists.read_first_page()
    assert (refused.value.code, refused.value.members["retryAfter"]) == ("SIGNATURES_UNAVAILABLE", 10)


async def test_a_request_does_not_wait_for_a_long_indexing_run(
    signature_lists: SignatureLists, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another run adds existing records to the index, a request gets 503 after its own time limit."""
    listing = signature_lists.open()
    monkeypatch.setattr("shared.signatures.listing.INDEX_SECONDS", 0.001)
    async with listing._indexing:
        with pytest.raises(WorkspaceError) as refused:
            await listing.list_signatures(ALL, "", 10)
    assert refused.value.code == "SIGNATURES_UNAVAILABLE"
    assert await listing.try_index_new_signatures(10) is True
