"""Documents in Cosmos DB: each request sent once, and lost answers found out by retry_read.

Tested with the genuine SDK against a test server at the wire; nothing here has been run against Cosmos DB.
"""

import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

import orjson
from azure.core import MatchConditions
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue

from shared.backends.azure.cosmos_data_accounts import DataAccounts
from shared.backends.azure.cosmos_data_requests import FAILURES, WriteRetries, http_status, retry_read
from shared.backends.azure.cosmos_queries import query_page
from shared.conditional_requests import precondition_failed
from shared.data_stores.continuation import FIELD
from shared.data_stores.document_rules import SYSTEM_MEMBERS, WRITE_MARK
from shared.data_stores.errors import (
    document_exists,
    document_not_found,
    outcome_unknown,
)
from shared.data_stores.models import DocumentKey, DocumentPage, Missing, PartitionValue, StoredDocument, Table
from shared.errors import Kind, WorkspaceError, invalid

PAGE_BYTES: Final = 8 * 1024 * 1024
"""A page ends with the account's page that brings it over this, whatever the limit."""

type Item = Mapping[str, Any]
type Items = list[Item]
type Done = Callable[[Item | None, bool], str | None]


class CosmosDocumentStore:
    """The DocumentStore port over Cosmos DB.

    A write marks the item with an id of its own, so that its writer knows it again when the answer was lost.

    Args:
        accounts: where the containers are.
    """

    def __init__(self, accounts: DataAccounts) -> None:
        self._accounts = accounts
        self._usage = accounts.usage

    async def close(self) -> None:
        """Close the connections."""
        await self._accounts.close()

    async def read(self, table: Table, key: DocumentKey) -> StoredDocument | None:
        """Return a document, None when there is none."""
        async with self._container(table) as container:
            found = await self._item(container, key)
        return None if found is None else StoredDocument(_text(found), str(found["_etag"]))

    async def create(self, table: Table, key: DocumentKey, text: bytes) -> str:
        """Store a new document; return its ETag."""
        marked = _marked(text)
        retries = WriteRetries(self._usage)
        async with self._container(table) as container:
            while True:
                try:
                    return str((await container.create_item(marked, response_hook=self._usage.count_reply))["_etag"])
                except FAILURES as error:
                    if http_status(error) == HTTPStatus.CONFLICT and not retries.uncertain:
                        raise document_exists() from error
                    await retries.after(error, conditional=True)
                found = await self._looked(container, key)
                if found is not None and found.get(WRITE_MARK) == marked[WRITE_MARK]:
                    return str(found["_etag"])
                if found is not None:
                    raise document_exists()

    async def replace(self, table: Table, key: DocumentKey, text: bytes, if_match: str | None) -> str:
        """Store a document in place of one; return the new ETag."""
        marked = _marked(text)

        def done(found: Item | None, uncertain: bool) -> str | None:  # noqa: FBT001  the type says it
            mine = uncertain and found is not None and found.get(WRITE_MARK) == marked[WRITE_MARK]
            return str(found["_etag"]) if mine and found is not None else None

        async with self._container(table) as container:

            async def send(etag: str) -> str:
                replaced = await container.replace_item(
                    key.id,
                    marked,
                    etag=etag,
                    match_condition=MatchConditions.IfNotModified,
                    response_hook=self._usage.count_reply,
                )
                return str(replaced["_etag"])

            return await self._settled(container, key, if_match, send, done)

    async def delete(self, table: Table, key: DocumentKey, if_match: str | None) -> None:
        """Remove a document."""
        before: set[str] = set()

        def done(found: Item | None, uncertain: bool) -> str | None:  # noqa: FBT001  the type says it
            if found is None:
                return "" if uncertain else None
            if uncertain and before and found["_rid"] not in before:
                # The one to remove is gone; this one was made since.
                return ""
            before.add(str(found["_rid"]))
            return None

        async with self._container(table) as container:

            async def send(etag: str) -> str:
                await container.delete_item(
                    key.id,
                    _partition(key.partition),
                    etag=etag,
                    match_condition=MatchConditions.IfNotModified,
                    response_hook=self._usage.count_reply,
                )
                return ""

            # Without a look before, a document that a lost try removed and one that never was would be the same.
            await self._settled(container, key, if_match, send, done, look_first=True)

    async def list(
        self, table: Table, partition: PartitionValue, limit: int, after: str | None, *, all_partitions: bool
    ) -> DocumentPage:
        """Return some documents, in the account's own order."""
        texts: list[bytes] = []
        size, position = 0, after
        async with self._container(table) as container:
            while len(texts) < limit and size < PAGE_BYTES:
                items, position = await self._page(
                    container, None if all_partitions else _partition(partition), limit - len(texts), position
                )
                texts += map(_text, items)
                size += sum(map(len, texts[len(texts) - len(items) :]))
                if position is None:
                    break
        return DocumentPage(tuple(texts), position)

    async def _page(
        self, container: ContainerProxy, partition: Any, count: int, after: str | None
    ) -> tuple[Items, str | None]:
        async def read() -> tuple[Items, str | None]:
            whose = {} if partition is None else {"partition_key": partition}
            answered = self._usage.count_reply
            return await query_page(
                container, "SELECT * FROM c", after, max_item_count=count, response_hook=answered, **whose
            )

        try:
            return await retry_read(read, self._usage)
        except WorkspaceError as error:
            if after is None or error.kind is not Kind.INVALID:
                raise
            raise invalid(FIELD, "is not one that this list gave") from error

    async def _settled(
        self,
        container: ContainerProxy,
        key: DocumentKey,
        if_match: str | None,
        send: Callable[[str], Awaitable[str]],
        done: Done,
        *,
        look_first: bool = False,
    ) -> str:
        """Return what a write gives, sent again only under an ETag that shows that it was not done.

        Args:
            container: where.
            key: what is written.
            if_match: the ETag that the caller asks for; None for any.
            send: writes under an ETag.
            done: says by the item as found whether the write was done; the second argument is whether it may be.
            look_first: read the item before the first try, too.
        """
        etag, retries = None if look_first else if_match, WriteRetries(self._usage)
        while True:
            if etag is None:
                look = self._looked if retries.uncertain else self._item
                found = await look(container, key)
                result = done(found, retries.uncertain)
                if result is not None:
                    return result
                if found is None:
                    raise outcome_unknown() if retries.uncertain else document_not_found()
                etag = str(found["_etag"])
                if if_match not in (None, etag):
                    raise outcome_unknown() if retries.uncertain else precondition_failed()
            try:
                return await send(etag)
            except FAILURES as error:
                await retries.after(error, conditional=if_match is not None)
                etag = None

    async def _item(self, container: ContainerProxy, key: DocumentKey, *, patient: bool = False) -> Item | None:
        async def read() -> Item:
            found: Item = await container.read_item(
                key.id, _partition(key.partition), response_hook=self._usage.count_reply
            )
            return found

        try:
            return await retry_read(read, self._usage, patient=patient)
        except WorkspaceError as error:
            if error.code == document_not_found().code:
                return None
            raise

    async def _looked(self, container: ContainerProxy, key: DocumentKey) -> Item | None:
        """Return the item after a write of unknown outcome.

        Raises:
            WorkspaceError: UNAVAILABLE ``DOCUMENT_OUTCOME_UNKNOWN`` when it cannot be read.
        """
        try:
            return await self._item(container, key, patient=True)
        except WorkspaceError as error:
            raise outcome_unknown() from error

    @asynccontextmanager
    async def _container(self, table: Table) -> AsyncIterator[ContainerProxy]:
        try:
            yield await self._accounts.container(table)
        except WorkspaceError as error:
            if error.code == "TABLE_NOT_FOUND":
                self._accounts.forget(table)
            raise


def _marked(text: bytes) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(text)
    return {**document, WRITE_MARK: uuid.uuid4().hex}


def _text(item: Item) -> bytes:
    document = {name: value for name, value in item.items() if name not in SYSTEM_MEMBERS}
    try:
        return orjson.dumps(document)
    except TypeError:
        # What others wrote may hold numbers and text that orjson does not take.
        return json.dumps(document, separators=(",", ":")).encode()


def _partition(value: PartitionValue) -> Any:
    if isinstance(value, Missing):
        return NonePartitionKeyValue
    return NullPartitionKeyValue if value is None else value
