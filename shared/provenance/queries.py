"""Queries and exports of a chain, page by page."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from shared.provenance.amendments import AmendmentState, amendment_id
from shared.provenance.decisions import decided_amendment_id, look_up_decisions
from shared.provenance.hash_rule import LAST_SEQUENCE, record_id
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters
from shared.provenance.records import build_placeholder, normalize_record, to_json
from shared.worker_threads import pause_garbage_collection

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
DEFAULT_EXPORT_LIMIT: Final = 10_000
MAX_EXPORT_LIMIT: Final = 100_000
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""Most bytes of one reply; what is cut off shows in ``has_more``."""

_PAGE_RECORDS: Final = 1_000
_PAGE_BYTES: Final = 8_000_000
_FRAME: Final = 2


@dataclass(frozen=True, slots=True)
class AuditQueryResult:
    """What a query or an export gives.

    Attributes:
        records: in the order asked for.
        scanned: records read to answer it.
        has_more: further matches of the same filters and window follow.
        damaged: RecordIDs of those whose place somebody left no record in; a stand-in is given for each.
    """

    records: Sequence[ChainRecord]
    scanned: int
    has_more: bool
    damaged: Sequence[str] = ()

    def json_array(self) -> bytes:
        """Return the records as a JSON array, each as it was stored, with its Hash."""
        return b"[%b]" % b",".join(to_json(record) for record in self.records)


async def query(
    store: ChainStore, chain: ChainKey, filters: Filters, *, limit: int = DEFAULT_LIMIT, offset: int = 0
) -> AuditQueryResult:
    """Return the newest records that match, newest first.

    Args:
        store: keeps the chain.
        chain: which chain; one never written gives nothing.
        filters: what to match.
        limit: most records, clamped to :data:`MAX_LIMIT`.
        offset: matches to skip first.
    """
    return await collect(store, chain, filters, newest_first=True, limit=min(limit, MAX_LIMIT), offset=offset)


async def export(
    store: ChainStore,
    chain: ChainKey,
    filters: Filters,
    *,
    limit: int = DEFAULT_EXPORT_LIMIT,
    weigh: Callable[[ChainRecord], int] | None = None,
) -> AuditQueryResult:
    """Return the oldest records that match, oldest first, up to 64 MiB of body.

    Args:
        store: keeps the chain.
        chain: which chain; one never written gives nothing.
        filters: what to match.
        limit: most records, clamped to :data:`MAX_EXPORT_LIMIT`.
        weigh: gives the bytes that a record takes in the body; left out: as JSON.
    """
    most = min(limit, MAX_EXPORT_LIMIT)
    return await collect(store, chain, filters, newest_first=False, limit=most, weigh=weigh or json_weight)


def json_weight(record: ChainRecord) -> int:
    """Return how many bytes a record takes in a JSON array."""
    return len(record.canonical) + len(record.hash) + len(',"Hash":"",')


async def collect(
    store: ChainStore,
    chain: ChainKey,
    filters: Filters,
    *,
    newest_first: bool,
    limit: int,
    offset: int = 0,
    weigh: Callable[[ChainRecord], int] = json_weight,
) -> AuditQueryResult:
    """Return the first ``limit`` matches after ``offset`` in an order, or fewer when the body is full."""
    records: list[ChainRecord] = []
    size, scanned, more = _FRAME, 0, False
    async for page, read, following in iterate_pages(
        store, chain, filters, newest_first=newest_first, offset=offset, most=limit
    ):
        scanned, more = scanned + read, following
        for position, record in enumerate(page):
            size += weigh(record)
            if records and (len(records) >= limit or size > MAX_BODY_BYTES):
                return await build_result(records, scanned, has_more=True)
            records.append(record)
            more = following or position + 1 < len(page)
        if len(records) >= limit:
            break
    return await build_result(records, scanned, has_more=more)


async def build_result(records: Sequence[ChainRecord], scanned: int, *, has_more: bool) -> AuditQueryResult:
    """Return records as an answer in which a damaged one does not keep the others from being read."""

    def shown() -> AuditQueryResult:
        given = [normalize_record(record) for record in records]
        pairs = list(zip(records, given, strict=True))
        damaged = [record_id(record.sequence) for record, shown in pairs if shown is None]
        return AuditQueryResult(
            [shown or build_placeholder(record) for record, shown in pairs], scanned, has_more, damaged
        )

    with pause_garbage_collection(sum(len(record.canonical) for record in records)):
        return await asyncio.to_thread(shown)


async def iterate_pages(
    store: ChainStore,
    chain: ChainKey,
    filters: Filters,
    *,
    newest_first: bool,
    offset: int = 0,
    most: int = _PAGE_RECORDS,
) -> AsyncIterator[tuple[Sequence[ChainRecord], int, bool]]:
    """Give the matches in pages: records, how many the store read for them, and whether more follow.

    Args:
        store: keeps the chain.
        chain: which chain.
        filters: what to match.
        newest_first: descending order, else ascending.
        offset: matches to skip first.
        most: records of one page; as many as are wanted in all, when few are.
    """
    limit = max(1, min(most, _PAGE_RECORDS))
    while True:
        page = await store.scan(
            chain, filters, newest_first=newest_first, offset=offset, limit=limit, max_bytes=_PAGE_BYTES
        )
        yield page.records, page.scanned, page.more
        if not page.more or not page.records:
            return
        last = page.records[-1].sequence
        filters = replace(filters, to_sequence=last - 1) if newest_first else replace(filters, from_sequence=last + 1)
        offset = 0


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
    status: AmendmentState | None = None
    window: Filters = field(default_factory=Filters)

    def to_filters(self) -> Filters:
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
) -> AuditQueryResult:
    """Return corrections and decisions, newest first; arguments as :func:`shared.provenance.queries.query`."""
    if wanted.status is not AmendmentState.PENDING:
        return await query(store, chain, wanted.to_filters(), limit=limit, offset=offset)
    return await _pending(store, chain, wanted.to_filters(), min(limit, MAX_LIMIT), offset)


async def query_entity_amendments(store: ChainStore, chain: ChainKey, entity_id: str) -> AuditQueryResult:
    """Return what was corrected about an entity, and decided, in the order of the chain's links; at most 1,000.

    Decisions are found by their corrections, too: somebody may have edited the entity in their filter fields.
    """
    answer = await collect(store, chain, Filters(equal={"EntityID": entity_id}), newest_first=False, limit=MAX_CHAIN)
    last = answer.records[-1].sequence if answer.has_more else LAST_SEQUENCE
    originals = [amendment_id(record) for record in answer.records if not decided_amendment_id(record)]
    there = {record.sequence for record in answer.records}
    decisions = (await look_up_decisions(store, chain, originals)).items()
    missed = [
        one
        for of, one in decisions
        if decided_amendment_id(one) == of and one.sequence not in there and one.sequence < last
    ]
    return await _joined(answer, missed) if missed else answer


async def _joined(answer: AuditQueryResult, missed: Sequence[ChainRecord]) -> AuditQueryResult:
    more = await build_result(missed, len(missed), has_more=False)
    records = sorted((*answer.records, *more.records), key=lambda record: record.sequence)
    shown, damaged = records[:MAX_CHAIN], {*answer.damaged, *more.damaged}
    return AuditQueryResult(
        shown,
        answer.scanned + more.scanned,
        answer.has_more or len(records) > MAX_CHAIN,
        [amendment_id(record) for record in shown if amendment_id(record) in damaged],
    )


async def _pending(store: ChainStore, chain: ChainKey, filters: Filters, limit: int, offset: int) -> AuditQueryResult:
    undecided: list[ChainRecord] = []
    scanned = skipped = size = 0
    async for page, read, _ in iterate_pages(store, chain, filters, newest_first=True, most=max(limit, DEFAULT_LIMIT)):
        scanned += read
        decided = await look_up_decisions(store, chain, [amendment_id(record) for record in page])
        scanned += len(decided)
        still = [record for record in page if amendment_id(record) not in decided]
        skip = min(offset - skipped, len(still))
        skipped += skip
        undecided += still[skip:]
        size += sum(map(json_weight, still[skip:]))
        if len(undecided) > limit or size > MAX_BODY_BYTES:
            break
    fitting = _fitting(undecided[:limit])
    return await build_result(fitting, scanned, has_more=len(undecided) > len(fitting))


def _fitting(records: Sequence[ChainRecord]) -> Sequence[ChainRecord]:
    """Return as many records from the start as one reply holds, one at least."""
    size = 0
    for position, record in enumerate(records):
        size += json_weight(record)
        if position and size > MAX_BODY_BYTES:
            return records[:position]
    return records
