"""Pages of a chain across its segments."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from shared.backends.azure.cosmos_items import record_of
from shared.backends.azure.cosmos_queries import Partition, Query
from shared.provenance.ports import ChainRecord, RecordPage


class Scan:
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

    async def page(self, parts: AsyncIterator[tuple[Partition, Query]]) -> RecordPage:
        """Return the page that the partitions make, in their order."""
        async for partition, query in parts:
            rest = await self._skip(partition, query)
            if rest is not None and await self._fill(partition, rest):
                return RecordPage(self._records, more=True, scanned=self._scanned)
        return RecordPage(self._records, more=False, scanned=self._scanned)

    async def _skip(self, partition: Partition, query: Query) -> Query | None:
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

    async def _fill(self, partition: Partition, query: Query) -> bool:
        """Take what fits; return whether something was left."""
        async with aclosing(partition.items(query)) as items:
            async for item in items:
                self._scanned += 1
                if self._full(item):
                    return True
        return False

    def _full(self, item: dict[str, Any]) -> bool:
        record = record_of(item)
        if record is None:
            return False
        self._size += len(record.canonical)
        if self._records and (len(self._records) >= self._limit or self._size > self._max_bytes):
            return True
        self._records.append(record)
        return False
