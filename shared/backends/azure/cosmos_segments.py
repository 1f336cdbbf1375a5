"""Which partitions a chain's records lie in, learnt from the records alone: heads are not trusted for reads."""

from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from azure.cosmos.aio import ContainerProxy

from shared.backends.azure.cosmos_items import LAST_SEQUENCE, partition
from shared.backends.azure.cosmos_queries import Partition, Query
from shared.backends.azure.cosmos_usage import CosmosUsage
from shared.provenance.ports import ChainKey

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

    async def parts(self, chain: ChainKey, query: Query) -> AsyncIterator[tuple[Partition, Query]]:
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

    async def all(self, chain: ChainKey) -> list[Partition]:
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

    async def _partition(self, chain: ChainKey, segment: int) -> Partition:
        return Partition(await self._container(chain.target), partition(chain, segment), self._usage)


def _part(lasts: list[int], index: int, query: Query) -> Query:
    low = lasts[index - 1] + 1 if index else 1
    high = lasts[index] if index < len(lasts) else LAST_SEQUENCE
    return query.within(low, high)
