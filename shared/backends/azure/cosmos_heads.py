"""Lists the heads of a container that changed."""

from collections.abc import AsyncIterator
from typing import Any

from azure.core.exceptions import AzureError
from azure.cosmos.aio import ContainerProxy

from shared.backends.azure.cosmos_faults import ReadRetries
from shared.backends.azure.cosmos_feed import query_items
from shared.backends.azure.cosmos_queries import MAX_PAGE
from shared.backends.azure.cosmos_usage import CosmosUsage


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
                response_hook=usage.answered,
            ):
                retries.progressed()
                # Whoever may write items may write one without a partition key.
                key = item.get("chain")
                if isinstance(key, str) and key not in given:
                    given.add(key)
                    yield item
        except (AzureError, OSError, TimeoutError) as error:
            await retries.wait(error)
        else:
            return
