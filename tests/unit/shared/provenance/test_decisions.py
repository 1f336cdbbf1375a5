"""Tests that decisions are found by their content, even if their filter fields were edited in the store."""

import itertools
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.errors import WorkspaceError
from shared.provenance import decisions, queries
from shared.provenance.amendments import Amendments, AmendmentState
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.decisions import FoundDecisions, find_decisions, read_decided_amendment_id
from shared.provenance.hash_rule import format_record_id
from shared.provenance.ports import ChainRecord, ChainStore, Filters
from shared.provenance.queries import AmendmentFilters, query_amendments, query_entity_amendments
from shared.runtime import Runtime
from tests.unit.shared.provenance.chains import BATCH, Ledger, build_event, get_workspace_id, open_ledger
from tests.unit.shared.provenance.faulty_store import FaultyStore
from tests.unit.shared.provenance.test_amendments import CHAIN, STRICT, build_body, catch_rejection

FIRST, SECOND = format_record_id(1), format_record_id(2)
LOST = ["amendment_id", "status", "entity_id", "entity_type", "user_id", "timestamp"]


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Provide one approved and one pending amendment."""
    async with open_ledger(tmp_path) as opened:
        yield await create_amendments(opened)


async def create_amendments(ledger: Ledger) -> Ledger:
    """Create two amendments and approve the first."""
    amendments = Amendments(ledger.events.log, ledger.store)
    for _ in range(2):
        await amendments.create(CHAIN, "ann", build_body(), STRICT)
    await amendments.approve(CHAIN, FIRST, "bob")
    return ledger


def edit_record(ledger: Ledger, change: str, sequence: int) -> None:
    """Change columns of a record directly in the database file."""
    ledger.tamper(lambda file: file.execute(f"UPDATE records SET {change} WHERE sequence = {sequence}"))


@pytest.mark.parametrize("column", LOST)
async def test_a_decision_without_filter_fields_is_found(ledger: Ledger, column: str) -> None:
    """A second decision is rejected, even if the filter fields of the first decision were removed."""
    edit_record(ledger, f"{column} = NULL", 3)
    amendments = Amendments(ledger.events.log, ledger.store)
    for decide in (amendments.reject(CHAIN, FIRST, "bob", None), amendments.approve(CHAIN, FIRST, "bob")):
        assert (await catch_rejection(decide))[1:] == ("AMENDMENT_NOT_PENDING", {"currentStatus": "approved"})
    assert not (await ledger.verify(CHAIN)).chain_valid
    await amendments.approve(CHAIN, SECOND, "bob")


@pytest.mark.parametrize(
    "change",
    ["status = 'approved'", "status = NULL", "amendment_id = '000000000009'", "user_id = 'eve'", "entity_id = NULL"],
)
async def test_an_amendment_with_edited_filter_fields_cannot_be_decided(ledger: Ledger, change: str) -> None:
    """An amendment with edited filter fields counts as damaged, even if the edit makes it look like a decided one."""
    edit_record(ledger, change, 2)
    amendments = Amendments(ledger.events.log, ledger.store)
    assert (await catch_rejection(amendments.approve(CHAIN, SECOND, "bob")))[1] == "RECORD_DAMAGED"


@pytest.mark.parametrize(
    "change", ["canonical = replace(CAST(canonical AS TEXT), 'approv', 'reject')", "canonical = 'x'", "hash = 'x'"]
)
async def test_a_damaged_decision_prevents_another_decision(ledger: Ledger, change: str) -> None:
    """A damaged decision has no effect, but prevents a new decision while its filter field names the amendment."""
    edit_record(ledger, change, 3)
    amendments = Amendments(ledger.events.log, ledger.store)
    assert (await catch_rejection(amendments.reject(CHAIN, FIRST, "bob", None)))[1] == "RECORD_DAMAGED"


async def test_a_forged_filter_field_is_not_a_decision(ledger: Ledger) -> None:
    """If a decision's filter field was changed to name another amendment, that amendment is not decided."""
    edit_record(ledger, "amendment_id = '000000000002', status = 'rejected'", 3)
    amendments = Amendments(ledger.events.log, ledger.store)
    assert (await catch_rejection(amendments.approve(CHAIN, SECOND, "bob")))[1] == "RECORD_DAMAGED"
    assert (await catch_rejection(amendments.approve(CHAIN, FIRST, "bob")))[1] == "AMENDMENT_NOT_PENDING"


@pytest.mark.parametrize("column", LOST)
async def test_a_query_without_filters_returns_every_record(ledger: Ledger, column: str) -> None:
    """A record with an edited filter field is missing only from queries that filter by this field."""
    for sequence in (1, 3):
        edit_record(ledger, f"{column} = NULL", sequence)
    answer = await query_amendments(ledger.store, ledger.overview, CHAIN, AmendmentFilters())
    assert [record.sequence for record in answer.records] == [3, 2, 1]
    wanted = AmendmentFilters(status=AmendmentState.PENDING)
    pending = await query_amendments(ledger.store, ledger.overview, CHAIN, wanted)
    assert [record.sequence for record in pending.records] == [2]
    entity = await query_entity_amendments(ledger.store, CHAIN, "S-1")
    assert [record.sequence for record in entity.records] == ([2] if column == "entity_id" else [1, 2, 3])


@pytest.mark.parametrize("change", ["entity_id = NULL", "entity_id = 'S-2'", "canonical = 'x', entity_id = NULL"])
async def test_decisions_of_an_entity_are_found_by_their_amendments(ledger: Ledger, change: str) -> None:
    """Decisions with edited filter fields are still found by their amendments, and damaged decisions are reported."""
    edit_record(ledger, change, 3)
    entity = await query_entity_amendments(ledger.store, CHAIN, "S-1")
    assert ([record.sequence for record in entity.records], entity.has_more) == ([1, 2, 3], False)
    assert list(entity.damaged) == ([format_record_id(3)] if "canonical" in change else [])


async def test_a_truncated_list_of_entity_records_has_the_first_records(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an entity has too many records, the result has only the first records, without any later decision."""
    edit_record(ledger, "entity_id = NULL", 3)
    for most, expected in ((1, [1]), (2, [1, 2]), (3, [1, 2, 3])):
        monkeypatch.setattr(queries, "MAX_CHAIN", most)
        entity = await query_entity_amendments(ledger.store, CHAIN, "S-1")
        assert ([record.sequence for record in entity.records], entity.has_more) == (expected, most < 3)


async def test_records_of_an_entity_are_parsed_outside_the_event_loop(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records of an entity are parsed in worker threads, because there can be a thousand large ones."""
    edit_record(ledger, "entity_id = NULL", 3)
    threads = set[int]()

    def record_thread(record: ChainRecord) -> str:
        threads.add(threading.get_ident())
        return read_decided_amendment_id(record)

    monkeypatch.setattr(queries, "read_decided_amendment_id", record_thread)
    await query_entity_amendments(ledger.store, CHAIN, "S-1")
    assert threads
    assert threading.get_ident() not in threads


async def test_amendments_without_status_are_found(ledger: Ledger) -> None:
    """A record whose content is an amendment is an amendment, even if its filter fields lack status and action."""
    edit_record(ledger, "status = NULL, action_type = 'x'", 3)
    entity = await query_entity_amendments(ledger.store, CHAIN, "S-1")
    assert [record.sequence for record in entity.records] == [1, 2, 3]


class FilterFieldStore(FaultyStore):
    """Chain store in memory that finds decisions only by their filter fields."""

    def remove_filter_fields(self, sequence: int, *names: str) -> None:
        """Remove some filter fields of a stored record."""
        records = self.chains[CHAIN]
        left = {name: value for name, value in records[sequence - 1].projection.items() if name not in names}
        records[sequence - 1] = records[sequence - 1]._replace(projection=left)


@pytest.fixture
async def filter_field_store() -> FilterFieldStore:
    """Return a FilterFieldStore with one approved and seven pending amendments."""
    store = FilterFieldStore(max_batch_records=1)
    amendments = Amendments(ChainLog(store, get_workspace_id), store)
    for _ in range(2):
        await amendments.create(CHAIN, "ann", build_body(), STRICT)
    await amendments.approve(CHAIN, FIRST, "bob")
    for _ in range(6):
        await amendments.create(CHAIN, "ann", build_body(), STRICT)
    return store


async def read_rejection_code(store: ChainStore) -> str:
    """Try to decide the first amendment; return the error code, or an empty text if the decision is accepted."""
    try:
        await Amendments(ChainLog(store, get_workspace_id), store).reject(CHAIN, FIRST, "bob", None)
    except WorkspaceError as error:
        return error.code
    return ""


async def test_without_an_index_decisions_are_searched_in_the_next_records(
    filter_field_store: FilterFieldStore,
) -> None:
    """If the store has no index, a decision without filter fields is found in the records after its amendment."""
    filter_field_store.remove_filter_fields(3, "AmendmentID", "Status")
    assert await read_rejection_code(filter_field_store) == "AMENDMENT_NOT_PENDING"


@pytest.mark.parametrize(("most", "found"), [(1, False), (2, True), (8, True), (50, True)])
async def test_a_search_by_content_is_limited_and_states_its_end(
    filter_field_store: FilterFieldStore, monkeypatch: pytest.MonkeyPatch, most: int, *, found: bool
) -> None:
    """Only a limited number of records is searched by content; the result states the last record that was searched."""
    monkeypatch.setattr(decisions, "READ_AT_MOST", most)
    filter_field_store.remove_filter_fields(3, "AmendmentID")
    result = await find_decisions(filter_field_store, CHAIN, [FIRST])
    assert (FIRST in result.by_amendment, result.is_complete) == (found, most >= 8)
    assert result.seen_to == min(1 + most, 9)
    further = await find_decisions(filter_field_store, CHAIN, [FIRST], result.seen_to)
    assert further.seen_to == min(1 + 2 * most, 9)


@pytest.mark.parametrize(("last", "found", "is_complete"), [(2, False, True), (3, True, True), (4, True, False)])
async def test_decisions_after_a_record_can_be_left_out(
    ledger: Ledger, last: int, *, found: bool, is_complete: bool
) -> None:
    """Decisions after a record can be left out; the search is complete if it has read all records before."""
    by_amendment = (await find_decisions(ledger.store, CHAIN, [FIRST])).by_amendment
    selected = FoundDecisions(by_amendment, seen_to=3, is_complete=False).select_decisions_up_to(last)
    assert (FIRST in selected.by_amendment, selected.is_complete) == (found, is_complete)


@pytest.mark.parametrize("forged", ["NULL", "'9999'", "''", "5"])
@pytest.mark.parametrize("edited", [1, 4, 5, 8])
async def test_only_records_with_an_edited_time_are_missing_from_date_queries(
    tmp_path: Path, edited: int, forged: str
) -> None:
    """If the time of a record was edited, only this record is missing from queries by date."""
    start = datetime(2026, 1, 5, tzinfo=UTC)
    ticks = itertools.count()
    async with open_ledger(tmp_path) as ledger:
        log = ChainLog(
            ledger.store, get_workspace_id, runtime=Runtime(now=lambda: start + timedelta(seconds=next(ticks)))
        )
        for _ in range(8):
            await EventLog(log).append_to_chain(BATCH, "u", build_event(1))
        times = {record.sequence: record.projection["Timestamp"] for record in await ledger.records(BATCH)}
        edit_record(ledger, f"timestamp = {forged}", edited)
        for first, last in itertools.combinations_with_replacement(range(1, 9), 2):
            page = await ledger.store.scan(
                BATCH, Filters(start=times[first], end=times[last]), limit=99, max_bytes=10**9, newest_first=False
            )
            assert [one.sequence for one in page.records] == [n for n in range(first, last + 1) if n != edited]
        await log.close()
