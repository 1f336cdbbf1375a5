"""Queries of Cosmos DB that return no item twice and have a timeout.

If the reply to a later page is 410/1002 (the partition was split), azure-cosmos 4.17 silently restarts the query and
returns the items of the first page again. The functions of this module detect such a reply and raise an exception.

Before a query over several partitions, azure-cosmos 4.17 requests the query plan without any read timeout. If the reply
were lost, the query would never end. The functions of this module therefore pass the timeout with each query.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus
from typing import Any, NamedTuple

from azure.core.pipeline import PipelineResponse
from azure.cosmos.aio import ContainerProxy


class QueryRestartedError(ConnectionError):
    """Exception raised because the SDK has restarted a query and would return items a second time."""


class _RestartDetector:
    """Response hook that detects the reply after which the SDK silently restarts a query."""

    def __init__(self) -> None:
        self._gone = False

    def __call__(self, response: PipelineResponse[Any, Any]) -> None:
        self._gone = self._gone or response.http_response.status_code == HTTPStatus.GONE

    def raise_if_restarted(self) -> None:
        """Raise :class:`QueryRestartedError` if the SDK has restarted the query."""
        if self._gone:
            raise QueryRestartedError


async def query_items(container: ContainerProxy, sql: str, **sdk_options: Any) -> AsyncGenerator[Any]:
    """Yield the items that match a query; ``sdk_options`` are passed to the SDK's method.

    Raises:
        QueryRestartedError: the SDK restarted the query; query for the items after the last yielded item.
        AzureError, OSError, TimeoutError: the request failed.
    """
    detector = _RestartDetector()
    timeout = _get_read_timeout_seconds(container)
    async for item in container.query_items(sql, raw_response_hook=detector, read_timeout=timeout, **sdk_options):
        detector.raise_if_restarted()
        yield item


class QueryPage(NamedTuple):
    """Page of a query's items; ``next_token`` is the continuation token of the next page, None after the last page."""

    items: list[Any]
    next_token: str | None


async def query_page(
    container: ContainerProxy, sql: str, continuation_token: str | None, **sdk_options: Any
) -> QueryPage:
    """Return one page of a query's items: the page of ``continuation_token``, or for None the first page.

    ``sdk_options`` are passed to the SDK's method.

    Raises:
        QueryRestartedError: the SDK restarted the query; send it again.
        AzureError, OSError, TimeoutError: the request failed.
    """
    detector = _RestartDetector()
    timeout = _get_read_timeout_seconds(container)
    query = container.query_items(sql, raw_response_hook=detector, read_timeout=timeout, **sdk_options)
    # The SDK's type does not declare the attribute continuation_token.
    pages: Any = query.by_page(continuation_token)
    page: AsyncIterator[Any]
    async for page in pages:
        detector.raise_if_restarted()
        return QueryPage([item async for item in page], pages.continuation_token)
    detector.raise_if_restarted()
    return QueryPage([], None)


def _get_read_timeout_seconds(container: ContainerProxy) -> float:
    """Return the read timeout of the SDK client in seconds."""
    return float(container.client_connection.connection_policy.ReadTimeout)
