"""The chain store in Cosmos DB: create-only records, one head a segment, both replaced in one transactional batch."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

from shared.backends.azure import cosmos_chain_items as items
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_chain_items import SegmentHead, record_from_item
from shared.backends.azure.cosmos_queries import query_items
from shared.backends.azure.cosmos_requests import CosmosUsage, Operation, ReadRetries, retry_read, send
from shared.backends.azure.cosmos_segments import (
    KNOWN_CHAINS,
    MAX_PAGE,
    RecordPartition,
    RecordQuery,
    Segments,
    query_from_filters,
)
from shared.provenance.ports import ChainKey, ChainRecord, Filters, Lookup, RecordPage, Target, Tip

SEGMENT_BYTES: Final = 8_000_000_000
"""A logical partition holds 20 GB with its index; what is counted here are the items alone."""

THROTTLED_SECONDS: Final = 10.0
_STORED_AS: Final = {Lookup.APPEND_ID: "c.append", Lookup.AMENDMENT_ID: "c.p.AmendmentID"}


class CosmosChainStore:
    """The ChainStore port over Cosmos DB.

    Args:
        account: where the containers are.
        segment_bytes: bytes of a segment's items after which the next one begins.
    """

    max_batch_records = items.MAX_BATCH_RECORDS
    max_batch_weight = items.MAX_BATCH_WEIGHT

    def __init__(self, account: CosmosAccount, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._account = account
        self._segment_bytes = segment_bytes
        self._segments = Segments(account.container, account.usage)
        self._newest: dict[ChainKey, int] = {}

    @property
    def usage(self) -> CosmosUsage:
        """Counters of what was used and met."""
        return self._account.usage

    def weight(self, canonical: bytes) -> int:
        """Return the bytes in a batch: as escaped text, or as base64 where that is shorter."""
        return items.weight(canonical)

    async def provision(self, chain: ChainKey) -> None:
        """Make sure that the account and the container can hold chains; they are made by the deployment."""
        await self._account.container(chain.target)

    async def tip(self, chain: ChainKey) -> Tip:
        """Return what the newest head says: one point read, and one more for each segment that began meanwhile."""
        segment = self._newest.get(chain, 1)
        head = await self._head(chain, segment)
        if head is None and segment > 1:
            segment = 1
            head = await self._head(chain, segment)
        while head is not None and head.sealed:
            following = await self._head(chain, head.segment + 1)
            if following is None:
                break
            head = following
        if head is None:
            return Tip()
        self._remember(chain, head.segment)
        return head.to_tip()

    async def append(self, chain: ChainKey, records: Sequence[ChainRecord], expected: Tip) -> Tip:
        """Write records and head in one batch.

        The batch that fills a segment seals its head, under If-Match; only after it is the next head created, together
        with the records that follow, create-only. So nobody can append to two segments.
        """
        container = await self._account.container(chain.target)
        before = SegmentHead.from_tip(expected)
        head = self._following(before, records)
        operations = (_head_operation(chain, before, head), *_create_operations(chain, head, records))
        results = await self._sent(container, operations, items.partition(chain, head.segment))
        self._remember(chain, head.segment)
        written = SegmentHead(head.segment, head.tip, head.size, head.sealed, str(results[0]["eTag"]))
        return written.to_tip()

    async def read(self, chain: ChainKey, after: int, *, limit: int, max_bytes: int) -> RecordPage:
        """Return records by ascending sequence."""
        query = RecordQuery(low=max(after + 1, 1), page=min(limit + 1, MAX_PAGE))
        return await _PageReader(0, limit, max_bytes).page(self._segments.parts(chain, query))

    async def hashes(self, chain: ChainKey, after: int, *, limit: int) -> Sequence[str]:
        """Return the stored hashes alone."""
        query = RecordQuery(low=max(after + 1, 1), fields="c.id, c.hash", page=min(limit, MAX_PAGE))
        found: list[str] = []
        async for partition, part in self._segments.parts(chain, query):
            async with aclosing(partition.items(part)) as rows:
                async for row in rows:
                    found.append(str(row.get("hash", "")))
                    if len(found) >= limit:
                        return found
        return found

    async def scan(
        self,
        chain: ChainKey,
        filters: Filters,
        *,
        newest_first: bool = True,
        offset: int = 0,
        limit: int,
        max_bytes: int,
    ) -> RecordPage:
        """Return the records that match."""
        page = min(limit + 1, MAX_PAGE)
        query = query_from_filters(filters, descending=newest_first, page=page, project_value=items.project_value)
        return await _PageReader(offset, limit, max_bytes).page(self._segments.parts(chain, query))

    async def find(self, chain: ChainKey, by: Lookup, values: Sequence[str]) -> Sequence[ChainRecord]:
        """Return the records with one of these append ids, or amendment ids."""
        if not values:
            return []
        names = [f"@v{number}" for number in range(len(values))]
        stored = values if by is Lookup.APPEND_ID else [items.project_value(value) for value in values]
        condition = f"{_STORED_AS[by]} IN ({', '.join(names)})"
        query = RecordQuery(conditions=(condition,), parameters=tuple(zip(names, stored, strict=True)))
        found: list[ChainRecord] = []
        async for partition, part in self._segments.parts(chain, query):
            async for item in partition.items(part):
                record = items.record_from_item(item)
                if record is not None:
                    found.append(record)
        return found

    async def tips(self, changed_from: str = "") -> AsyncIterator[tuple[ChainKey, Tip]]:
        """Give the chains that changed."""
        for target in Target:
            rolled: set[ChainKey] = set()
            container = await self._account.container(target)
            async for item in changed_heads(container, changed_from, self.usage):
                chain, head = items.chain_from_item(target, item), SegmentHead.from_item(item)
                if chain is None:
                    continue
                if not head.sealed and head.segment == 1:
                    yield chain, head.to_tip()
                elif chain not in rolled:
                    # Its segments come in any order, and a new one may begin behind the page.
                    rolled.add(chain)
                    yield chain, await self.tip(chain)

    async def close(self) -> None:
        """Let go of connections."""
        await self._account.close()

    def _following(self, before: SegmentHead | None, records: Sequence[ChainRecord]) -> SegmentHead:
        """Return the head after an append; its ETag is not known yet."""
        last = records[-1]
        tip = Tip(last.sequence, last.hash, last.projection["Timestamp"])
        segment, size = 1, 0
        if before is not None:
            segment, size = (before.segment + 1, 0) if before.sealed else (before.segment, before.size)
        size += sum(map(items.estimate_stored_bytes, records))
        return SegmentHead(segment, tip, size, size >= self._segment_bytes, "")

    async def _sent(self, container: ContainerProxy, operations: Sequence[Operation], partition: str) -> Any:
        return await send(container, operations, partition, self.usage, time.monotonic() + THROTTLED_SECONDS)

    async def _head(self, chain: ChainKey, segment: int) -> SegmentHead | None:
        container = await self._account.container(chain.target)
        key = items.partition(chain, segment)
        try:
            item = await retry_read(
                lambda: container.read_item(items.HEAD_ID, key, response_hook=self.usage.count_reply), self.usage
            )
        except CosmosHttpResponseError as error:
            if error.status_code == HTTPStatus.NOT_FOUND:
                return None
            raise
        return SegmentHead.from_item(item)

    def _remember(self, chain: ChainKey, segment: int) -> None:
        if len(self._newest) >= KNOWN_CHAINS and chain not in self._newest:
            self._newest.clear()
        self._newest[chain] = max(segment, self._newest.get(chain, 1))


def _head_operation(chain: ChainKey, before: SegmentHead | None, head: SegmentHead) -> Operation:
    item = items.head_item(chain, head)
    if before is None or before.segment != head.segment:
        return ("create", (item,), {})
    return ("replace", (items.HEAD_ID, item), {"if_match_etag": before.etag})


def _create_operations(chain: ChainKey, head: SegmentHead, records: Sequence[ChainRecord]) -> list[Operation]:
    key = items.partition(chain, head.segment)
    return [("create", (items.record_item(key, record),), {}) for record in records]


class _PageReader:
    """One page under way.

    Args:
        offset: matches to skip first.
        limit: most records.
        max_bytes: canonical bytes after which to stop; one record is taken however long it is.
    """

    def __init__(self, offset: int, limit: int, max_bytes: int) -> None:
        self._offset = offset
        self._limit = limit
        self._max_bytes = max_bytes
        self._records: list[ChainRecord] = []
        self._size = 0
        self._scanned = 0

    async def page(self, parts: AsyncIterator[tuple[RecordPartition, RecordQuery]]) -> RecordPage:
        """Return the page that the partitions make, in their order."""
        async for partition, query in parts:
            rest = await self._skip(partition, query)
            if rest is not None and await self._fill(partition, rest):
                return RecordPage(self._records, more=True, scanned=self._scanned)
        return RecordPage(self._records, more=False, scanned=self._scanned)

    async def _skip(self, partition: RecordPartition, query: RecordQuery) -> RecordQuery | None:
        """Return what is left of a query after the offset; None when all of it was skipped."""
        if not self._offset or query.low > query.high:
            return query
        first = await partition.after_skipping(query, self._offset)
        if first is None:
            skipped = min(await partition.count(query), self._offset)
            self._offset -= skipped
            self._scanned += skipped
            return None
        self._scanned += self._offset
        self._offset = 0
        return query.within(1, first) if query.descending else query.within(first, query.high)

    async def _fill(self, partition: RecordPartition, query: RecordQuery) -> bool:
        """Take what fits; return whether something was left."""
        async with aclosing(partition.items(query)) as items:
            async for item in items:
                self._scanned += 1
                if self._full(item):
                    return True
        return False

    def _full(self, item: dict[str, Any]) -> bool:
        record = record_from_item(item)
        if record is None:
            return False
        self._size += len(record.canonical)
        if self._records and (len(self._records) >= self._limit or self._size > self._max_bytes):
            return True
        self._records.append(record)
        return False


async def changed_heads(container: ContainerProxy, changed_from: str, usage: CosmosUsage) -> AsyncIterator[Any]:
    """Give each head item, over all partitions, whose last record is not older than an instant; each once."""
    retries = ReadRetries(usage)
    given: set[str] = set()
    while True:
        try:
            async for item in query_items(
                container,
                "SELECT * FROM c WHERE c.tip.timestamp >= @from",
                parameters=[{"name": "@from", "value": changed_from}],
                max_item_count=MAX_PAGE,
                response_hook=usage.count_reply,
            ):
                retries.reset()
                # Whoever may write items may write one without a partition key.
                key = item.get("chain")
                if isinstance(key, str) and key not in given:
                    given.add(key)
                    yield item
        except (AzureError, OSError, TimeoutError) as error:
            await retries.wait(error)
        else:
            return
