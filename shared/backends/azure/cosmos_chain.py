"""Audit chains in Cosmos DB.

Records are items that are never changed. A chain is divided into segments. Each segment is one logical partition with
one head item. An append writes the head item and the records in one transactional batch.

Tested with the genuine SDK against a test server; never run against Cosmos DB.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

from shared.backends.azure import cosmos_chain_items as items
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_chain_items import HeadCounts, SegmentHead, record_from_item
from shared.backends.azure.cosmos_queries import query_items
from shared.backends.azure.cosmos_requests import (
    BatchResults,
    CosmosUsage,
    Operation,
    ReadRetries,
    build_unavailable_error,
    get_sub_status_or_zero,
    retry_read,
    send_batch,
)
from shared.backends.azure.cosmos_segments import (
    KNOWN_CHAINS,
    MAX_PAGE,
    RecordPartition,
    RecordQuery,
    Segments,
    query_from_filters,
)
from shared.observability import logs
from shared.provenance.overview_ports import is_pending_amendment
from shared.provenance.ports import ChainKey, ChainRecord, Filters, LookupField, RecordPage, Target, Tip
from shared.runtime import Runtime

SEGMENT_BYTES: Final = 8_000_000_000
"""Maximum size in bytes of a segment's items; Cosmos DB limits a logical partition to 20 GB, including its index."""

THROTTLED_SECONDS: Final = 10.0
_LOG = logs.get_logger("provenance")
# Without the id, a foreign item in the partition of a chain could hide the head item of the chain.
_CHANGED_HEADS: Final = f"SELECT * FROM c WHERE c.id = '{items.HEAD_ID}' AND c.tip.timestamp >= @from"  # noqa: S608  names
_STORED_AS: Final = {LookupField.APPEND_ID: "c.append", LookupField.AMENDMENT_ID: "c.p.AmendmentID"}


class CosmosChainStore:
    """Implementation of ChainStore: stores audit chains in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
        segment_bytes: size of a segment's items, in bytes, after which the next segment begins.
    """

    max_batch_records = items.MAX_BATCH_RECORDS
    max_batch_bytes = items.MAX_BATCH_BYTES

    def __init__(self, account: CosmosAccount, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._account = account
        self._segment_bytes = segment_bytes
        self._segments = Segments(account.open_container, account.usage, account.runtime)
        self._newest: dict[ChainKey, int] = {}

    @property
    def usage(self) -> CosmosUsage:
        """Counters of the requests to the Cosmos DB account."""
        return self._account.usage

    def measure_bytes_in_batch(self, canonical_json: bytes) -> int:
        return items.compute_max_bytes_in_batch(canonical_json)

    async def provision(self, chain: ChainKey) -> None:
        await self._account.open_container(chain.target)

    async def read_tip(self, chain: ChainKey) -> Tip:
        # One point read, and one more for each segment that began since the last call.
        segment = self._newest.get(chain, 1)
        head = await self._find_segment_head(chain, segment)
        if head is None and segment > 1:
            segment = 1
            head = await self._find_segment_head(chain, segment)
        while head is not None and head.sealed:
            next_head = await self._find_segment_head(chain, head.segment + 1)
            if next_head is None:
                break
            head = next_head
        if head is None:
            return Tip()
        self._cache_newest_segment(chain, head.segment)
        return head.to_tip()

    async def append(self, chain: ChainKey, records: Sequence[ChainRecord], expected_tip: Tip) -> Tip:
        """Write records, and the head item of the segment that contains the records, in one batch.

        The batch that fills a segment marks its head item as sealed: the segment accepts no more records. The next
        append creates the head item of the next segment, so that two segments never grow at the same time.
        """
        container = await self._account.open_container(chain.target)
        before = SegmentHead.from_tip(expected_tip)
        head = self._compute_head_after_append(before, records)
        operations = (
            _build_head_operation(chain, before, head),
            *_build_record_operations(chain, head, records),
            *_build_pending_amendments_operations(chain, head, records),
        )
        results = await self._send_batch(container, operations, items.compute_partition_key(chain, head.segment))
        self._cache_newest_segment(chain, head.segment)
        return replace(head, etag=str(results[0]["eTag"])).to_tip()

    async def read(self, chain: ChainKey, after_sequence: int, *, limit: int, max_bytes: int) -> RecordPage:
        query = RecordQuery(low=max(after_sequence + 1, 1), page=min(limit + 1, MAX_PAGE))
        return await _PageReader(0, limit, max_bytes).read_page(self._segments.split_query_by_partition(chain, query))

    async def read_hashes(self, chain: ChainKey, after_sequence: int, *, limit: int) -> Sequence[str]:
        query = RecordQuery(low=max(after_sequence + 1, 1), fields="c.id, c.hash", page=min(limit, MAX_PAGE))
        found: list[str] = []
        async for partition, part in self._segments.split_query_by_partition(chain, query):
            async with aclosing(partition.iterate_items(part)) as rows:
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
        page = min(limit + 1, MAX_PAGE)
        query = query_from_filters(
            filters, descending=newest_first, page_size=page, to_stored_value=items.hash_filter_value_if_long
        )
        return await _PageReader(offset, limit, max_bytes).read_page(
            self._segments.split_query_by_partition(chain, query)
        )

    async def find(self, chain: ChainKey, lookup_field: LookupField, values: Sequence[str]) -> Sequence[ChainRecord]:
        if not values:
            return []
        names = [f"@v{number}" for number in range(len(values))]
        stored = (
            values
            if lookup_field is LookupField.APPEND_ID
            else [items.hash_filter_value_if_long(value) for value in values]
        )
        condition = f"{_STORED_AS[lookup_field]} IN ({', '.join(names)})"
        query = RecordQuery(conditions=(condition,), parameters=tuple(zip(names, stored, strict=True)))
        found: list[ChainRecord] = []
        async for partition, part in self._segments.split_query_by_partition(chain, query):
            async for item in partition.iterate_items(part):
                record = items.record_from_item(item)
                if record is not None:
                    found.append(record)
        return found

    async def iterate_tips(
        self, changed_from_time: str = "", targets: Sequence[Target] = tuple(Target)
    ) -> AsyncIterator[tuple[ChainKey, Tip]]:
        for target in targets:
            with_segments: set[ChainKey] = set()
            container = await self._account.open_container(target)
            async for item in iterate_changed_head_items(
                container, changed_from_time, self.usage, self._account.runtime
            ):
                chain, head = items.chain_key_from_genuine_head_item(target, item), SegmentHead.from_item(item)
                if chain is None:
                    continue
                if not head.sealed and head.segment == 1:
                    yield chain, head.to_tip()
                elif chain not in with_segments:
                    # The head items of a chain's segments arrive in any order, and a new segment may begin meanwhile.
                    with_segments.add(chain)
                    yield chain, await self.read_tip(chain)

    async def count_records(self, chain: ChainKey, sql_conditions: tuple[str, ...]) -> int:
        """Return the number of a chain's records that meet SQL conditions; these must not contain text of a request."""
        total = 0
        async for partition, part in self._segments.split_query_by_partition(
            chain, RecordQuery(conditions=sql_conditions)
        ):
            total += await partition.count_records(part)
        return total

    async def find_newest_head(self, chain: ChainKey) -> SegmentHead | None:
        """Read the head item of the chain's newest segment; return None for an empty chain."""
        return SegmentHead.from_tip(await self.read_tip(chain))

    async def replace_counts(self, chain: ChainKey, head: SegmentHead, counts: HeadCounts) -> None:
        """Store new counts in the head item of a chain's newest segment.

        Raises:
            TipMovedError: the head item has changed since it was read; nothing was written.
            OutcomeUnknownError: it is unknown whether the counts were written.
            WorkspaceError: UNAVAILABLE; nothing was written.
        """
        container = await self._account.open_container(chain.target)
        operation = _build_head_operation(chain, head, replace(head, counts=counts))
        await self._send_batch(container, (operation,), items.compute_partition_key(chain, head.segment))

    async def close(self) -> None:
        await self._account.close()

    def _compute_head_after_append(
        self, head_before: SegmentHead | None, records: Sequence[ChainRecord]
    ) -> SegmentHead:
        """Compute the head of the newest segment after an append; its ETag is empty until Cosmos DB assigns one.

        ``head_before`` is the head before the append; None for the first append to the chain.
        """
        last = records[-1]
        tip = Tip(last.sequence, last.hash, last.projection["Timestamp"])
        segment, size = 1, 0
        if head_before is not None:
            segment, size = (
                (head_before.segment + 1, 0) if head_before.sealed else (head_before.segment, head_before.size)
            )
        size += sum(map(items.estimate_stored_bytes, records))
        return SegmentHead(
            segment, tip, size, size >= self._segment_bytes, "", _compute_counts_after_append(head_before, records)
        )

    async def _send_batch(
        self, container: ContainerProxy, operations: Sequence[Operation], partition_key: str
    ) -> BatchResults:
        return await send_batch(
            container,
            operations,
            partition_key,
            self.usage,
            self._account.runtime.monotonic() + THROTTLED_SECONDS,
            runtime=self._account.runtime,
        )

    async def _find_segment_head(self, chain: ChainKey, segment_number: int) -> SegmentHead | None:
        container = await self._account.open_container(chain.target)
        key = items.compute_partition_key(chain, segment_number)
        try:
            item = await retry_read(
                lambda: container.read_item(items.HEAD_ID, key, response_hook=self.usage.record_reply),
                self.usage,
                self._account.runtime,
            )
        except CosmosHttpResponseError as error:
            # A reply with a sub-status means that the container is missing, not the item.
            if get_sub_status_or_zero(error):
                _LOG.exception("a container cannot be read", extra=logs.fields(container=chain.target))
                raise build_unavailable_error() from error
            return None
        return SegmentHead.from_item(item)

    def _cache_newest_segment(self, chain: ChainKey, segment_number: int) -> None:
        if len(self._newest) >= KNOWN_CHAINS and chain not in self._newest:
            self._newest.clear()
        self._newest[chain] = max(segment_number, self._newest.get(chain, 1))


def _build_head_operation(chain: ChainKey, head_before: SegmentHead | None, head: SegmentHead) -> Operation:
    item = items.head_to_item(chain, head)
    if head_before is None or head_before.segment != head.segment:
        return ("create", (item,), {})
    return ("replace", (items.HEAD_ID, item), {"if_match_etag": head_before.etag})


def _build_record_operations(chain: ChainKey, head: SegmentHead, records: Sequence[ChainRecord]) -> list[Operation]:
    key = items.compute_partition_key(chain, head.segment)
    return [("create", (items.record_to_item(key, record),), {}) for record in records]


def _build_pending_amendments_operations(
    chain: ChainKey, head: SegmentHead, records: Sequence[ChainRecord]
) -> list[Operation]:
    """Build the operation that adds the pending amendments among the records to the index; empty if there are none.

    One operation is enough: the index has one item for all amendments of one time, and all records of a batch have the
    same time. If an operator removed records from the end of the chain, the index can still have an item for the same
    sequence number; the operation replaces this item.
    """
    sequences = [record.sequence for record in records if is_pending_amendment(record)]
    if chain.target is not Target.DOMAIN_AMENDMENTS or not sequences:
        return []
    return [("upsert", (items.build_pending_amendments_item(chain, head.segment, head.tip.timestamp, sequences),), {})]


def _compute_counts_after_append(head_before: SegmentHead | None, records: Sequence[ChainRecord]) -> HeadCounts:
    """Compute the counts of a chain's records and pending amendments after an append.

    ``head_before`` is the newest head before the append; None for the first append to the chain.
    """
    change = sum(map(is_pending_amendment, records)) - sum("AmendmentID" in record.projection for record in records)
    if head_before is None:
        return HeadCounts(records[0].projection["Timestamp"], 0, change)
    if head_before.counts is None:
        return HeadCounts("", head_before.tip.sequence, change)
    return replace(head_before.counts, pending=head_before.counts.pending + change)


class _PageReader:
    """Reader of one page of matching records from several segments.

    Args:
        offset: number of matching records to skip.
        limit: maximum number of records.
        max_bytes: maximum number of canonical bytes; the first record is returned at any size.
    """

    def __init__(self, offset: int, limit: int, max_bytes: int) -> None:
        self._offset = offset
        self._limit = limit
        self._max_bytes = max_bytes
        self._records: list[ChainRecord] = []
        self._size = 0
        self._scanned = 0

    async def read_page(self, parts: AsyncIterator[tuple[RecordPartition, RecordQuery]]) -> RecordPage:
        """Read the page of matching records from these partitions, in the given order of the partitions."""
        async for partition, query in parts:
            rest = await self._exclude_skipped_matches(partition, query)
            if rest is not None and not await self._try_add_all_matches(partition, rest):
                return RecordPage(self._records, more=True, scanned=self._scanned)
        return RecordPage(self._records, more=False, scanned=self._scanned)

    async def _exclude_skipped_matches(self, partition: RecordPartition, query: RecordQuery) -> RecordQuery | None:
        """Restrict a query to the matches in a partition that are not skipped; return None if all are skipped.

        The page skips the first ``offset`` matches of all partitions together. Reduce the offset by the number of
        matches that are skipped in this partition.
        """
        if not self._offset or query.low > query.high:
            return query
        first = await partition.find_sequence_after_skipping(query, self._offset)
        if first is None:
            skipped = min(await partition.count_records(query), self._offset)
            self._offset -= skipped
            self._scanned += skipped
            return None
        self._scanned += self._offset
        self._offset = 0
        return (
            query.restrict_to_sequences(1, first)
            if query.descending
            else query.restrict_to_sequences(first, query.high)
        )

    async def _try_add_all_matches(self, partition: RecordPartition, query: RecordQuery) -> bool:
        """Add the matches of a partition to the page; return False if the page was full before the last match."""
        async with aclosing(partition.iterate_items(query)) as items:
            async for item in items:
                self._scanned += 1
                if not self._try_add_record(item):
                    return False
        return True

    def _try_add_record(self, item: dict[str, Any]) -> bool:
        record = record_from_item(item)
        if record is None:
            return True
        self._size += len(record.canonical)
        if self._records and (len(self._records) >= self._limit or self._size > self._max_bytes):
            return False
        self._records.append(record)
        return True


async def iterate_changed_head_items(
    container: ContainerProxy, changed_from_time: str, usage: CosmosUsage, runtime: Runtime
) -> AsyncIterator[dict[str, Any]]:
    """Yield the head items of all chain segments whose last record is not older than ``changed_from_time``."""
    retries = ReadRetries(usage, runtime)
    yielded: set[str] = set()
    while True:
        try:
            async for item in query_items(
                container,
                _CHANGED_HEADS,
                parameters=[{"name": "@from", "value": changed_from_time}],
                max_item_count=MAX_PAGE,
                response_hook=usage.record_reply,
            ):
                # A forged item may have no partition key.
                key = item.get("chain")
                if isinstance(key, str) and key not in yielded:
                    # A repeated query returns the yielded items first; these are no progress.
                    retries.reset()
                    yielded.add(key)
                    yield item
        except (AzureError, OSError, TimeoutError) as error:
            await retries.wait_after_failure(error)
        else:
            return
