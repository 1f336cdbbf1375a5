"""Users' JSON documents in Cosmos DB.

The SDK sends each request once. If the reply to a write is lost, the store reads the document to learn the outcome.
Tested with the genuine SDK against a test server; never run against Cosmos DB.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

import orjson
from azure.core import MatchConditions
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue

from shared.backends.azure.cosmos_data_accounts import DataAccounts
from shared.backends.azure.cosmos_data_requests import FAILURES, WriteRetries, find_http_status, retry_document_read
from shared.backends.azure.cosmos_queries import QueryPage, query_page
from shared.data_stores.continuation import FIELD
from shared.data_stores.document_rules import SYSTEM_MEMBERS, WRITE_MARK
from shared.data_stores.errors import (
    build_document_exists_error,
    build_document_not_found_error,
    build_unique_key_conflict_error,
    build_write_outcome_unknown_error,
)
from shared.data_stores.models import DocumentKey, DocumentPage, ETag, Missing, PartitionValue, StoredDocument, Table
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.runtime import Runtime

PAGE_BYTES: Final = 8 * 1024 * 1024
"""Size in bytes after which a page of documents ends, even if it has fewer documents than requested."""

_POSITION_KIB: Final = 3
"""Maximum size in KiB of a page's continuation token, which is part of a URL; Azure limits a URL to 8 KiB."""

type Item = Mapping[str, Any]
type NewETag = str
"""ETag of a written document; empty after the deletion of a document."""
type FindNewETag = Callable[[Item | None, bool], NewETag | None]


class CosmosDocumentStore:
    """Implementation of DocumentStore: reads and writes documents of exposed tables in Cosmos DB.

    Each write stores a random id in the item. If the reply is lost, the writer recognises its own write by this id.

    Args:
        accounts: clients of the Cosmos DB accounts.
    """

    def __init__(self, accounts: DataAccounts) -> None:
        self._accounts = accounts
        self._usage = accounts.usage
        self._runtime = accounts.runtime

    async def close(self) -> None:
        """Close the connections to the Cosmos DB accounts."""
        await self._accounts.close()

    async def read(self, table: Table, key: DocumentKey) -> StoredDocument | None:
        async with self._open_container(table) as container:
            found = await self._find_item(container, key)
        return None if found is None else StoredDocument(_item_to_document_json(found), str(found["_etag"]))

    async def create(self, table: Table, key: DocumentKey, document_json: bytes) -> ETag:
        marked = _parse_document_and_add_write_id(document_json, self._runtime)
        retries = WriteRetries(self._usage, self._runtime)
        async with self._open_container(table) as container:
            while not retries.uncertain:
                try:
                    return str((await container.create_item(marked, response_hook=self._usage.record_reply))["_etag"])
                except FAILURES as error:
                    if find_http_status(error) == HTTPStatus.CONFLICT:
                        raise await self._determine_conflict_error(container, key) from error
                    await retries.wait_after_failure(error, has_if_match=True)
            found = await self._find_item_after_uncertain_write(container, key)
        if found is None or found.get(WRITE_MARK) != marked[WRITE_MARK]:
            # Another writer has possibly replaced or deleted the new document since.
            raise build_write_outcome_unknown_error()
        return str(found["_etag"])

    async def _determine_conflict_error(self, container: ContainerProxy, key: DocumentKey) -> WorkspaceError:
        """Return the error for a new document that the account rejected with 409; the reply does not name the cause."""
        # Without a unique key only the id can conflict, even if the read does not find the document yet.
        if await self._find_item(container, key) is None and await self._has_unique_keys(container):
            return build_unique_key_conflict_error()
        return build_document_exists_error()

    async def _has_unique_keys(self, container: ContainerProxy) -> bool:
        async def request_properties() -> Item:
            found: Item = await container.read(response_hook=self._usage.record_reply)
            return found

        properties = await retry_document_read(request_properties, self._usage, self._runtime)
        return bool((properties.get("uniqueKeyPolicy") or {}).get("uniqueKeys"))

    async def replace(self, table: Table, key: DocumentKey, document_json: bytes, if_match: str | None) -> ETag:
        marked = _parse_document_and_add_write_id(document_json, self._runtime)

        def find_etag_of_earlier_attempt(item: Item | None, may_be_applied: bool) -> NewETag | None:  # noqa: FBT001  the type says it
            is_mine = may_be_applied and item is not None and item.get(WRITE_MARK) == marked[WRITE_MARK]
            return str(item["_etag"]) if is_mine and item is not None else None

        async with self._open_container(table) as container:

            async def send_replace(if_match_etag: str) -> NewETag:
                replaced = await container.replace_item(
                    key.id,
                    marked,
                    etag=if_match_etag,
                    match_condition=MatchConditions.IfNotModified,
                    response_hook=self._usage.record_reply,
                )
                return str(replaced["_etag"])

            return await self._write_document_with_retries(
                container, key, if_match, send_replace, find_etag_of_earlier_attempt
            )

    async def delete(self, table: Table, key: DocumentKey, if_match: str | None) -> None:
        before: set[str] = set()

        def find_etag_of_earlier_attempt(item: Item | None, may_be_applied: bool) -> NewETag | None:  # noqa: FBT001  the type says it
            if item is None:
                return "" if may_be_applied and before else None
            if may_be_applied and before and item["_rid"] not in before:
                # The document was deleted, and another one was created since.
                return ""
            if if_match in (None, item["_etag"]):
                before.add(str(item["_rid"]))
            return None

        async with self._open_container(table) as container:

            async def send_delete(if_match_etag: str) -> NewETag:
                await container.delete_item(
                    key.id,
                    _to_sdk_partition_key(key.partition),
                    etag=if_match_etag,
                    match_condition=MatchConditions.IfNotModified,
                    response_hook=self._usage.record_reply,
                )
                return ""

            # Without a read before, a document deleted by a lost attempt and one that never existed look the same.
            await self._write_document_with_retries(
                container, key, if_match, send_delete, find_etag_of_earlier_attempt, read_etag_first=True
            )

    async def list(
        self, table: Table, partition: PartitionValue, limit: int, after_position: str | None, *, all_partitions: bool
    ) -> DocumentPage:
        texts: list[bytes] = []
        size, position = 0, after_position
        async with self._open_container(table) as container:
            while len(texts) < limit and size < PAGE_BYTES:
                items, position = await self._read_page(
                    container,
                    None if all_partitions else _to_sdk_partition_key(partition),
                    limit - len(texts),
                    position,
                )
                texts += map(_item_to_document_json, items)
                size += sum(map(len, texts[len(texts) - len(items) :]))
                if position is None:
                    break
        return DocumentPage(tuple(texts), position)

    async def _read_page(
        self, container: ContainerProxy, partition_key: Any, max_items: int, continuation_token: str | None
    ) -> QueryPage:
        async def request_page() -> QueryPage:
            options = {} if partition_key is None else {"partition_key": partition_key}
            record_reply = self._usage.record_reply
            return await query_page(
                container,
                "SELECT * FROM c",
                continuation_token,
                max_item_count=max_items,
                continuation_token_limit=_POSITION_KIB,
                response_hook=record_reply,
                **options,
            )

        try:
            return await retry_document_read(request_page, self._usage, self._runtime)
        except WorkspaceError as error:
            if continuation_token is None or error.kind is not Kind.INVALID:
                raise
            raise build_invalid_field_error(
                FIELD, "does not belong to this list; send the token of the previous page"
            ) from error

    async def _write_document_with_retries(
        self,
        container: ContainerProxy,
        key: DocumentKey,
        if_match: str | None,
        send: Callable[[str], Awaitable[NewETag]],
        find_etag_of_earlier_attempt: FindNewETag,
        *,
        read_etag_first: bool = False,
    ) -> NewETag:
        """Write a document to Cosmos DB, with retries, and return its new ETag.

        The account checks If-Match, because a read can return an earlier version. After an attempt that may have been
        applied, each retry requires the same ETag, so that no write is applied twice.

        Args:
            container: container of the document.
            key: key of the document.
            if_match: the caller's If-Match condition; None for any version.
            send: sends the write, once for each attempt; its argument is the ETag for the If-Match condition.
            find_etag_of_earlier_attempt: returns the new ETag if the stored item proves that the write was applied,
                else None. The arguments are the item, and whether an earlier attempt may have been applied.
            read_etag_first: whether the item is read before the first attempt.
        """
        etag, retries = None if read_etag_first else if_match, WriteRetries(self._usage, self._runtime)
        uncertain_etag: str | None = None
        while True:
            if etag is None:
                read = self._find_item_after_uncertain_write if retries.uncertain else self._find_item
                found = await read(container, key)
                new_etag = find_etag_of_earlier_attempt(found, retries.uncertain)
                if new_etag is not None:
                    return new_etag
                found_etag = None if found is None else str(found["_etag"])
                if retries.uncertain and found_etag != uncertain_etag:
                    # The found version can be the change of a writer that read this write; a retry would undo it.
                    raise build_write_outcome_unknown_error()
                etag = if_match or found_etag
                if etag is None:
                    raise build_document_not_found_error()
            try:
                return await send(etag)
            except FAILURES as error:
                await retries.wait_after_failure(error, has_if_match=if_match is not None)
                if retries.uncertain:
                    uncertain_etag = etag
                etag = None

    async def _find_item(
        self, container: ContainerProxy, key: DocumentKey, *, retry_throttled: bool = False
    ) -> Item | None:
        async def request_item() -> Item:
            found: Item = await container.read_item(
                key.id, _to_sdk_partition_key(key.partition), response_hook=self._usage.record_reply
            )
            return found

        try:
            return await retry_document_read(request_item, self._usage, self._runtime, retry_throttled=retry_throttled)
        except WorkspaceError as error:
            if error.code == build_document_not_found_error().code:
                return None
            raise

    async def _find_item_after_uncertain_write(self, container: ContainerProxy, key: DocumentKey) -> Item | None:
        """Read an item after a write whose outcome is unknown; return None if the item does not exist.

        Raises:
            WorkspaceError: UNAVAILABLE ``DOCUMENT_OUTCOME_UNKNOWN`` if the item cannot be read.
        """
        try:
            return await self._find_item(container, key, retry_throttled=True)
        except WorkspaceError as error:
            raise build_write_outcome_unknown_error() from error

    @asynccontextmanager
    async def _open_container(self, table: Table) -> AsyncIterator[ContainerProxy]:
        try:
            yield await self._accounts.open_container(table)
        except WorkspaceError as error:
            if error.code == "TABLE_NOT_FOUND":
                self._accounts.remove_cached_container(table)
            raise


def _parse_document_and_add_write_id(document_json: bytes, runtime: Runtime) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(document_json)
    return {**document, WRITE_MARK: runtime.new_id()}


def _item_to_document_json(item: Item) -> bytes:
    document = {name: value for name, value in item.items() if name not in SYSTEM_MEMBERS}
    try:
        return orjson.dumps(document)
    except TypeError:
        # Documents of other writers can contain numbers and text that orjson rejects.
        return json.dumps(document, separators=(",", ":")).encode()


def _to_sdk_partition_key(value: PartitionValue) -> Any:
    if isinstance(value, Missing):
        return NonePartitionKeyValue
    return NullPartitionKeyValue if value is None else value
