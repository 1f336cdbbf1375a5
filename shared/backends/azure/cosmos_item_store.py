"""Items in Cosmos DB that are replaced by compare-and-swap, each change once, whatever becomes of its reply.

Every write goes out under a condition and leaves its own id in the item. A write whose reply was lost is sent again
under the same condition; where that meets a conflict, the item tells whether the conflict is the write's own first try.
"""

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.cosmos.exceptions import CosmosHttpResponseError

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import (
    CATALOG,
    CONNECTIONS,
    CREDENTIALS,
    DOWNLOADS,
    REQUESTS,
    ContainerDefinition,
)
from shared.backends.azure.cosmos_queries import query_items
from shared.backends.azure.cosmos_requests import Operation, ReadRetries, retry_read, send
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import OutcomeUnknownError, TipMovedError

PATIENCE_SECONDS: Final = 10.0
MAX_OPERATIONS: Final = 100
REMEMBERED_WRITES: Final = 8
"""So many writers may come between a write whose reply was lost and its second try."""

_PAGE: Final = 1_000
_FIRST_WAIT_SECONDS: Final = 0.01
_LONGEST_WAIT_SECONDS: Final = 1.0

type Item = dict[str, Any]


class CosmosItemStore:
    """One container, as a store of the service uses it.

    Args:
        account: where it is.
        definition: which one.
        code: of the UNAVAILABLE error that callers get.
        what: names the store in that error.
        patience_seconds: how long a change is tried.
    """

    def __init__(
        self,
        account: CosmosAccount,
        definition: ContainerDefinition,
        code: str,
        what: str,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._account = account
        self._definition = definition
        self._code = code
        self._what = what
        self._patience = patience_seconds

    async def read(self, item_id: str, partition: str) -> Item | None:
        """Return an item as it stands, None without one: a point read."""
        usage = self._account.usage
        async with self._answering():
            container = await self._account.container(self._definition.name)
            try:
                return await retry_read(
                    lambda: container.read_item(item_id, partition, response_hook=usage.count_reply), usage
                )
            except CosmosHttpResponseError as error:
                # A container that is gone is no item that is not there.
                if getattr(error, "sub_status", None):
                    raise self.unavailable() from error
                return None

    async def find(self, text: str, partition: str | None = None, **values: str) -> list[Item]:
        """Return what a query gives, in any order.

        Args:
            text: the query; names parameters ``@name``.
            partition: where to look, None for everywhere.
            values: of the parameters.
        """
        usage = self._account.usage
        place: dict[str, Any] = {} if partition is None else {"partition_key": partition}
        named: list[dict[str, object]] = [{"name": f"@{name}", "value": value} for name, value in values.items()]
        async with self._answering():
            container = await self._account.container(self._definition.name)
            retries = ReadRetries(usage)
            while True:
                try:
                    found = query_items(
                        container,
                        text,
                        parameters=named,
                        max_item_count=_PAGE,
                        response_hook=usage.count_reply,
                        **place,
                    )
                    return [item async for item in found]
                except (AzureError, OSError, TimeoutError) as error:
                    await retries.wait(error)

    async def change(
        self, item_id: str, partition: str, change: Callable[[Item | None], Item | None], *, known: Item | None = None
    ) -> Item | None:
        """Replace an item by what a function makes of it, with no other change between; return it as it then stands.

        Args:
            item_id: which item.
            partition: its partition key.
            change: gives the new item for the old one (None where there is none), or None to leave it. What it raises
                comes through. It may be called several times.
            known: the item as it stood when this process wrote it last; saves the retry_read while nobody else writes.
        """
        deadline = time.monotonic() + self._patience
        before = known or await self.read(item_id, partition)
        attempt = 0
        while True:
            after = change(before)
            if after is None:
                return before
            stored = await self.put(before, after)
            if stored is not None:
                return stored
            if time.monotonic() > deadline:
                raise self.unavailable()
            await _wait(attempt)
            attempt += 1
            before = await self.read(item_id, partition)

    async def put(self, before: Item | None, after: Item, beside: Sequence[Operation] = ()) -> Item | None:
        """Create an item, or replace it as it was read; return it as it then stands, None when it is another by now.

        Args:
            before: the item as it was read, None for a new one.
            after: what to store, in the same partition.
            beside: further operations there, done together with it or not at all.
        """
        write = uuid.uuid4().hex[:16]
        earlier = before.get("writes", []) if before else []
        body = {name: value for name, value in after.items() if not name.startswith("_")}
        body["writes"] = [*earlier[1 - REMEMBERED_WRITES :], write]
        operation: Operation = ("create", (body,), {})
        if before is not None:
            operation = ("replace", (body["id"], body), {"if_match_etag": before["_etag"]})
        partition = body[self._definition.partition_member]
        results, uncertain = await self.commit(partition, (operation, *beside))
        if results is not None:
            return body | {"_etag": str(results[0]["eTag"])}
        found = await self.read(body["id"], partition) if uncertain else None
        return found if found is not None and write in found.get("writes", ()) else None

    async def commit(self, partition: str, operations: Sequence[Operation]) -> tuple[Any, bool]:
        """Send a batch until it is known what became of it.

        Returns:
            The results, or None when a condition does not hold; and whether an earlier try of this batch may be why.

        Raises:
            WorkspaceError: UNAVAILABLE; what became of it may be unknown.
        """
        deadline = time.monotonic() + self._patience
        uncertain, attempt = False, 0
        async with self._answering():
            container = await self._account.container(self._definition.name)
            while True:
                try:
                    return await send(container, operations, partition, self._account.usage, deadline), uncertain
                except TipMovedError:
                    return None, uncertain
                except OutcomeUnknownError as error:
                    uncertain = True
                    if time.monotonic() > deadline:
                        raise self.unavailable() from error
                await _wait(attempt)
                attempt += 1

    async def delete(self, item_id: str, partition: str, *, etag: str = "") -> None:
        """Delete an item, with an ETag only while it is that one; it is no fault when it is not there."""
        condition = {"if_match_etag": etag} if etag else {}
        await self.commit(partition, [("delete", (item_id,), condition)])

    def unavailable(self) -> WorkspaceError:
        """Return the error that says that the store does not answer."""
        return WorkspaceError(Kind.UNAVAILABLE, self._code, f"{self._what} does not answer at the moment; try again")

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        """Tell an outage under the store's own code; what is unfit about the account stands in the log."""
        try:
            yield
        except WorkspaceError as error:
            raise self.unavailable() from error


def probes(account: CosmosAccount) -> dict[str, Callable[[], Awaitable[None]]]:
    """Return a call for each container without which requests fail: a point read of nothing, one request unit."""

    def probe(definition: ContainerDefinition) -> Callable[[], Awaitable[None]]:
        state = CosmosItemStore(account, definition, "NOT_READY", f"the container {definition.name}")

        async def asked() -> None:
            await state.read("-", "-")

        return asked

    needed = (CATALOG, CREDENTIALS, CONNECTIONS, REQUESTS, DOWNLOADS)
    return {f"Cosmos DB container {definition.name}": probe(definition) for definition in needed}


async def _wait(attempt: int) -> None:
    longest = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0**attempt)
    # Jitter is no secret.
    await asyncio.sleep(random.random() * longest)  # noqa: S311
