"""Runs queries so that nothing is given twice.

Answered 410/1002 (the partition was split) behind the first page, azure-cosmos 4.17 forgets the continuation, asks for
the first page again, and hands its items out a second time without a word.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus
from typing import Any

from azure.core.pipeline import PipelineResponse
from azure.cosmos.aio import ContainerProxy


class QueryRestartedError(ConnectionError):
    """The SDK began a query anew; what it gives from here on was given before."""


class _Watch:
    """Sees the replies that the SDK deals with by itself."""

    def __init__(self) -> None:
        self._gone = False

    def __call__(self, response: PipelineResponse[Any, Any]) -> None:
        self._gone = self._gone or response.http_response.status_code == HTTPStatus.GONE

    def check(self) -> None:
        """Raise when the query was begun anew."""
        if self._gone:
            raise QueryRestartedError


async def query_items(container: ContainerProxy, text: str, **options: Any) -> AsyncGenerator[Any]:
    """Give what a query finds; takes the options of the SDK's method.

    Raises:
        QueryRestartedError: it is to be sent again, from behind what was given.
        AzureError, OSError, TimeoutError: as the SDK does.
    """
    watch = _Watch()
    async for item in container.query_items(text, raw_response_hook=watch, **options):
        watch.check()
        yield item


async def query_page(
    container: ContainerProxy, text: str, after: str | None, **options: Any
) -> tuple[list[Any], str | None]:
    """Return the page of a query behind a continuation token, and the token of the next one, None behind the last.

    Raises:
        QueryRestartedError: it is to be sent again.
        AzureError, OSError, TimeoutError: as the SDK does.
    """
    watch = _Watch()
    # The SDK's type does not say that its pages know where they end.
    pages: Any = container.query_items(text, raw_response_hook=watch, **options).by_page(after)
    page: AsyncIterator[Any]
    async for page in pages:
        watch.check()
        return [item async for item in page], pages.continuation_token
    watch.check()
    return [], None
