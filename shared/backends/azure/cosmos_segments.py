"""Reads of an audit chain's records in Cosmos DB. A chain has several segments, each in one partition.

This module is separate from ``cosmos_chain``, which appends records and uses head items. Head items can be forged, so
reads find the segments by their records.
"""

from bisect import bisect_left
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

from shared.backends.azure.cosmos_chain_items import HEAD_ID, LAST_SEQUENCE, SegmentHead, compute_partition_key
from shared.backends.azure.cosmos_queries import query_items
from shared.backends.azure.cosmos_requests import CosmosUsage, ReadRetries, retry_read
from shared.provenance.hash_rule import format_record_id, sequence_from_record_id
from shared.provenance.ports import ChainKey, Filters
from shared.runtime import Runtime

MAX_PAGE: Final = 1_000
_LARGEST_OFFSET: Final = 2**31 - 1

type Parameters = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """Query for the audit records in a partition, ordered by sequence number.

    Attributes:
        low: lowest sequence number, inclusive.
        high: highest sequence number, inclusive.
        conditions: SQL conditions, joined with AND; they never contain text from a caller.
        parameters: values of the parameters in the conditions.
        fields: names of the properties that the query returns, including the id.
        descending: whether the newest records come first.
        page: number of items that the SDK fetches with one request.
    """

    low: int = 1
    high: int = LAST_SEQUENCE
    conditions: tuple[str, ...] = ()
    parameters: Parameters = ()
    fields: str = "*"
    descending: bool = False
    page: int = MAX_PAGE

    def restrict_to_sequences(self, low: int, high: int) -> "RecordQuery":
        """Return a copy of the query that is restricted to a range of sequence numbers, both inclusive."""
        return replace(self, low=max(low, self.low), high=min(high, self.high))

    def continue_after(self, sequence: int) -> "RecordQuery":
        """Return a copy of the query for the records that follow a sequence number in the query's order."""
        return (
            self.restrict_to_sequences(1, sequence - 1)
            if self.descending
            else self.restrict_to_sequences(sequence + 1, LAST_SEQUENCE)
        )

    @property
    def sql(self) -> str:
        """SQL text of this query. Its range of ids excludes the head item."""
        order = "DESC" if self.descending else "ASC"
        return f"SELECT {self.fields} FROM c WHERE {self._condition_sql} ORDER BY c.id {order}"  # noqa: S608  our own names

    @property
    def count_sql(self) -> str:
        """SQL text that counts the records that match the query."""
        return f"SELECT VALUE COUNT(1) FROM c WHERE {self._condition_sql}"  # noqa: S608  our own names

    @property
    def _condition_sql(self) -> str:
        return " AND ".join(("c.id BETWEEN @low AND @high", *self.conditions))

    @property
    def sdk_parameters(self) -> list[dict[str, object]]:
        """Values of the parameters in the SQL text, in the form that the SDK expects."""
        bounds = (("@low", format_record_id(self.low)), ("@high", format_record_id(self.high)))
        return [{"name": name, "value": value} for name, value in (*bounds, *self.parameters)]


class RecordPartition:
    """Records of one segment of a chain, in one Cosmos DB partition.

    Args:
        container: container of the chain.
        key: partition key of the segment's items.
        usage: counters of requests and request units.
        runtime: clock, randomness and threads.
    """

    def __init__(self, container: ContainerProxy, key: str, usage: CosmosUsage, runtime: Runtime) -> None:
        self._container = container
        self._key = key
        self._usage = usage
        self._runtime = runtime

    async def iterate_items(self, query: RecordQuery) -> AsyncGenerator[dict[str, Any]]:
        """Yield the items that match a query, in order.

        After a transient failure, continue after the last yielded item.
        """
        retries = ReadRetries(self._usage, self._runtime)
        while query.low <= query.high:
            try:
                async with aclosing(self._send_query(query.sql, query)) as found:
                    async for item in found:
                        sequence = sequence_from_record_id(item["id"])
                        if sequence is not None:
                            # Items of other kinds are no progress: a repeated query returns them again.
                            retries.reset()
                            yield item
                            query = query.continue_after(sequence)
            except (AzureError, OSError, TimeoutError) as error:
                await retries.wait_after_failure(error)
            else:
                return

    async def read_last_sequence_or_zero(self) -> int:
        """Return the highest sequence number of the segment's records; 0 if the segment has no record."""
        async with aclosing(self.iterate_items(RecordQuery(fields="c.id", descending=True, page=1))) as items:
            async for item in items:
                return sequence_from_record_id(item["id"]) or 0
        return 0

    async def find_last_sequence_if_sealed(self) -> int | None:
        """Return the last sequence number that the segment's head item states; None if the segment can still grow."""
        try:
            item = await retry_read(
                lambda: self._container.read_item(HEAD_ID, self._key, response_hook=self._usage.record_reply),
                self._usage,
                self._runtime,
            )
        except CosmosHttpResponseError:
            # The head item is missing.
            return None
        head = SegmentHead.from_item(item)
        return head.tip.sequence if head.sealed else None

    async def find_sequence_after_skipping(self, query: RecordQuery, skipped_matches: int) -> int | None:
        """Return the sequence number of the first match after ``skipped_matches`` matches; None if there is none."""
        while True:
            sql = f"{query.sql} OFFSET {min(int(skipped_matches), _LARGEST_OFFSET)} LIMIT 1"
            found = await self._read_query_values(sql, query)
            if not found:
                return None
            sequence = sequence_from_record_id(found[0]["id"])
            if sequence is not None:
                return sequence
            # The id is not a RecordID, although it sorts between RecordIDs.
            skipped_matches += 1

    async def count_records(self, query: RecordQuery) -> int:
        """Count the records in this partition that match a query."""
        # If the count takes long, Cosmos DB returns several pages, each with the count of a part of the records.
        return sum(map(int, await self._read_query_values(query.count_sql, query)))

    async def _read_query_values(self, sql: str, query: RecordQuery) -> list[Any]:
        retries = ReadRetries(self._usage, self._runtime)
        while True:
            try:
                return [value async for value in self._send_query(sql, query)]
            except (AzureError, OSError, TimeoutError) as error:
                await retries.wait_after_failure(error)

    def _send_query(self, sql: str, query: RecordQuery) -> AsyncGenerator[Any]:
        return query_items(
            self._container,
            sql,
            parameters=query.sdk_parameters,
            partition_key=self._key,
            max_item_count=query.page,
            response_hook=self._usage.record_reply,
        )


def query_from_filters(
    filters: Filters, *, descending: bool, page_size: int, to_stored_value: Callable[[str], str]
) -> RecordQuery:
    """Build a query for the records that match filters.

    Args:
        filters: conditions on the records.
        descending: whether the newest records come first.
        page_size: number of items that the SDK fetches with one request.
        to_stored_value: converts the value of a filter field to its stored form (a digest if it is long).
    """
    conditions: list[str] = []
    parameters: list[tuple[str, str]] = []
    for number, (name, value) in enumerate(filters.equal.items()):
        conditions.append(f"c.p.{name} = @f{number}")
        parameters.append((f"@f{number}", to_stored_value(value)))
    conditions += [f"NOT IS_DEFINED(c.p.{name})" for name in filters.absent]
    for name, operator, value in (("@start", ">=", filters.start), ("@end", "<=", filters.end)):
        if value:
            conditions.append(f"c.p.Timestamp {operator} {name}")
            parameters.append((name, value))
    low = 1 if filters.from_sequence is None else max(1, min(filters.from_sequence, LAST_SEQUENCE + 1))
    high = LAST_SEQUENCE if filters.to_sequence is None else max(0, min(filters.to_sequence, LAST_SEQUENCE))
    if filters.sequences is not None:
        names = [f"@s{number}" for number in range(len(filters.sequences))]
        conditions.append(f"c.id IN ({', '.join(names)})")
        parameters += zip(names, map(format_record_id, filters.sequences), strict=True)
        low, high = max(low, min(filters.sequences)), min(high, max(filters.sequences))
    return RecordQuery(low, high, tuple(conditions), tuple(parameters), descending=descending, page=page_size)


KNOWN_CHAINS: Final = 10_000


class Segments:
    """Finder of the segments (partitions) of chains by their records, because head items can be forged.

    A record belongs to a segment if its sequence number is higher than the last sequence number of the previous
    segment. All other records are forged, and are ignored.

    The last sequence number of a sealed (full) segment never changes and is cached. Head items are used only for this
    cache: they state which segments are sealed. While the head item of a segment is missing or damaged, this segment
    and all later ones are not cached, and each read sends up to three requests for each of them.

    Args:
        open_container: returns the Cosmos DB container of a target (kind of audit chain).
        usage: counters of requests and request units.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self, open_container: Callable[[str], Awaitable[ContainerProxy]], usage: CosmosUsage, runtime: Runtime
    ) -> None:
        self._container = open_container
        self._usage = usage
        self._runtime = runtime
        self._lasts: dict[ChainKey, list[int]] = {}

    async def split_query_by_partition(
        self, chain: ChainKey, query: RecordQuery
    ) -> AsyncIterator[tuple[RecordPartition, RecordQuery]]:
        """Yield the partitions that a query must read, in the query's order, each with the query for this partition.

        Before the last known segment is read, the existence of a next segment is checked. Otherwise, records that are
        appended between these two steps could be missed.
        """
        if query.descending:
            lasts = await self._find_last_sequences_of_full_segments(chain, query.high)
            for index in range(bisect_left(lasts, query.high), -1, -1):
                part = _restrict_to_segment(lasts, index, query)
                if part.low <= part.high:
                    yield await self._open_partition(chain, index + 1), part
            return
        index, low = 0, query.low
        while low <= query.high:
            lasts = await self._find_last_sequences_of_full_segments(chain, low)
            index = max(index, bisect_left(lasts, low))
            part = _restrict_to_segment(lasts, index, query)
            yield await self._open_partition(chain, index + 1), part
            if index >= len(lasts):
                return
            low, index = max(low, lasts[index] + 1), index + 1

    async def _find_last_sequences_of_full_segments(self, chain: ChainKey, until_sequence: int) -> list[int]:
        """Return the last sequence number of each full segment, in order.

        The search ends at the segment that contains ``until_sequence``. The result also covers later segments if they
        are cached.
        """
        lasts = known = self._lasts.get(chain, [])
        while not lasts or lasts[-1] < until_sequence:
            last = await self._find_last_sequence_of_next_segment(chain, lasts)
            if last is None:
                return lasts
            is_next, lasts = lasts is known, [*lasts, last]
            # A forged record in the next segment can make a segment look full that still grows.
            if is_next and await self._is_last_segment_sealed(chain, lasts):
                known = lasts
                self._cache_last_sequences(chain, known)
        return lasts

    async def _is_last_segment_sealed(self, chain: ChainKey, last_sequences: list[int]) -> bool:
        """Return whether the last of the given segments is sealed (full) and ends as given, according to its head item.

        Args:
            chain: key of the chain.
            last_sequences: last sequence number of each segment from the first one to the segment to check.
        """
        partition = await self._open_partition(chain, len(last_sequences))
        return await partition.find_last_sequence_if_sealed() == last_sequences[-1]

    def _cache_last_sequences(self, chain: ChainKey, last_sequences: list[int]) -> None:
        if len(self._lasts) >= KNOWN_CHAINS and chain not in self._lasts:
            self._lasts.clear()
        self._lasts[chain] = last_sequences

    async def _find_last_sequence_of_next_segment(self, chain: ChainKey, last_sequences: list[int]) -> int | None:
        """Return the last sequence number of the next segment; None if that segment is not full yet.

        Args:
            chain: key of the chain.
            last_sequences: last sequence numbers of all earlier segments.
        """
        segment = len(last_sequences) + 1
        following = await (await self._open_partition(chain, segment + 1)).read_last_sequence_or_zero()
        if not following:
            return None
        last = max(
            await (await self._open_partition(chain, segment)).read_last_sequence_or_zero(),
            last_sequences[-1] if last_sequences else 0,
        )
        # A lower sequence in the following segment is forged.
        return last if following > last else None

    async def _open_partition(self, chain: ChainKey, segment_number: int) -> RecordPartition:
        return RecordPartition(
            await self._container(chain.target),
            compute_partition_key(chain, segment_number),
            self._usage,
            self._runtime,
        )


def _restrict_to_segment(last_sequences: list[int], segment_index: int, query: RecordQuery) -> RecordQuery:
    low = last_sequences[segment_index - 1] + 1 if segment_index else 1
    high = last_sequences[segment_index] if segment_index < len(last_sequences) else LAST_SEQUENCE
    return query.restrict_to_sequences(low, high)
