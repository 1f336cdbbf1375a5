"""Queries and exports of a chain, page by page."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from shared.off_loop import collection_paused
from shared.provenance.hash_rule import record_id
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters
from shared.provenance.records import presentable, record_json, stand_in

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
class Answer:
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
        return b"[%b]" % b",".join(record_json(record) for record in self.records)


async def query(
    store: ChainStore, chain: ChainKey, filters: Filters, *, limit: int = DEFAULT_LIMIT, offset: int = 0
) -> Answer:
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
) -> Answer:
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
) -> Answer:
    """Return the first ``limit`` matches after ``offset`` in an order, or fewer when the body is full."""
    records: list[ChainRecord] = []
    size, scanned, more = _FRAME, 0, False
    async for page, read, following in pages(
        store, chain, filters, newest_first=newest_first, offset=offset, most=limit
    ):
        scanned, more = scanned + read, following
        for position, record in enumerate(page):
            size += weigh(record)
            if records and (len(records) >= limit or size > MAX_BODY_BYTES):
                return await answered(records, scanned, has_more=True)
            records.append(record)
            more = following or position + 1 < len(page)
        if len(records) >= limit:
            break
    return await answered(records, scanned, has_more=more)


async def answered(records: Sequence[ChainRecord], scanned: int, *, has_more: bool) -> Answer:
    """Return records as an answer in which a damaged one does not keep the others from being read."""

    def shown() -> Answer:
        given = [presentable(record) for record in records]
        pairs = list(zip(records, given, strict=True))
        damaged = [record_id(record.sequence) for record, shown in pairs if shown is None]
        return Answer([shown or stand_in(record) for record, shown in pairs], scanned, has_more, damaged)

    with collection_paused(sum(len(record.canonical) for record in records)):
        return await asyncio.to_thread(shown)


async def pages(
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
