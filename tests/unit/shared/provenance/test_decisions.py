"""Decisions about corrections are found by what records say, whatever became of their filter fields."""

import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.errors import WorkspaceError
from shared.provenance import decisions, queries
from shared.provenance.amendments import Amendments, AmendmentState
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.decisions import find_decisions
from shared.provenance.hash_rule import record_id
from shared.provenance.ports import ChainStore, Filters
from shared.provenance.queries import AmendmentFilters, query_amendments, query_entity_amendments
from tests.unit.shared.provenance.chains import BATCH, Ledger, event, ledger, workspace
from tests.unit.shared.provenance.faulty_store import FaultyStore
from tests.unit.shared.provenance.test_amendments import CHAIN, STRICT, body, refusal

FIRST, SECOND = record_id(1), record_id(2)
LOST = ["amendment_id", "status", "entity_id", "entity_type", "user_id", "timestamp"]


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Ledger]:
    """A correction that was approved, and one that was not decided."""
    async with ledger(tmp_path) as opened:
        yield await filled(opened)


async def filled(plant: Ledger) -> Ledger:
    """Create two corrections, and approve the first."""
    amendments = Amendments(plant.events.log, plant.store)
    for _ in range(2):
        await amendments.create(CHAIN, "ann", body(), STRICT)
    await amendments.approve(CHAIN, FIRST, "bob")
    return plant


def edit(plant: Ledger, change: str, sequence: int) -> None:
    """Change columns of a record behind the service's back."""
    plant.tamper(lambda file: file.execute(f"UPDATE records SET {change} WHERE sequence = {sequence}"))


@pytest.mark.parametrize("column", LOST)
async def test_a_decision_stays_one_whatever_filter_field_it_lost(plant: Ledger, column: str) -> None:
    """A second decision is refused by the content of the first."""
    edit(plant, f"{column} = NULL", 3)
    amendments = Amendments(plant.events.log, plant.store)
    for decide in (amendments.reject(CHAIN, FIRST, "bob", None), amendments.approve(CHAIN, FIRST, "bob")):
        assert (await refusal(decide))[1:] == ("AMENDMENT_NOT_PENDING", {"currentStatus": "approved"})
    assert not (await plant.verify(CHAIN)).chain_valid
    await amendments.approve(CHAIN, SECOND, "bob")


@pytest.mark.parametrize(
    "change",
    ["status = 'approved'", "status = NULL", "amendment_id = '000000000009'", "user_id = 'eve'", "entity_id = NULL"],
)
async def test_a_correction_whose_filter_fields_were_edited_is_not_decided(plant: Ledger, change: str) -> None:
    """It is told as damaged, be it that somebody made it look decided."""
    edit(plant, change, 2)
    amendments = Amendments(plant.events.log, plant.store)
    assert (await refusal(amendments.approve(CHAIN, SECOND, "bob")))[1] == "RECORD_DAMAGED"


@pytest.mark.parametrize(
    "change", ["canonical = replace(CAST(canonical AS TEXT), 'approv', 'reject')", "canonical = 'x'", "hash = 'x'"]
)
async def test_a_damaged_decision_lets_no_other_be_made(plant: Ledger, change: str) -> None:
    """Its content decides nothing once its digest does not fit, and its filter field is reason enough to refuse."""
    edit(plant, change, 3)
    amendments = Amendments(plant.events.log, plant.store)
    assert (await refusal(amendments.reject(CHAIN, FIRST, "bob", None)))[1] == "RECORD_DAMAGED"


async def test_a_record_that_is_made_to_look_like_a_decision_is_none(plant: Ledger) -> None:
    """A filter field that the content does not have is reason to refuse, never a decision."""
    edit(plant, "amendment_id = '000000000002', status = 'rejected'", 3)
    amendments = Amendments(plant.events.log, plant.store)
    assert (await refusal(amendments.approve(CHAIN, SECOND, "bob")))[1] == "RECORD_DAMAGED"
    assert (await refusal(amendments.approve(CHAIN, FIRST, "bob")))[1] == "AMENDMENT_NOT_PENDING"


@pytest.mark.parametrize("column", LOST)
async def test_a_list_without_filters_gives_every_record(plant: Ledger, column: str) -> None:
    """Only a filter that the caller gives looks at filter fields; pending ones are told by what was decided."""
    for sequence in (1, 3):
        edit(plant, f"{column} = NULL", sequence)
    answer = await query_amendments(plant.store, CHAIN, AmendmentFilters())
    assert [record.sequence for record in answer.records] == [3, 2, 1]
    pending = await query_amendments(plant.store, CHAIN, AmendmentFilters(status=AmendmentState.PENDING))
    assert [record.sequence for record in pending.records] == [2]
    entity = await query_entity_amendments(plant.store, CHAIN, "S-1")
    assert [record.sequence for record in entity.records] == ([2] if column == "entity_id" else [1, 2, 3])


@pytest.mark.parametrize("change", ["entity_id = NULL", "entity_id = 'S-2'", "canonical = 'x', entity_id = NULL"])
async def test_an_entitys_decisions_are_found_by_their_corrections(plant: Ledger, change: str) -> None:
    """Whatever entity their filter field names; none comes twice, and a damaged one is named."""
    edit(plant, change, 3)
    entity = await query_entity_amendments(plant.store, CHAIN, "S-1")
    assert ([record.sequence for record in entity.records], entity.has_more) == ([1, 2, 3], False)
    assert list(entity.damaged) == ([record_id(3)] if "canonical" in change else [])


async def test_an_entitys_chain_stays_a_prefix(plant: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision beyond the cap is not put behind it."""
    edit(plant, "entity_id = NULL", 3)
    for most, expected in ((1, [1]), (2, [1, 2]), (3, [1, 2, 3])):
        monkeypatch.setattr(queries, "MAX_CHAIN", most)
        entity = await query_entity_amendments(plant.store, CHAIN, "S-1")
        assert ([record.sequence for record in entity.records], entity.has_more) == (expected, most < 3)


async def test_an_entitys_corrections_need_no_status(plant: Ledger) -> None:
    """Nor no action: what they say tells them from events."""
    edit(plant, "status = NULL, action_type = 'x'", 3)
    entity = await query_entity_amendments(plant.store, CHAIN, "S-1")
    assert [record.sequence for record in entity.records] == [1, 2, 3]


class Plain(FaultyStore):
    """A store in memory that finds decisions by their filter fields alone."""

    def lose(self, sequence: int, *names: str) -> None:
        """Take filter fields from a record."""
        records = self.chains[CHAIN]
        left = {name: value for name, value in records[sequence - 1].projection.items() if name not in names}
        records[sequence - 1] = records[sequence - 1]._replace(projection=left)


@pytest.fixture
async def plain() -> Plain:
    """The same corrections there, and more after them."""
    store = Plain(max_batch_records=1)
    amendments = Amendments(ChainLog(store, workspace), store)
    for _ in range(2):
        await amendments.create(CHAIN, "ann", body(), STRICT)
    await amendments.approve(CHAIN, FIRST, "bob")
    for _ in range(6):
        await amendments.create(CHAIN, "ann", body(), STRICT)
    return store


async def refused(store: ChainStore) -> str:
    """Return the code that a rejection of the first correction is refused with, empty when it is not."""
    try:
        await Amendments(ChainLog(store, workspace), store).reject(CHAIN, FIRST, "bob", None)
    except WorkspaceError as error:
        return error.code
    return ""


async def test_where_no_index_looks_at_content_the_next_records_are_read(plain: Plain) -> None:
    """A decision near its correction is found by what it says."""
    plain.lose(3, "AmendmentID", "Status")
    assert await refused(plain) == "AMENDMENT_NOT_PENDING"


@pytest.mark.parametrize(("most", "found"), [(1, False), (2, True), (8, True), (50, True)])
async def test_reading_is_bounded_and_says_how_far_it_came(
    plain: Plain, monkeypatch: pytest.MonkeyPatch, most: int, *, found: bool
) -> None:
    """Beyond the bound only filter fields tell, and who asks learns where that begins."""
    monkeypatch.setattr(decisions, "READ_AT_MOST", most)
    plain.lose(3, "AmendmentID")
    told = await find_decisions(plain, CHAIN, [FIRST])
    assert (FIRST in told.by_amendment, told.whole) == (found, most >= 8)
    assert told.seen_to == min(1 + most, 9)
    further = await find_decisions(plain, CHAIN, [FIRST], told.seen_to)
    assert further.seen_to == min(1 + 2 * most, 9)


@pytest.mark.parametrize("forged", ["NULL", "'9999'", "''", "5"])
@pytest.mark.parametrize("edited", [1, 4, 5, 8])
async def test_an_edited_time_hides_no_other_record(tmp_path: Path, edited: int, forged: str) -> None:
    """A window of dates is found by what records say; the one whose filter field was edited is missed alone."""
    start = datetime(2026, 1, 5, tzinfo=UTC)
    ticks = itertools.count()
    async with ledger(tmp_path) as plant:
        log = ChainLog(plant.store, workspace, clock=lambda: start + timedelta(seconds=next(ticks)))
        for _ in range(8):
            await EventLog(log).write(BATCH, "u", event(1))
        times = {record.sequence: record.projection["Timestamp"] for record in await plant.records(BATCH)}
        edit(plant, f"timestamp = {forged}", edited)
        for first, last in itertools.combinations_with_replacement(range(1, 9), 2):
            page = await plant.store.scan(
                BATCH, Filters(start=times[first], end=times[last]), limit=99, max_bytes=10**9, newest_first=False
            )
            assert [one.sequence for one in page.records] == [n for n in range(first, last + 1) if n != edited]
        await log.close()
