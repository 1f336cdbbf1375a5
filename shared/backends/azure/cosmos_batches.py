"""Sends transactional batches, each try once."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.cosmos.aio import ContainerProxy

from shared.backends.azure.cosmos_faults import of_batch, throttled_seconds
from shared.backends.azure.cosmos_usage import CosmosUsage

_LEAST_WAIT_SECONDS: Final = 0.005

type Operation = tuple[str, tuple[Any, ...], dict[str, Any]]


async def send(
    container: ContainerProxy, operations: Sequence[Operation], partition: str, usage: CosmosUsage, deadline: float
) -> Any:
    """Send a batch, again only after a refusal that says that nothing was written, and return its results.

    Args:
        container: where it goes.
        operations: up to 100, of one logical partition.
        partition: its key.
        usage: counts what happens.
        deadline: until when throttling is waited out, on the monotonic clock.

    Raises:
        TipMovedError: a condition does not hold, or an item exists or is gone; nothing was written.
        OutcomeUnknownError: the batch may be written, now or later.
        WorkspaceError: UNAVAILABLE; nothing was written.
    """
    while True:
        # The SDK takes the conditions out of what it is given: a second try with the same would have none.
        fresh = [(kind, arguments, dict(options)) for kind, arguments, options in operations]
        try:
            return await container.execute_item_batch(fresh, partition, no_response=True, response_hook=usage.answered)
        except (AzureError, OSError, TimeoutError) as error:
            wait = throttled_seconds(error)
            if wait is None or time.monotonic() + wait > deadline:
                raise of_batch(error, usage) from error
            usage.throttled += 1
            usage.charged(getattr(error, "headers", None) or {})
            await asyncio.sleep(max(wait, _LEAST_WAIT_SECONDS))
