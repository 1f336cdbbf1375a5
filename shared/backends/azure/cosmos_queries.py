"""Queries within one partition, by id, resumed where a failure interrupted them."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.cosmos.aio import ContainerProxy

from shared.backends.azure.cosmos_faults import ReadRetries
from shared.backends.azure.cosmos_feed import query_items
from shared.backends.azure.cosmos_items import LAST_SEQUENCE
from shared.backends.azure.cosmos_usage import CosmosUsage
from shared.provenance.hash_rule import record_id, sequence_of
from shared.provenance.ports import Filters

MAX_PAGE: Final = 1_000
_LARGEST_OFFSET: Final = 2**31 - 1

type Parameters = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Query:
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

    def within(self, low: int, high: int) -> "Query":
        """Return the query for a part of its window."""
        return replace(self, low=max(low, self.low), high=min(high, self.high))

    def beyond(self, sequence: int) -> "Query":
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


class Partition:
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

    async def items(self, query: Query) -> AsyncGenerator[dict[str, Any]]:
        """Give what matches, in order."""
        retries = ReadRetries(self._usage)
        while query.low <= query.high:
            try:
                async with aclosing(self._sent(query.text, query)) as found:
                    async for item in found:
                        retries.progressed()
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
        async with aclosing(self.items(Query(fields="c.id", descending=True, page=1))) as items:
            async for item in items:
                return sequence_of(item["id"]) or 0
        return 0

    async def after_skipping(self, query: Query, count: int) -> int | None:
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

    async def count(self, query: Query) -> int:
        """Return how many match."""
        return int((await self._values(query.counting, query))[0])

    async def _values(self, text: str, query: Query) -> list[Any]:
        retries = ReadRetries(self._usage)
        while True:
            try:
                return [value async for value in self._sent(text, query)]
            except (AzureError, OSError, TimeoutError) as error:
                await retries.wait(error)

    def _sent(self, text: str, query: Query) -> AsyncGenerator[Any]:
        return query_items(
            self._container,
            text,
            parameters=query.named,
            partition_key=self._key,
            max_item_count=query.page,
            response_hook=self._usage.answered,
        )


def of_filters(filters: Filters, *, descending: bool, page: int, projected: Any) -> Query:
    """Return the query of a scan.

    Args:
        filters: what to match; names are those of projected fields.
        descending: newest first.
        page: items of a page.
        projected: gives what is stored for a value.
    """
    conditions: list[str] = []
    parameters: list[tuple[str, str]] = []
    for number, (name, value) in enumerate(filters.equal.items()):
        conditions.append(f"c.p.{name} = @f{number}")
        parameters.append((f"@f{number}", projected(value)))
    conditions += [f"NOT IS_DEFINED(c.p.{name})" for name in filters.absent]
    for name, operator, value in (("@start", ">=", filters.start), ("@end", "<=", filters.end)):
        if value:
            conditions.append(f"c.p.Timestamp {operator} {name}")
            parameters.append((name, value))
    low = 1 if filters.from_sequence is None else max(1, min(filters.from_sequence, LAST_SEQUENCE + 1))
    high = LAST_SEQUENCE if filters.to_sequence is None else max(0, min(filters.to_sequence, LAST_SEQUENCE))
    return Query(low, high, tuple(conditions), tuple(parameters), descending=descending, page=page)
