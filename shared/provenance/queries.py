"""Queries and exports of events, amendments and decisions of a chain, page by page."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from shared.provenance.amendments import AmendmentState, amendment_id
from shared.provenance.decisions import decided_amendment_id, look_up_decisions
from shared.provenance.hash_rule import LAST_SEQUENCE, record_id
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters
from shared.provenance.records import build_placeholder, normalize_record, record_to_json
from shared.worker_threads import pause_garbage_collection

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
DEFAULT_EXPORT_LIMIT: Final = 10_000
MAX_EXPORT_LIMIT: Final = 100_000
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of one reply in bytes; a larger result is cut, and ``has_more`` is true."""

_PAGE_RECORDS: Final = 1_000
_PAGE_BYTES: Final = 8_000_000
_FRAME: Final = 2


@dataclass(frozen=True, slots=True)
class AuditQueryResult:
    """Result of a query or an export.

    Attributes:
        records: records in the requested order.
        scanned: number of records that were read.
        has_more: whether more records match than were returned.
        damaged: RecordIDs of damaged records, which are replaced by placeholders.
    """

    records: Sequence[ChainRecord]
    scanned: int
    has_more: bool
    damaged: Sequence[str] = ()

    def to_json_array(self) -> bytes:
        """Return the JSON array of the records. Each has its stored members and its Hash."""
        return b"[%b]" % b",".join(record_to_json(record) for record in self.records)


async def query(
    store: ChainStore, chain: ChainKey, filters: Filters, *, limit: int = DEFAULT_LIMIT, offset: int = 0
) -> AuditQueryResult:
    """Return the newest matching records, newest first.

    Args:
        store: store of the chain.
        chain: chain to query; a chain that does not exist has no records.
        filters: conditions on the records.
        limit: maximum number of records, clamped to :data:`MAX_LIMIT`.
        offset: number of matches to skip.
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
    """Return the oldest matching records, oldest first, as far as they fit in a reply of 64 MiB.

    Args:
        store: store of the chain.
        chain: chain to export; a chain that does not exist has no records.
        filters: conditions on the records.
        limit: maximum number of records, clamped to :data:`MAX_EXPORT_LIMIT`.
        weigh: returns the number of bytes that a record takes in the reply; by default, its size as JSON.
    """
    most = min(limit, MAX_EXPORT_LIMIT)
    return await collect(store, chain, filters, newest_first=False, limit=most, weigh=weigh or measure_json)


def measure_json(record: ChainRecord) -> int:
    """Return the number of bytes that a record takes in a JSON array."""
    return len(record.canonical) + len(record.hash) + len(',"Hash":"",')


async def collect(
    store: ChainStore,
    chain: ChainKey,
    filters: Filters,
    *,
    newest_first: bool,
    limit: int,
    offset: int = 0,
    weigh: Callable[[ChainRecord], int] = measure_json,
) -> AuditQueryResult:
    """Return up to ``limit`` matches after the first ``offset``; fewer if the reply reaches its maximum size."""
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
    """Return a query result with these records; placeholders replace the damaged ones."""

    def convert() -> AuditQueryResult:
        normalized = [normalize_record(record) for record in records]
        pairs = list(zip(records, normalized, strict=True))
        damaged = [record_id(record.sequence) for record, sound in pairs if sound is None]
        return AuditQueryResult(
            [sound or build_placeholder(record) for record, sound in pairs], scanned, has_more, damaged
        )

    with pause_garbage_collection(sum(len(record.canonical) for record in records)):
        return await asyncio.to_thread(convert)


async def iterate_pages(
    store: ChainStore,
    chain: ChainKey,
    filters: Filters,
    *,
    newest_first: bool,
    offset: int = 0,
    most: int = _PAGE_RECORDS,
) -> AsyncIterator[tuple[Sequence[ChainRecord], int, bool]]:
    """Yield the matching records in pages: the records, the number of records read, and whether another page follows.

    Args:
        store: store of the chain.
        chain: chain to query.
        filters: conditions on the records.
        newest_first: descending order, otherwise ascending.
        offset: number of matches to skip.
        most: maximum number of records in a page.
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
"""Maximum number of amendments and decisions that are returned for one entity."""


@dataclass(frozen=True, slots=True)
class AmendmentFilters:
    """Conditions of a query for amendments and decisions; an empty condition matches every record.

    Attributes:
        entity_id: entity of amendments and decisions.
        entity_type: type of this entity.
        reason_category: reason category of amendments.
        amended_by: author of amendments.
        status: pending matches amendments without a decision; another state matches amendments and decisions that are
            stored with this Status.
        window: range of dates (AmendedAt, or the time of a decision) and sequences.
    """

    entity_id: str = ""
    entity_type: str = ""
    reason_category: str = ""
    amended_by: str = ""
    status: AmendmentState | None = None
    window: Filters = field(default_factory=Filters)

    def to_filters(self) -> Filters:
        """Return the filters for the store. They do not exclude amendments that have a decision."""
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
    """Return matching amendments and decisions, newest first; see :func:`query` for the arguments."""
    if wanted.status is not AmendmentState.PENDING:
        return await query(store, chain, wanted.to_filters(), limit=limit, offset=offset)
    return await _query_pending(store, chain, wanted.to_filters(), min(limit, MAX_LIMIT), offset)


async def query_entity_amendments(store: ChainStore, chain: ChainKey, entity_id: str) -> AuditQueryResult:
    """Return an entity's amendments and decisions in the order of the chain, at most 1,000.

    Decisions are also found by their amendments, because their filter fields may have been edited.
    """
    answer = await collect(store, chain, Filters(equal={"EntityID": entity_id}), newest_first=False, limit=MAX_CHAIN)
    last = answer.records[-1].sequence if answer.has_more else LAST_SEQUENCE
    originals = [amendment_id(record) for record in answer.records if not decided_amendment_id(record)]
    present = {record.sequence for record in answer.records}
    decisions = (await look_up_decisions(store, chain, originals)).items()
    missed = [
        one
        for amendment, one in decisions
        if decided_amendment_id(one) == amendment and one.sequence not in present and one.sequence < last
    ]
    return await _merge_results(answer, missed) if missed else answer


async def _merge_results(answer: AuditQueryResult, missed: Sequence[ChainRecord]) -> AuditQueryResult:
    more = await build_result(missed, len(missed), has_more=False)
    records = sorted((*answer.records, *more.records), key=lambda record: record.sequence)
    first, damaged = records[:MAX_CHAIN], {*answer.damaged, *more.damaged}
    return AuditQueryResult(
        first,
        answer.scanned + more.scanned,
        answer.has_more or len(records) > MAX_CHAIN,
        [amendment_id(record) for record in first if amendment_id(record) in damaged],
    )


async def _query_pending(
    store: ChainStore, chain: ChainKey, filters: Filters, limit: int, offset: int
) -> AuditQueryResult:
    undecided: list[ChainRecord] = []
    scanned = skipped = size = 0
    async for page, read, _ in iterate_pages(store, chain, filters, newest_first=True, most=max(limit, DEFAULT_LIMIT)):
        scanned += read
        decided = await look_up_decisions(store, chain, [amendment_id(record) for record in page])
        scanned += len(decided)
        pending = [record for record in page if amendment_id(record) not in decided]
        skip = min(offset - skipped, len(pending))
        skipped += skip
        undecided += pending[skip:]
        size += sum(map(measure_json, pending[skip:]))
        if len(undecided) > limit or size > MAX_BODY_BYTES:
            break
    fitting = _select_fitting(undecided[:limit])
    return await build_result(fitting, scanned, has_more=len(undecided) > len(fitting))


def _select_fitting(records: Sequence[ChainRecord]) -> Sequence[ChainRecord]:
    """Return the first records that fit in one reply, at least one."""
    size = 0
    for position, record in enumerate(records):
        size += measure_json(record)
        if position and size > MAX_BODY_BYTES:
            return records[:position]
    return records
