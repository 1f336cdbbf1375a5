"""Reads of the records of one chain in Cosmos DB, across the partitions that hold them."""

from bisect import bisect_left
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.cosmos.aio import ContainerProxy

from shared.backends.azure.cosmos_chain_items import LAST_SEQUENCE, partition
from shared.backends.azure.cosmos_queries import query_items
from shared.backends.azure.cosmos_requests import CosmosUsage, ReadRetries
from shared.provenance.hash_rule import record_id, sequence_of
from shared.provenance.ports import ChainKey, Filters

MAX_PAGE: Final = 1_000
_LARGEST_OFFSET: Final = 2**31 - 1

type Parameters = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """Which records of a partition to read.

    Attributes:
        low: lowest sequence.
        high: highest sequence.
        conditions: SQL that holds for each, joined with AND; never holds a caller's text.
        parameters: what the conditions name.
        fields: what of each item; the id is among it.
        descending: order by id.
        page: items of a page.
    """

    low: int = 1
    high: int = LAST_SEQUENCE
    conditions: tuple[str, ...] = ()
    parameters: Parameters = ()
    fields: str = "*"
    descending: bool = False
    page: int = MAX_PAGE

    def within(self, low: int, high: int) -> "RecordQuery":
        """Return the query for a part of its window."""
        return replace(self, low=max(low, self.low), high=min(high, self.high))

    def beyond(self, sequence: int) -> "RecordQuery":
        """Return the query for what follows a record in the order."""
        return self.within(1, sequence - 1) if self.descending else self.within(sequence + 1, LAST_SEQUENCE)

    @property
    def text(self) -> str:
        """The query; the range leaves the head out, whose id is no number."""
        order = "DESC" if self.descending else "ASC"
        return f"SELECT {self.fields} FROM c WHERE {self._where} ORDER BY c.id {order}"  # noqa: S608  our own names

    @property
    def counting(self) -> str:
        """The query that counts the matches."""
        return f"SELECT VALUE COUNT(1) FROM c WHERE {self._where}"  # noqa: S608  our own names

    @property
    def _where(self) -> str:
        return " AND ".join(("c.id BETWEEN @low AND @high", *self.conditions))

    @property
    def named(self) -> list[dict[str, object]]:
        """The parameters as the SDK takes them."""
        bounds = (("@low", record_id(self.low)), ("@high", record_id(self.high)))
        return [{"name": name, "value": value} for name, value in (*bounds, *self.parameters)]


class RecordPartition:
    """The records of one segment.

    Args:
        container: where the chain is.
        key: the partition key.
        usage: counts requests.
    """

    def __init__(self, container: ContainerProxy, key: str, usage: CosmosUsage) -> None:
        self._container = container
        self._key = key
        self._usage = usage

    async def items(self, query: RecordQuery) -> AsyncGenerator[dict[str, Any]]:
        """Give what matches, in order."""
        retries = ReadRetries(self._usage)
        while query.low <= query.high:
            try:
                async with aclosing(self._sent(query.text, query)) as found:
                    async for item in found:
                        retries.reset()
                        sequence = sequence_of(item["id"])
                        if sequence is not None:
                            yield item
                            query = query.beyond(sequence)
            except (AzureError, OSError, TimeoutError) as error:
                await retries.wait(error)
            else:
                return

    async def last(self) -> int:
        """Return the highest sequence, 0 without a record."""
        async with aclosing(self.items(RecordQuery(fields="c.id", descending=True, page=1))) as items:
            async for item in items:
                return sequence_of(item["id"]) or 0
        return 0

    async def after_skipping(self, query: RecordQuery, count: int) -> int | None:
        """Return the sequence of the match that follows the first so many, None when there is none."""
        while True:
            text = f"{query.text} OFFSET {min(int(count), _LARGEST_OFFSET)} LIMIT 1"
            found = await self._values(text, query)
            if not found:
                return None
            sequence = sequence_of(found[0]["id"])
            if sequence is not None:
                return sequence
            # An id that is no record's, though it lies among theirs.
            count += 1

    async def count(self, query: RecordQuery) -> int:
        """Return how many match."""
        return int((await self._values(query.counting, query))[0])

    async def _values(self, text: str, query: RecordQuery) -> list[Any]:
        retries = ReadRetries(self._usage)
        while True:
            try:
                return [value async for value in self._sent(text, query)]
            except (AzureError, OSError, TimeoutError) as error:
                await retries.wait(error)

    def _sent(self, text: str, query: RecordQuery) -> AsyncGenerator[Any]:
        return query_items(
            self._container,
            text,
            parameters=query.named,
            partition_key=self._key,
            max_item_count=query.page,
            response_hook=self._usage.count_reply,
        )


def query_from_filters(filters: Filters, *, descending: bool, page: int, project_value: Any) -> RecordQuery:
    """Return the query of a scan.

    Args:
        filters: what to match; names are those of project_value fields.
        descending: newest first.
        page: items of a page.
        project_value: gives what is stored for a value.
    """
    conditions: list[str] = []
    parameters: list[tuple[str, str]] = []
    for number, (name, value) in enumerate(filters.equal.items()):
        conditions.append(f"c.p.{name} = @f{number}")
        parameters.append((f"@f{number}", project_value(value)))
    conditions += [f"NOT IS_DEFINED(c.p.{name})" for name in filters.absent]
    for name, operator, value in (("@start", ">=", filters.start), ("@end", "<=", filters.end)):
        if value:
            conditions.append(f"c.p.Timestamp {operator} {name}")
            parameters.append((name, value))
    low = 1 if filters.from_sequence is None else max(1, min(filters.from_sequence, LAST_SEQUENCE + 1))
    high = LAST_SEQUENCE if filters.to_sequence is None else max(0, min(filters.to_sequence, LAST_SEQUENCE))
    return RecordQuery(low, high, tuple(conditions), tuple(parameters), descending=descending, page=page)


KNOWN_CHAINS: Final = 10_000


class Segments:
    """The segments of chains; where one ended never changes, so it is remembered.

    A record belongs to its segment when its sequence lies beyond the last of the segment before. What a forger puts
    elsewhere is no part of the chain.

    Args:
        container: gives the container of a target.
        usage: counts requests.
    """

    def __init__(self, container: Callable[[str], Awaitable[ContainerProxy]], usage: CosmosUsage) -> None:
        self._container = container
        self._usage = usage
        self._lasts: dict[ChainKey, list[int]] = {}

    async def parts(self, chain: ChainKey, query: RecordQuery) -> AsyncIterator[tuple[RecordPartition, RecordQuery]]:
        """Give the partitions that a query must look into, in its order, and the part of the query for each.

        Whether a further segment has begun is asked before the last one is read, so that no record answered before
        is missed.
        """
        if query.descending:
            lasts = await self._up_to(chain, query.high)
            for index in range(bisect_left(lasts, query.high), -1, -1):
                part = _part(lasts, index, query)
                if part.low <= part.high:
                    yield await self._partition(chain, index + 1), part
            return
        index, low = 0, query.low
        while low <= query.high:
            lasts = await self._up_to(chain, low)
            index = max(index, bisect_left(lasts, low))
            part = _part(lasts, index, query)
            yield await self._partition(chain, index + 1), part
            if index >= len(lasts):
                return
            low, index = max(low, lasts[index] + 1), index + 1

    async def all(self, chain: ChainKey) -> list[RecordPartition]:
        """Return every partition that has records, and the one that may get the first."""
        count = len(await self._up_to(chain, LAST_SEQUENCE)) + 1
        return [await self._partition(chain, number + 1) for number in range(count)]

    async def _up_to(self, chain: ChainKey, sequence: int) -> list[int]:
        """Return where segments ended, as far as needed to know the segment of a sequence."""
        lasts = self._lasts.get(chain, [])
        while not lasts or lasts[-1] < sequence:
            ended = await self._ended(chain, lasts)
            if ended is None:
                return lasts
            lasts = [*lasts, ended]
            if len(self._lasts) >= KNOWN_CHAINS and chain not in self._lasts:
                self._lasts.clear()
            self._lasts[chain] = lasts
        return lasts

    async def _ended(self, chain: ChainKey, lasts: list[int]) -> int | None:
        """Return where the segment after those known ended, None while no further one has begun."""
        segment = len(lasts) + 1
        following = await (await self._partition(chain, segment + 1)).last()
        if not following:
            return None
        ended = max(await (await self._partition(chain, segment)).last(), lasts[-1] if lasts else 0)
        # A lower sequence there is no continuation but a forgery.
        return ended if following > ended else None

    async def _partition(self, chain: ChainKey, segment: int) -> RecordPartition:
        return RecordPartition(await self._container(chain.target), partition(chain, segment), self._usage)


def _part(lasts: list[int], index: int, query: RecordQuery) -> RecordQuery:
    low = lasts[index - 1] + 1 if index else 1
    high = lasts[index] if index < len(lasts) else LAST_SEQUENCE
    return query.within(low, high)
