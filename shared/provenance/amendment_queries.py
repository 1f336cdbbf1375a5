"""Reading corrections: by filters, and everything that was corrected about one entity."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from shared.provenance.amendments import Status, amendment_id
from shared.provenance.decisions import about, named
from shared.provenance.hash_rule import LAST_SEQUENCE
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters
from shared.provenance.queries import (
    DEFAULT_LIMIT,
    MAX_BODY_BYTES,
    MAX_LIMIT,
    Answer,
    answered,
    collect,
    json_weight,
    pages,
    query,
)

MAX_CHAIN: Final = 1_000
"""Most entries of an entity's corrections."""


@dataclass(frozen=True, slots=True)
class AmendmentFilters:
    """Which corrections and decisions to give; empty members do not count.

    Attributes:
        entity_id: matches decisions too.
        entity_type: matches decisions too.
        reason_category: of corrections.
        amended_by: author of corrections.
        status: pending: stored as pending, not decided yet; else stored with that Status, decisions included.
        window: dates (AmendedAt, or a decision's own time) and sequences.
    """

    entity_id: str = ""
    entity_type: str = ""
    reason_category: str = ""
    amended_by: str = ""
    status: Status | None = None
    window: Filters = field(default_factory=Filters)

    def filters(self) -> Filters:
        """Return them as the store understands them; that pending ones are undecided remains to be looked up."""
        named = {
            "EntityID": self.entity_id,
            "EntityType": self.entity_type,
            "ReasonCategory": self.reason_category,
            "UserID": self.amended_by,
            "Status": str(self.status or ""),
        }
        originals_only = bool(self.amended_by or self.reason_category)
        return replace(
            self.window,
            equal={name: value for name, value in named.items() if value},
            absent=("AmendmentID",) if originals_only else (),
        )


async def query_amendments(
    store: ChainStore, chain: ChainKey, wanted: AmendmentFilters, *, limit: int = DEFAULT_LIMIT, offset: int = 0
) -> Answer:
    """Return corrections and decisions, newest first; arguments as :func:`shared.provenance.queries.query`."""
    if wanted.status is not Status.PENDING:
        return await query(store, chain, wanted.filters(), limit=limit, offset=offset)
    return await _pending(store, chain, wanted.filters(), min(limit, MAX_LIMIT), offset)


async def entity_chain(store: ChainStore, chain: ChainKey, entity_id: str) -> Answer:
    """Return what was corrected about an entity, and decided, in the order of the chain's links; at most 1,000.

    Decisions are found by their corrections, too: somebody may have edited the entity in their filter fields.
    """
    answer = await collect(store, chain, Filters(equal={"EntityID": entity_id}), newest_first=False, limit=MAX_CHAIN)
    last = answer.records[-1].sequence if answer.has_more else LAST_SEQUENCE
    originals = [amendment_id(record) for record in answer.records if not about(record)]
    there = {record.sequence for record in answer.records}
    decisions = (await named(store, chain, originals)).items()
    missed = [one for of, one in decisions if about(one) == of and one.sequence not in there and one.sequence < last]
    return await _joined(answer, missed) if missed else answer


async def _joined(answer: Answer, missed: Sequence[ChainRecord]) -> Answer:
    more = await answered(missed, len(missed), has_more=False)
    records = sorted((*answer.records, *more.records), key=lambda record: record.sequence)
    shown, damaged = records[:MAX_CHAIN], {*answer.damaged, *more.damaged}
    return Answer(
        shown,
        answer.scanned + more.scanned,
        answer.has_more or len(records) > MAX_CHAIN,
        [amendment_id(record) for record in shown if amendment_id(record) in damaged],
    )


async def _pending(store: ChainStore, chain: ChainKey, filters: Filters, limit: int, offset: int) -> Answer:
    undecided: list[ChainRecord] = []
    scanned = skipped = size = 0
    async for page, read, _ in pages(store, chain, filters, newest_first=True, most=max(limit, DEFAULT_LIMIT)):
        scanned += read
        decided = await named(store, chain, [amendment_id(record) for record in page])
        scanned += len(decided)
        still = [record for record in page if amendment_id(record) not in decided]
        skip = min(offset - skipped, len(still))
        skipped += skip
        undecided += still[skip:]
        size += sum(map(json_weight, still[skip:]))
        if len(undecided) > limit or size > MAX_BODY_BYTES:
            break
    fitting = _fitting(undecided[:limit])
    return await answered(fitting, scanned, has_more=len(undecided) > len(fitting))


def _fitting(records: Sequence[ChainRecord]) -> Sequence[ChainRecord]:
    """Return as many records from the start as one reply holds, one at least."""
    size = 0
    for position, record in enumerate(records):
        size += json_weight(record)
        if position and size > MAX_BODY_BYTES:
            return records[:position]
    return records
