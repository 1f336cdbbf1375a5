"""Items in Cosmos DB. Each change is applied exactly once, even if the reply to a write is lost.

Every write is conditional and stores its own id in the item. If the reply is lost, the write is sent again with the
same condition. If the second attempt conflicts, the ids in the item show whether the first attempt caused the conflict.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from azure.core.exceptions import AzureError
from azure.cosmos.exceptions import CosmosHttpResponseError

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import (
    ALERTS,
    CATALOG,
    CONNECTIONS,
    CREDENTIALS,
    DOWNLOADS,
    REQUESTS,
    ContainerDefinition,
)
from shared.backends.azure.cosmos_queries import query_items
from shared.backends.azure.cosmos_requests import BatchResults, Operation, ReadRetries, retry_read, send_batch
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.provenance.ports import OutcomeUnknownError, TipMovedError

RETRY_SECONDS: Final = 10.0
MAX_OPERATIONS: Final = 100
REMEMBERED_WRITES: Final = 8
"""Number of recent write ids that an item lists, so that a writer whose reply was lost still finds its own id."""

_PAGE: Final = 1_000
_FIRST_WAIT_SECONDS: Final = 0.01
_LONGEST_WAIT_SECONDS: Final = 1.0
_LOG = logs.get_logger("cosmos")

type Item = dict[str, Any]

type NoChange = None
"""Result of a function that changes items, if the item stays as it is."""


class BatchOutcome(NamedTuple):
    """Outcome of a transactional batch.

    Attributes:
        results: result of each operation; None if one of the batch's conditions is false.
        may_be_applied: True if an earlier attempt of the same batch may have been applied; this would explain the
            false condition.
    """

    results: BatchResults | None
    may_be_applied: bool


class CosmosItemStore:
    """Reads and changes the items of one container.

    Args:
        account: Cosmos DB account of the workspace.
        definition: definition of the container.
        error_code: code of the error that is raised if the container does not respond.
        store_name: what the container stores, for that error's message, for instance ``the store of quotas``.
        retry_seconds: time in seconds for which a change is retried.
    """

    def __init__(
        self,
        account: CosmosAccount,
        definition: ContainerDefinition,
        error_code: str,
        store_name: str,
        *,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._account = account
        self._definition = definition
        self._code = error_code
        self._name = store_name
        self._retry_seconds = retry_seconds

    async def read(self, item_id: str, partition_key: str) -> Item | None:
        """Read one Cosmos DB item by its id; return None if it does not exist."""
        usage = self._account.usage
        async with self._replace_errors_by_unavailable_error():
            container = await self._account.open_container(self._definition.name)
            try:
                return await retry_read(
                    lambda: container.read_item(item_id, partition_key, response_hook=usage.record_reply),
                    usage,
                    self._account.runtime,
                )
            except CosmosHttpResponseError as error:
                # A reply with a sub-status means that the container is missing, not the item.
                if getattr(error, "sub_status", None):
                    _LOG.exception("a container cannot be read", extra=logs.fields(container=self._definition.name))
                    raise self.build_unavailable_error() from error
                return None

    async def query_items(self, sql: str, partition_key: str | None = None, **values: str) -> list[Item]:
        """Return the items that match a query; their order is undefined unless the query has ``ORDER BY``.

        Args:
            sql: SQL text of the query, with parameters ``@name``.
            partition_key: partition key of the items; None for all partitions.
            values: values of the query's parameters by name.
        """
        usage = self._account.usage
        options: dict[str, Any] = {} if partition_key is None else {"partition_key": partition_key}
        parameters: list[dict[str, object]] = [{"name": f"@{name}", "value": value} for name, value in values.items()]
        async with self._replace_errors_by_unavailable_error():
            container = await self._account.open_container(self._definition.name)
            retries = ReadRetries(usage, self._account.runtime)
            while True:
                try:
                    found = query_items(
                        container,
                        sql,
                        parameters=parameters,
                        max_item_count=_PAGE,
                        response_hook=usage.record_reply,
                        **options,
                    )
                    return [item async for item in found]
                except (AzureError, OSError, TimeoutError) as error:
                    await retries.wait_after_failure(error)

    async def change(
        self,
        item_id: str,
        partition_key: str,
        change: Callable[[Item | None], Item | NoChange],
        *,
        known_item: Item | None = None,
    ) -> Item | None:
        """Replace an item by the result of ``change`` and return the stored item.

        Retry if another writer changed the item.

        Args:
            item_id: id of the item.
            partition_key: partition key of the item.
            change: receives the current item (None if it does not exist) and returns the new item, or None for no
                change. It can be called several times; its exceptions are raised to the caller.
            known_item: the item that this process wrote last; saves a read if no other process has changed it.
        """
        deadline = self._account.runtime.monotonic() + self._retry_seconds
        before = known_item or await self.read(item_id, partition_key)
        attempt = 0
        while True:
            after = change(before)
            if after is None:
                return before
            stored = await self.put_if_unchanged(before, after)
            if stored is not None:
                return stored
            if self._account.runtime.monotonic() > deadline:
                raise self.build_unavailable_error()
            await self._wait_before_retry(attempt)
            attempt += 1
            before = await self.read(item_id, partition_key)

    async def put_if_unchanged(
        self, before: Item | None, after: Item, other_operations: Sequence[Operation] = ()
    ) -> Item | None:
        """Create or replace an item and return it.

        Return None if another writer has changed the item since it was read.

        Args:
            before: the item as it was read; None to create an item.
            after: the new item, in the same partition.
            other_operations: other operations in the same partition, applied in the same transaction.
        """
        write = self._account.runtime.new_id()[:16]
        earlier = before.get("writes", []) if before else []
        body = {name: value for name, value in after.items() if not name.startswith("_")}
        body["writes"] = [*earlier[1 - REMEMBERED_WRITES :], write]
        operation: Operation = ("create", (body,), {})
        if before is not None:
            operation = ("replace", (body["id"], body), {"if_match_etag": before["_etag"]})
        partition = body[self._definition.partition_key_property]
        outcome = await self.commit_batch(partition, (operation, *other_operations))
        if outcome.results is not None:
            return body | {"_etag": str(outcome.results[0]["eTag"])}
        found = await self.read(body["id"], partition) if outcome.may_be_applied else None
        return found if found is not None and write in found.get("writes", ()) else None

    async def commit_batch(self, partition_key: str, operations: Sequence[Operation]) -> BatchOutcome:
        """Send a transactional batch, with retries, until its outcome is known.

        Raises:
            WorkspaceError: UNAVAILABLE; the batch may have been applied.
        """
        deadline = self._account.runtime.monotonic() + self._retry_seconds
        may_be_applied, attempt = False, 0
        async with self._replace_errors_by_unavailable_error():
            container = await self._account.open_container(self._definition.name)
            while True:
                try:
                    results = await send_batch(
                        container,
                        operations,
                        partition_key,
                        self._account.usage,
                        deadline,
                        runtime=self._account.runtime,
                    )
                except TipMovedError:
                    return BatchOutcome(None, may_be_applied)
                except OutcomeUnknownError as error:
                    may_be_applied = True
                    if self._account.runtime.monotonic() > deadline:
                        raise self.build_unavailable_error() from error
                else:
                    return BatchOutcome(results, may_be_applied)
                await self._wait_before_retry(attempt)
                attempt += 1

    async def delete(self, item_id: str, partition_key: str, *, if_match_etag: str = "") -> None:
        """Delete an item if it exists. With an ETag, delete the item only if it still has this ETag."""
        condition = {"if_match_etag": if_match_etag} if if_match_etag else {}
        await self.commit_batch(partition_key, [("delete", (item_id,), condition)])

    def build_unavailable_error(self) -> WorkspaceError:
        """Build the UNAVAILABLE error with this store's error code."""
        name = self._name[0].upper() + self._name[1:]
        return WorkspaceError(Kind.UNAVAILABLE, self._code, f"{name} does not respond; retry later.")

    async def _wait_before_retry(self, attempt: int) -> None:
        runtime = self._account.runtime
        await runtime.sleep(runtime.uniform(0, min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0**attempt)))

    @asynccontextmanager
    async def _replace_errors_by_unavailable_error(self) -> AsyncIterator[None]:
        """Context manager: replace each ``WorkspaceError`` of the block by that of :meth:`build_unavailable_error`."""
        try:
            yield
        except WorkspaceError as error:
            raise self.build_unavailable_error() from error


def build_readiness_checks_by_name(account: CosmosAccount) -> dict[str, Callable[[], Awaitable[None]]]:
    """Return readiness checks by name, one for each container without which most requests fail.

    A check looks up an item that does not exist, which costs one request unit.
    """

    def build_readiness_check(definition: ContainerDefinition) -> Callable[[], Awaitable[None]]:
        store = CosmosItemStore(account, definition, "NOT_READY", f"the container {definition.name}")

        async def probe_container_by_reading_missing_item() -> None:
            await store.read("-", "-")

        return probe_container_by_reading_missing_item

    required = (CATALOG, CREDENTIALS, CONNECTIONS, REQUESTS, DOWNLOADS, ALERTS)
    return {f"Cosmos DB container {definition.name}": build_readiness_check(definition) for definition in required}
