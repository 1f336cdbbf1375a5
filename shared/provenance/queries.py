"""Queries and exports of the events, amendments and decisions in a chain, page by page."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from shared.interpreter import pause_garbage_collection
from shared.provenance.amendments import AmendmentState, get_amendment_id
from shared.provenance.decisions import map_indexed_decisions_by_amendment, read_decided_amendment_id
from shared.provenance.hash_rule import LAST_SEQUENCE, format_record_id
from shared.provenance.overview_ports import ChainOverview
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters
from shared.provenance.records import build_damaged_record_placeholder, record_to_json, try_normalise_record
from shared.runtime import SYSTEM_RUNTIME, Runtime

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
DEFAULT_EXPORT_LIMIT: Final = 10_000
MAX_EXPORT_LIMIT: Final = 100_000
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""Maximum size in bytes of one reply; a larger result is truncated, and its ``has_more`` is true."""

_PAGE_RECORDS: Final = 1_000
_PAGE_BYTES: Final = 8_000_000
_FRAME: Final = 2


@dataclass(frozen=True, slots=True)
class AuditQueryResult:
    """Result of a query or an export.

    Attributes:
        records: records in the requested order.
        scanned: number of records that were read.
        has_more: whether further records match the filters.
        damaged: RecordIDs of damaged records; placeholders replace these records.
    """

    records: Sequence[ChainRecord]
    scanned: int
    has_more: bool
    damaged: Sequence[str] = ()

    def to_json_array(self) -> bytes:
        """Return the records as a JSON array; each object has the stored properties and the property ``Hash``."""
        return b"[%b]" % b",".join(record_to_json(record) for record in self.records)


async def query_records(
    store: ChainStore,
    chain: ChainKey,
    filters: Filters,
    *,
    limit: int = DEFAULT_LIMIT,
    offset: int = 0,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> AuditQueryResult:
    """Return the newest records that match filters, newest first.

    Args:
        store: store of the chain.
        chain: chain to query; a chain that does not exist has no records.
        filters: conditions on the records.
        limit: maximum number of records, clamped to :data:`MAX_LIMIT`.
        offset: number of matching records to skip.
        runtime: source of worker threads.
    """
    return await collect_records(
        store, chain, filters, newest_first=True, limit=min(limit, MAX_LIMIT), offset=offset, runtime=runtime
    )


async def export_records(
    store: ChainStore,
    chain: ChainKey,
    filters: Filters,
    *,
    limit: int = DEFAULT_EXPORT_LIMIT,
    measure_bytes: Callable[[ChainRecord], int] | None = None,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> AuditQueryResult:
    """Return the oldest records that match filters, oldest first, as many as fit in a reply of 64 MiB.

    Args:
        store: store of the chain.
        chain: chain to export; a chain that does not exist has no records.
        filters: conditions on the records.
        limit: maximum number of records, clamped to :data:`MAX_EXPORT_LIMIT`.
        measure_bytes: returns the number of bytes that a record takes in the reply; called in a worker thread. None to
            count the bytes of the record as JSON.
        runtime: source of worker threads.
    """
    return await collect_records(
        store,
        chain,
        filters,
        newest_first=False,
        limit=min(limit, MAX_EXPORT_LIMIT),
        measure_bytes=measure_bytes,
        runtime=runtime,
    )


def measure_json_bytes(record: ChainRecord) -> int:
    """Return the number of bytes that a record takes in a reply as part of a JSON array."""
    return len(record.canonical) + len(record.hash) + len(',"Hash":"",')


async def collect_records(
    store: ChainStore,
    chain: ChainKey,
    filters: Filters,
    *,
    newest_first: bool,
    limit: int,
    offset: int = 0,
    measure_bytes: Callable[[ChainRecord], int] | None = None,
    runtime: Runtime,
) -> AuditQueryResult:
    """Return up to ``limit`` matching records after the first ``offset`` ones, as many as fit in one reply.

    Arguments: see :func:`export_records`.
    """
    records: list[ChainRecord] = []
    size, scanned, more = _FRAME, 0, False
    async for page, read, following in iterate_record_pages(
        store, chain, filters, newest_first=newest_first, offset=offset, max_records=limit
    ):
        scanned, more = scanned + read, following
        sizes = await _measure_bytes_of_records(page, measure_bytes, runtime)
        for position, record in enumerate(page):
            size += sizes[position]
            if records and (len(records) >= limit or size > MAX_BODY_BYTES):
                return await build_query_result(records, scanned, has_more=True, runtime=runtime)
            records.append(record)
            more = following or position + 1 < len(page)
        if len(records) >= limit:
            break
    return await build_query_result(records, scanned, has_more=more, runtime=runtime)


async def _measure_bytes_of_records(
    records: Sequence[ChainRecord], measure_bytes: Callable[[ChainRecord], int] | None, runtime: Runtime
) -> list[int]:
    if measure_bytes is None:
        return list(map(measure_json_bytes, records))
    return await runtime.run_in_thread(lambda: [measure_bytes(record) for record in records])


async def build_query_result(
    records: Sequence[ChainRecord], scanned_count: int, *, has_more: bool, runtime: Runtime
) -> AuditQueryResult:
    """Build a query result from stored records; placeholders replace damaged records."""

    def convert_records() -> AuditQueryResult:
        normalized = [try_normalise_record(record) for record in records]
        pairs = list(zip(records, normalized, strict=True))
        damaged = [format_record_id(record.sequence) for record, sound in pairs if sound is None]
        return AuditQueryResult(
            [sound or build_damaged_record_placeholder(record) for record, sound in pairs],
            scanned_count,
            has_more,
            damaged,
        )

    with pause_garbage_collection(sum(len(record.canonical) for record in records)):
        return await runtime.run_in_thread(convert_records)


class ReadPage(NamedTuple):
    """Page of matching records.

    Attributes:
        records: records of the page.
        scanned: number of records that were read for the page.
        more: whether more pages follow.
    """

    records: Sequence[ChainRecord]
    scanned: int
    more: bool


async def iterate_record_pages(
    store: ChainStore,
    chain: ChainKey,
    filters: Filters,
    *,
    newest_first: bool,
    offset: int = 0,
    max_records: int = _PAGE_RECORDS,
) -> AsyncIterator[ReadPage]:
    """Yield pages of matching records.

    Args:
        store: store of the chain.
        chain: chain to query.
        filters: conditions on the records.
        newest_first: whether the newest records come first.
        offset: number of matches to skip.
        max_records: maximum number of records on a page.
    """
    limit = max(1, min(max_records, _PAGE_RECORDS))
    # If more records follow, a page also counts the first of them, which the next page reads again.
    counted_before = 0
    while True:
        page = await store.scan(
            chain, filters, newest_first=newest_first, offset=offset, limit=limit, max_bytes=_PAGE_BYTES
        )
        yield ReadPage(page.records, page.scanned - counted_before, page.more)
        counted_before = 1
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
        entity_id: id of the amended entity.
        entity_type: type of the amended entity.
        reason_category: reason category of the amendment; decisions do not match.
        amended_by: author of the amendment; decisions do not match.
        status: pending matches amendments without a decision. Approved matches approvals, and amendments that needed no
            approval when they were stored. Rejected matches rejections. None matches all.
        window: range of times (of an amendment or a decision) and of sequence numbers.
    """

    entity_id: str = ""
    entity_type: str = ""
    reason_category: str = ""
    amended_by: str = ""
    status: AmendmentState | None = None
    window: Filters = field(default_factory=Filters)

    def to_filters(self) -> Filters:
        """Convert the conditions to filters for the store.

        Filters for the status pending also match amendments that were decided later, which the caller must exclude.
        """
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
    store: ChainStore,
    overview: ChainOverview,
    chain: ChainKey,
    amendment_filters: AmendmentFilters,
    *,
    limit: int = DEFAULT_LIMIT,
    offset: int = 0,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> AuditQueryResult:
    """Return amendments and decisions that match ``amendment_filters``, newest first.

    Args:
        store: store of the chain.
        overview: store of the index of pending amendments. For the status pending, only amendments in this index are
            read, so the records of the chain must be counted.
        chain: key of the scope's chain of amendments.
        amendment_filters: conditions on the amendments and decisions.
        limit: maximum number of records, clamped to :data:`MAX_LIMIT`.
        offset: number of matching records to skip.
        runtime: source of worker threads.
    """
    if amendment_filters.status is not AmendmentState.PENDING:
        return await query_records(
            store, chain, amendment_filters.to_filters(), limit=limit, offset=offset, runtime=runtime
        )
    return await _query_pending_amendments(
        store, overview, chain, amendment_filters.to_filters(), min(limit, MAX_LIMIT), offset, runtime=runtime
    )


async def query_entity_amendments(
    store: ChainStore, chain: ChainKey, entity_id: str, *, runtime: Runtime = SYSTEM_RUNTIME
) -> AuditQueryResult:
    """Return an entity's amendments and decisions in the order of the chain, at most 1,000.

    The store finds an entity's decisions by their filter field ``EntityID``, which someone may have changed. Therefore,
    decisions are also searched by the RecordIDs of the entity's amendments.
    """
    answer = await collect_records(
        store, chain, Filters(equal={"EntityID": entity_id}), newest_first=False, limit=MAX_CHAIN, runtime=runtime
    )
    last = answer.records[-1].sequence if answer.has_more else LAST_SEQUENCE
    originals = await runtime.run_in_thread(list_amendment_ids, answer.records)
    present = {record.sequence for record in answer.records}
    decisions = await map_indexed_decisions_by_amendment(store, chain, originals, runtime=runtime)
    candidates = {
        amendment: one for amendment, one in decisions.items() if one.sequence not in present and one.sequence < last
    }
    missed = await runtime.run_in_thread(_select_decisions_matching_their_key, candidates)
    return await _add_missed_decisions(answer, missed, runtime) if missed else answer


def list_amendment_ids(records: Iterable[ChainRecord]) -> list[str]:
    """Return the RecordIDs of those records whose content is an amendment, not a decision."""
    return [format_record_id(record.sequence) for record in records if not read_decided_amendment_id(record)]


def _select_decisions_matching_their_key(by_amendment: Mapping[str, ChainRecord]) -> list[ChainRecord]:
    """Return those decisions that, by their content, decide the amendment whose RecordID is their key in the mapping.

    The keys come from filter fields, which someone may have edited.
    """
    return [record for amendment, record in by_amendment.items() if read_decided_amendment_id(record) == amendment]


async def _add_missed_decisions(
    answer: AuditQueryResult, missed: Sequence[ChainRecord], runtime: Runtime
) -> AuditQueryResult:
    more = await build_query_result(missed, len(missed), has_more=False, runtime=runtime)
    records = sorted((*answer.records, *more.records), key=lambda record: record.sequence)
    first, damaged = records[:MAX_CHAIN], {*answer.damaged, *more.damaged}
    return AuditQueryResult(
        first,
        answer.scanned + more.scanned,
        answer.has_more or len(records) > MAX_CHAIN,
        [get_amendment_id(record) for record in first if get_amendment_id(record) in damaged],
    )


async def _iterate_pages_of_indexed_amendments(
    store: ChainStore, overview: ChainOverview, chain: ChainKey, filters: Filters, max_records: int
) -> AsyncIterator[ReadPage]:
    """Yield pages of those matching records that have an entry in the index of pending amendments, newest first."""
    lowest = filters.from_sequence or 1
    highest = LAST_SEQUENCE if filters.to_sequence is None else min(max(filters.to_sequence, 0), LAST_SEQUENCE)
    while sequences := await overview.list_pending_sequences(chain, highest + 1, _PAGE_RECORDS):
        selected = replace(filters, sequences=tuple(sequences))
        async for page in iterate_record_pages(store, chain, selected, newest_first=True, max_records=max_records):
            yield page
        highest = sequences[-1] - 1
        if highest < lowest or len(sequences) < _PAGE_RECORDS:
            return


async def _query_pending_amendments(
    store: ChainStore,
    overview: ChainOverview,
    chain: ChainKey,
    filters: Filters,
    limit: int,
    offset: int,
    *,
    runtime: Runtime,
) -> AuditQueryResult:
    undecided: list[ChainRecord] = []
    scanned = skipped = size = 0
    async for page, read, _ in _iterate_pages_of_indexed_amendments(
        store, overview, chain, filters, max(limit, DEFAULT_LIMIT)
    ):
        scanned += read
        decided = await map_indexed_decisions_by_amendment(
            store, chain, [get_amendment_id(record) for record in page], runtime=runtime
        )
        scanned += len(decided)
        pending = [record for record in page if get_amendment_id(record) not in decided]
        skip = min(offset - skipped, len(pending))
        skipped += skip
        undecided += pending[skip:]
        size += sum(map(measure_json_bytes, pending[skip:]))
        if len(undecided) > limit or size > MAX_BODY_BYTES:
            break
    fitting = _select_records_that_fit_in_reply(undecided[:limit])
    return await build_query_result(fitting, scanned, has_more=len(undecided) > len(fitting), runtime=runtime)


def _select_records_that_fit_in_reply(records: Sequence[ChainRecord]) -> Sequence[ChainRecord]:
    """Return the first records that fit into one HTTP reply together; at least one."""
    size = 0
    for position, record in enumerate(records):
        size += measure_json_bytes(record)
        if position and size > MAX_BODY_BYTES:
            return records[:position]
    return records
